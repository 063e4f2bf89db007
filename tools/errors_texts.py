"""The texts that an expression of Rust can be: what errors_rust.py shows of an argument.

"it is gone"                        itself
format!("{} of {what}", self.n)     with holes: {n} of {what}
match n { 0 => "a", _ => "b" }      both
why, GONE                           what the nearest `let` binds, or the constant holds
"""

import re
from collections.abc import Iterator
from functools import reduce

from errors_row import is_sentence
from errors_source import (
    RustFile,
    end_of_brackets,
    end_of_statement,
    holes_named,
    nearest,
    split_at_commas,
)

_MUTE = re.compile(
    r"(?:==|!=|\b(?:unwrap_or|join|replace|split|starts_with|ends_with|contains|strip_prefix|with|"
    r"strip_suffix|expect|get|detail|trim_end_matches|option|of_option|map_or)\(|\[)\s*&?$"
)
"""What stands before a literal that nobody reads."""
_MESSAGE = re.compile(r"\blet (message|what|why)\b[^=;]*=(?!=)|\bfn fmt\b[^{]*\{")


def end_of_body(code: str, at: int) -> int:
    """Where a body ends whose brace stands before `at`."""
    return end_of_brackets(code, at - 1)


class RustTexts:
    """Looks texts up in the sources, which share constants."""

    def __init__(self, files: list[RustFile]) -> None:
        self.constants: dict[str, list[tuple[RustFile, tuple[int, int]]]] = {}
        for file in files:
            for name, span in file.constants.items():
                self.constants.setdefault(name, []).append((file, span))

    def messages(self, file: RustFile) -> Iterator[str]:
        """What is named or formatted as a message, wherever it goes from there."""
        for bound in _MESSAGE.finditer(file.code):
            if not bound[1] and "Debug for" in file.code[: bound.start()][-120:]:
                continue
            ends = end_of_statement if bound[1] else end_of_body
            texts = self.literals(file, bound.end(), ends(file.code, bound.end()))
            yield from (text.strip() for text in texts if is_sentence(text))

    def advice(self, file: RustFile, start: int, close: int) -> list[str]:
        spans = split_at_commas(file.code, start, close - 1)
        if not spans:
            return []
        texts = self.of(file, *spans[0])
        if len(spans) == 1:
            return texts
        opening = file.code.find("[", spans[0][1])
        listed = split_at_commas(file.code, opening + 1, close - 1) if opening >= 0 else []
        options = [
            self._option(file, file.code[slice(*each)].strip(" ]\n)"), start) for each in listed
        ]
        return [
            reduce(lambda t, option: t.replace("…", option, 1), options, text) for text in texts
        ]

    def _option(self, file: RustFile, expression: str, before: int) -> str:
        """An option as advice names it."""
        if "JobOption" not in expression:
            pattern = re.compile(rf"\blet {re.escape(expression)} = ([^;]*);")
            for function in file.outer(before):
                for bound in pattern.finditer(file.code, function.start, before):
                    expression = bound[1]
        option = re.search(r"JobOption::(\w+)(?:\s*\.(\w+))?", expression)
        if option is None:
            return "--…"
        value = {"at_least": " SIZE", "count": " N"}.get(option[2] or "", "")
        return "--" + re.sub(r"(?<!^)(?=[A-Z])", "-", option[1]).lower() + value

    def of(self, file: RustFile, start: int, end: int, depth: int = 0) -> list[str]:
        """The texts that an expression can be."""
        found = list(self.literals(file, start, end))
        if found or depth > 3:
            return found or ["…"]
        expression = file.code[start:end].strip().lstrip("&*").strip()
        if kind := re.fullmatch(r"(?:\w+::)*Kind::(\w+)", expression):
            return [re.sub(r"(?<!^)(?=[A-Z])", "_", kind[1]).lower()]
        name = re.match(r"(?:self\.|Self::)?([A-Za-z_]\w*)", expression)
        if name is None or name[1] in ("if", "match", "self", "unsafe", "None"):
            return ["…"]
        rest = expression[name.end() :]
        if rest.startswith("("):
            return self._returned(file, name[1], depth) or [f"{{{name[1]}}}"]
        if name[1].isupper():
            constant = nearest(file, self.constants.get(name[1], []))
            if constant is None:
                return [f"{{{name[1]}}}"]
            return self.of(constant[0], *constant[1], depth + 1)
        if field := re.fullmatch(r"(?:\.\w+)*\.(\w+)", rest):
            return [f"{{{field[1]}}}"]
        kinds = re.findall(r"(?<![\w:])Kind::(\w+)", expression)
        if kinds:
            return [re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower() for kind in kinds]
        bound = self._bound(file, name[1], start, depth)
        return bound or [f"{{{name[1]}}}"]

    def _returned(self, file: RustFile, name: str, depth: int) -> list[str]:
        """The texts that a function of this file returns."""
        for function in file.functions:
            if function.name == name and function.is_text:
                texts = list(self.literals(file, function.start, function.end))
                return [text for text in texts if is_sentence(text)] if depth < 3 else []
        return []

    def _bound(self, file: RustFile, name: str, before: int, depth: int) -> list[str]:
        """What a name is bound to by the nearest `let` before, in the functions around."""
        pattern = re.compile(
            rf"\blet\s+(?:mut\s+)?(?:{name}\b|\((?P<names>[\w\s,]*\b{name}\b[\w\s,]*)\))[^=;]*=(?!=)"
        )
        for function in file.outer(before):
            if name in function.parameters:
                return []
            found = list(pattern.finditer(file.code, function.start, before))
            if not found:
                continue
            start, last = found[-1].end(), found[-1]
            end = end_of_statement(file.code, start)
            if last["names"]:
                names = [each.strip() for each in last["names"].split(",")]
                return self._of_tuples(file, start, end, names.index(name), len(names))
            return [text for text in self.of(file, start, end, depth + 1) if text != "…"]
        return []

    def _of_tuples(self, file: RustFile, start: int, end: int, index: int, count: int) -> list[str]:
        """The elements at `index` of the tuples in an expression."""
        found: list[str] = []
        for opening in re.compile(r"(?<![\w!])\(").finditer(file.code, start, end):
            close = end_of_brackets(file.code, opening.start())
            spans = split_at_commas(file.code, opening.end(), close - 1)
            after = file.code[close : close + 20].lstrip()
            if len(spans) == count and not after.startswith(("=>", "|", "if ")):
                found += self.of(file, *spans[index], 3)[:1]
        return found

    def literals(self, file: RustFile, start: int, end: int) -> Iterator[str]:
        code, skip_until = file.code, start
        for begin, finish, text in file.literals:
            if begin < skip_until or finish > end:
                continue
            before, after = code[max(start, begin - 40) : begin], code[finish : finish + 12]
            if re.match(r"\s*(?:=>|\|\s|if\s)", after) and "=>" in code[finish : finish + 200]:
                continue  # a pattern
            macro = re.search(
                r"\b(?:(?:format|concat)!\(|write(?:ln)?!\(\s*\w+,)$", before.rstrip()
            )
            if macro is not None:
                opening = code.rindex("(", start, begin)
                skip_until = end_of_brackets(code, opening)
                arguments = split_at_commas(code, finish + 1, skip_until - 1)
                yield holes_named(text, [code[slice(*each)].strip() for each in arguments])
            elif not _MUTE.search(before.rstrip()):
                yield holes_named(text, [])
