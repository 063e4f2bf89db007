"""The errors of the Rust sources, found by reading.

    Error::new(Kind::X, "read input", "…").advise("…")     a row
    fn refuse(what: &str) -> Error { Error::new(…, what) }   a template: each call of it is a row

A text that is not a literal is looked for where its name is bound, in the function or as a constant. A
`match` or an `if` gives a row for each of its texts. What stays unknown is a hole: `{name}`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import islice, product, takewhile
from pathlib import Path
from typing import TypeVar

from arrows import _TEXT, _end_of_braces, blanked, without_tests
from errors_row import ALTERNATIVES, Row, is_sentence

# The constructors that all others use: how they are called, and a row in which their arguments are holes.
CONSTRUCTORS = {
    "Error::new": (("kind", "operation", "message"), Row("{kind}", "{operation}", "{message}")),
    "Error::bug": (("operation", "message"), Row("bug", "{operation}", "{message}")),
    "Error::from_io": (("operation",), Row("io", "{operation}", "{error of the system}")),
    "PyValueError::new_err": (("message",), Row("ValueError", "", "{message}")),
    "PyTypeError::new_err": (("message",), Row("TypeError", "", "{message}")),
    "PyRuntimeError::new_err": (("message",), Row("RuntimeError", "", "{message}")),
    "PyOSError::new_err": (("message",), Row("OSError", "", "{message}")),
    "PyKeyError::new_err": (("message",), Row("KeyError", "", "{message}")),
}
# Texts that become a part of an error elsewhere.
PARTS = (
    "Err",
    "io::Error::other",
    "D::Error::custom",
    "Trouble::Damaged",
    "Trouble::Refused",
    "WorkerError::Broken",
    "Failed::ForGood",
    "Failed::Now",
    "Broken::There",
    "Broken::Here",
)
NOTICES = (".notice", "warnings.push", "notices.push")

_FUNCTION = re.compile(r"\bfn\s+(\w+)\s*(?:<[^(]*?>)?\s*\(")
_CLOSURE = re.compile(r"\blet\s+(\w+)\s*=\s*(?:move\s+)?\|([^|]*)\|")
_CONSTANT = re.compile(r"\b(?:const|static)\s+(\w+)\s*:\s*&(?:'static )?str\s*=\s*")
_CHAIN = re.compile(r"\s*\??\s*\.\s*(\w+)\s*(?:::<[^>]*>)?\(")
_CALL = re.compile(r"(?<![\w!.])(?:(?:\w+::)*\w+|\w+(?:\.\w+)*\.\w+)\s*\(")
_NAMED = re.compile(r"\blet (?:mut )?(\w+)(?:\s*:\s*Error)?\s*=\s*$")
_MUTE = re.compile(
    r"(?:==|!=|\b(?:unwrap_or|join|replace|split|starts_with|ends_with|contains|strip_prefix|with|"
    r"strip_suffix|expect|get|detail|trim_end_matches|option|of_option|map_or)\(|\[)\s*&?$"
)
_SAYS = re.compile(r"^(?:warnings?|notices?(?:_of_\w+)?)$|_(?:warning|notice)$")
_HOLES = re.compile(r"\{([\w.]*)(?::[^{}]*)?\}")


_Found = TypeVar("_Found")


@dataclass
class Function:
    """A function or a closure: its parameters, and where its body is."""

    name: str
    parameters: tuple[str, ...]
    start: int
    end: int
    is_text: bool
    """It returns text."""
    is_error: bool
    """It returns an error, or is a closure."""
    is_method: bool = False
    rows: list[tuple[Row, bool]] | None = None
    """What it can raise, and whether the row has holes that a caller fills."""
    is_called: bool = False


@dataclass
class RustFile:
    """A source, with its literals and without."""

    path: Path
    source: str
    functions: list[Function] = field(default_factory=list)
    constants: dict[str, tuple[int, int]] = field(default_factory=dict)

    @cached_property
    def code(self) -> str:
        """Without comments, tests and what literals hold; every character in its place."""
        code = list(blanked(self.source))
        for start, end, _ in self.literals:
            code[start] = code[end - 1] = '"'
        return without_tests("".join(code))

    @cached_property
    def literals(self) -> list[tuple[int, int, str]]:
        """Where each literal is, and its text."""
        found: list[tuple[int, int, str]] = []
        for each in _TEXT.finditer(self.source):
            text = each[0]
            if text.startswith(("//", "/*", "'")) or '"' not in text:
                continue
            body = text[text.index('"') + 1 : text.rindex('"')]
            if not text.lstrip("b").startswith("r"):
                body = re.sub(r"\\\n\s*", "", body)
                body = body.replace('\\"', '"').replace("\\n", " ").replace("\\\\", "\\")
            found.append((each.start(), each.end(), body))
        return found

    def read(self) -> "RustFile":
        """Find the functions and constants."""
        code = self.code
        for each in _FUNCTION.finditer(code):
            close = end_of_brackets(code, each.end() - 1)
            body = re.compile(r"[{;]").search(code, close)
            if body is None or body[0] == ";":
                continue
            names = tuple(parameters(code[each.end() : close - 1]))
            returned = code[close : body.start()]
            is_text = bool(re.search(r"->\s*(?:String|&(?:'\w+ )?str|Cow<)", returned))
            end = _end_of_braces(code, body.start())
            is_error = bool(re.search(r"->\s*(?:io::)?(?:Error|PyErr)\s*$", returned.strip()))
            is_method = bool(re.match(r"\s*&?(?:'\w+ )?(?:mut )?self\b", code[each.end() : close]))
            self.functions.append(
                Function(each[1], names, body.start(), end, is_text, is_error, is_method)
            )
        for each in _CLOSURE.finditer(code):
            end = end_of_statement(code, each.end())
            names = tuple(parameters(each[2]))
            self.functions.append(Function(each[1], names, each.end(), end, False, True))
        for each in _CONSTANT.finditer(code):
            self.constants[each[1]] = (each.end(), end_of_statement(code, each.end()))
        return self

    def function_at(self, place: int) -> Function | None:
        """The innermost function that holds a place."""
        holding = [each for each in self.functions if each.start <= place < each.end]
        return max(holding, key=lambda each: each.start, default=None)

    def outer(self, place: int) -> list[Function]:
        """The functions that hold a place, innermost first."""
        holding = [each for each in self.functions if each.start <= place < each.end]
        return sorted(holding, key=lambda each: -each.start)


def parameters(text: str) -> Iterator[str]:
    """The names of parameters, without `self`; of those that are not text, nothing.

    >>> list(parameters("&self, what: &str, (a, b): (u8, u8), error: &io::Error"))
    ['what', '', '']
    """
    for start, end in split_at_commas(text, 0, len(text)):
        name, colon, kind = text[start:end].partition(":")
        name = name.strip().removeprefix("mut ").lstrip("_")
        is_text = not colon or re.search(r"\b(?:str|String|Kind|Display|Cow)\b", kind)
        if name.lstrip("&").split()[-1:] != ["self"] and text[start:end].strip():
            yield name if name.isidentifier() and is_text else ""


def end_of_brackets(code: str, at: int) -> int:
    """Where the bracket that opens at `at` has been closed."""
    nesting = 0
    for place in range(at, len(code)):
        nesting += (code[place] in "([{") - (code[place] in ")]}")
        if nesting == 0:
            return place + 1
    return len(code)


def end_of_statement(code: str, at: int) -> int:
    """Where the `;` or the closing bracket stands that ends an expression."""
    nesting = 0
    for place in range(at, len(code)):
        if nesting == 0 and code[place] in ";)]}":
            return place
        nesting += (code[place] in "([{") - (code[place] in ")]}")
    return len(code)


def split_at_commas(code: str, start: int, end: int) -> list[tuple[int, int]]:
    """The stretches between the commas of an argument list."""
    found: list[tuple[int, int]] = []
    nesting, begin = 0, start
    for place in range(start, end):
        nesting += (code[place] in "([{") - (code[place] in ")]}")
        if code[place] == "," and nesting == 0:
            found.append((begin, place))
            begin = place + 1
    if code[begin:end].strip():
        found.append((begin, end))
    return found


class RustErrors:
    """All sources of Rust, which share constants and public helpers."""

    def __init__(self, folders: list[Path]) -> None:
        paths = sorted(path for folder in folders for path in folder.rglob("*.rs"))
        apart = ("tests", "tests.rs", "faulty.rs", "error.rs")
        self.files = [
            RustFile(path, path.read_text(encoding="utf-8")).read()
            for path in paths
            if not set(path.parts) & set(apart)
        ]
        self.constants: dict[str, list[tuple[RustFile, tuple[int, int]]]] = {}
        for file in self.files:
            for name, span in file.constants.items():
                self.constants.setdefault(name, []).append((file, span))
        by_name: dict[str, list[tuple[RustFile, Function]]] = {}
        for file in self.files:
            for function in file.functions:
                by_name.setdefault(function.name, []).append((file, function))
        self.by_name = by_name

    def rows(self) -> Iterator[tuple[Path, Row]]:
        """Yield each row with its file, in the order of the sources."""
        tables = [(file, list(self._rows_of(file))) for file in self.files]
        for file, rows in tables:
            for function, row, is_template in rows:
                used = function is not None and function.is_called
                if not (is_template and used):
                    yield file.path, row

    def _rows_of(self, file: RustFile) -> Iterator[tuple[Function | None, Row, bool]]:
        for function in sorted(file.functions, key=lambda each: each.start):
            for row, is_template in self._raised(file, function):
                yield function, row, is_template

    def _raised(self, file: RustFile, function: Function) -> list[tuple[Row, bool]]:
        if function.rows is None:
            function.rows = []  # a circle ends here
            own = {f"{{{name}}}" for name in function.parameters if name}
            rows: list[tuple[Row, bool]] = []
            for row in self._found(file, function):
                said = Row(row.kind, "", row.message, row.advice)
                rows.append((row, any(hole in own for hole in said.holes())))
            function.rows = list(dict.fromkeys(rows))
        return function.rows

    def _found(self, file: RustFile, function: Function) -> Iterator[Row]:
        code, at, done = file.code, function.start, set[int]()
        replaced = set[Row]()
        bound: dict[str, list[Row]] = {}  # errors that have a name, for advice that follows
        for call in _CALL.finditer(code, at, function.end):
            if file.function_at(call.start()) is not function:
                continue
            name = call[0].rstrip("(").strip()
            close = end_of_brackets(code, call.end() - 1)
            spans = split_at_commas(code, call.end(), close - 1)
            rows = list(self._of_call(file, name, spans, call.start()))
            if rows:
                chain, ends = self._chain(file, close)
                done |= ends
                rows = [changed for row in rows for changed in with_chain(row, chain)]
                named = _NAMED.search(code, max(at, call.start() - 60), call.start())
                if named is None:
                    yield from rows
                else:
                    bound.setdefault(named[1], []).extend(rows)
        if _SAYS.search(function.name):
            for text in self._literals(file, function.start, function.end):
                if is_sentence(text):
                    yield Row("notice", "", text)
            return
        for advice in re.compile(r"\.\s*(advise(?:_options)?)\(").finditer(code, at, function.end):
            if advice.start(1) in done or file.function_at(advice.start()) is not function:
                continue
            close = end_of_brackets(code, advice.end() - 1)
            texts = self._advice(file, advice.end(), close)
            receiver = re.search(r"(\w+)\s*$", code[: advice.start()][-40:])
            rows = bound.get(receiver[1], []) if receiver else []
            for text in texts:
                yield from advised(rows, text)
            replaced |= {row for row in rows if not row.advice}
        for rows in bound.values():
            yield from (row for row in rows if row not in replaced)

    def _of_call(
        self, file: RustFile, name: str, spans: list[tuple[int, int]], at: int
    ) -> Iterator[Row]:
        short = name.rpartition("::")[2].rpartition(".")[2]
        if name in CONSTRUCTORS:
            names, template = CONSTRUCTORS[name]
            yield from self._filled(file, template, names, spans)
        elif name.endswith(NOTICES):
            for text in self._texts(file, *spans[0]) if spans else ():
                if is_sentence(text):
                    yield Row("notice", "", text)
        elif name in PARTS and spans:
            yield from self._part(file, name, spans)
        else:
            helper = self._helper(file, name, short, at)
            if helper is None:
                return
            home, function = helper
            for row, is_template in self._raised(home, function):
                if is_template:
                    function.is_called = True
                    yield from self._filled(file, row, function.parameters, spans)

    def _part(self, file: RustFile, name: str, spans: list[tuple[int, int]]) -> Iterator[Row]:
        text = file.code[slice(*spans[0])].strip()
        direct = not text or text.startswith(("format!", "."))
        if not direct and name == "Err":
            return
        for found in self._texts(file, *spans[0]):
            if is_sentence(found):
                advice = next(iter(self._texts(file, *spans[1])), "") if len(spans) > 1 else ""
                yield Row("", "", found, advice)

    def _helper(
        self, file: RustFile, name: str, short: str, at: int
    ) -> tuple[RustFile, Function] | None:
        is_method = "." in name
        here = [each for each in file.functions if each.name == short]
        here = [each for each in here if each.is_method is is_method]
        here = [each for each in here if not each.start <= at < each.end]
        if here:
            return file, here[0]
        if re.search(r"\b[A-Z]\w*::", name):
            return None
        there = [each for each in self.by_name.get(short, []) if each[1].is_method is is_method]
        found = nearest(file, there)
        return found if found is not None and found[1].is_error else None

    def _filled(
        self,
        file: RustFile,
        template: Row,
        names: tuple[str, ...],
        spans: list[tuple[int, int]],
    ) -> Iterator[Row]:
        holes = template.holes()
        wanted = [
            (name, span)
            for name, span in zip(names, spans, strict=False)
            if name and f"{{{name}}}" in holes
        ]
        paired = self._paired(file, wanted)
        for values in paired:
            yield template.filled(values)

    def _paired(
        self, file: RustFile, wanted: list[tuple[str, tuple[int, int]]]
    ) -> list[dict[str, str]]:
        """The values of some arguments: side by side where as many, else each with each."""
        texts = [self._texts(file, *span) for _, span in wanted]
        names = [name for name, _ in wanted]
        many = {len(found) for found in texts if len(found) > 1}
        if len(many) == 1 and sum(len(found) > 1 for found in texts) > 1:
            number = many.pop()
            rows = zip(
                *(found * number if len(found) == 1 else found for found in texts), strict=True
            )
        else:
            rows = product(*texts)
        return [dict(zip(names, row, strict=True)) for row in islice(rows, ALTERNATIVES)]

    def _chain(self, file: RustFile, at: int) -> tuple[dict[str, list[str]], set[int]]:
        found: dict[str, list[str]] = {}
        ends: set[int] = set()
        while link := _CHAIN.match(file.code, at):
            close = end_of_brackets(file.code, link.end() - 1)
            if link[1] in ("advise", "advise_options"):
                found["advice"] = self._advice(file, link.end(), close)
                ends.add(link.start(1))
            elif link[1] == "during":
                found["operation"] = self._texts(file, link.end(), close - 1)
            at = close
        return found, ends

    def _advice(self, file: RustFile, start: int, close: int) -> list[str]:
        spans = split_at_commas(file.code, start, close - 1)
        if not spans:
            return []
        texts = self._texts(file, *spans[0])
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

    def _texts(self, file: RustFile, start: int, end: int, depth: int = 0) -> list[str]:
        """The texts that an expression can be."""
        found = list(self._literals(file, start, end))
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
            return self._texts(constant[0], *constant[1], depth + 1)
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
                texts = list(self._literals(file, function.start, function.end))
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
            return [text for text in self._texts(file, start, end, depth + 1) if text != "…"]
        return []

    def _of_tuples(self, file: RustFile, start: int, end: int, index: int, count: int) -> list[str]:
        """The elements at `index` of the tuples in an expression."""
        found: list[str] = []
        for opening in re.compile(r"(?<![\w!])\(").finditer(file.code, start, end):
            close = end_of_brackets(file.code, opening.start())
            spans = split_at_commas(file.code, opening.end(), close - 1)
            after = file.code[close : close + 20].lstrip()
            if len(spans) == count and not after.startswith(("=>", "|", "if ")):
                found += self._texts(file, *spans[index], 3)[:1]
        return found

    def _literals(self, file: RustFile, start: int, end: int) -> Iterator[str]:
        code, skip_until = file.code, start
        for begin, finish, text in file.literals:
            if begin < skip_until or finish > end:
                continue
            before, after = code[max(start, begin - 40) : begin], code[finish : finish + 12]
            if re.match(r"\s*(?:=>|\|\s|if\s)", after) and "=>" in code[finish : finish + 200]:
                continue  # a pattern
            macro = re.search(r"\b(format|concat|write|writeln)!\($", before.rstrip())
            if macro is not None:
                opening = start + code[start:begin].rindex("(")
                skip_until = end_of_brackets(code, opening)
                arguments = split_at_commas(code, finish + 1, skip_until - 1)
                yield holes_named(text, [code[slice(*each)].strip() for each in arguments])
            elif not _MUTE.search(before.rstrip()):
                yield holes_named(text, [])


def nearest(file: RustFile, found: list[tuple[RustFile, _Found]]) -> tuple[RustFile, _Found] | None:
    """Of things with one name, the one whose file is nearest: in the same folder, or one above."""

    def shared(home: RustFile) -> int:
        pairs = zip(home.path.parts, file.path.parts, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    if len(found) < 2:
        return found[0] if found else None
    best = max(found, key=lambda each: shared(each[0]))
    top = file.path.parts.index("src") + 2  # the folder below src/
    return best if shared(best[0]) >= top else None


def holes_named(text: str, arguments: list[str]) -> str:
    """A format string whose holes have the names of what fills them.

    >>> holes_named("{} of {what:?} {{x}}", ["self.count"])
    '{count} of {what} {{x}}'
    """
    left = [each for each in arguments if "=" not in each]

    def name(hole: re.Match[str]) -> str:
        if hole[1] and not hole[1].isdigit():
            return f"{{{hole[1]}}}"
        argument = left.pop(0) if left else ""
        plain = re.fullmatch(r"&?(?:\w+\.)*(\w+)(?:\(\))?", argument)
        called = re.match(r"(?:\w+::)*(?:show_\w+|path)\(&?(?:\w+\.)*(\w+)", argument)
        return f"{{{(plain or called)[1]}}}" if plain or called else "…"  # type: ignore[index]

    return _HOLES.sub(name, text)


def advised(rows: list[Row], advice: str) -> Iterator[Row]:
    """Those of some rows that have no advice, with one; the advice alone if there are none."""
    without = [row for row in rows if not row.advice]
    yield from (Row(row.kind, row.operation, row.message, advice) for row in without)
    if not without:
        yield Row("", "", "", advice)


def with_chain(row: Row, chain: dict[str, list[str]]) -> Iterator[Row]:
    """The row with what its chain of calls adds."""
    operation = chain.get("operation", [row.operation])[0]
    for advice in chain.get("advice") or [row.advice]:
        yield Row(row.kind, operation, row.message, advice)
