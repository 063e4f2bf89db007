"""A Rust source with what errors_rust.py asks of it: functions, closures, constants and literals.

Read by brackets and words, not by a grammar: rustfmt's layout is taken for granted.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import TypeVar

from arrows import TEXT, blanked, end_of_braces, without_tests
from errors_row import Row

_FUNCTION = re.compile(r"\bfn\s+(\w+)\s*(?:<[^(]*?>)?\s*\(")
_CLOSURE = re.compile(r"\blet\s+(\w+)\s*=\s*(?:move\s+)?\|([^|]*)\|")
_CONSTANT = re.compile(r"\b(?:const|static)\s+(\w+)\s*:\s*&(?:'static )?str\s*=\s*")
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
        for each in TEXT.finditer(self.source):
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
            end = end_of_braces(code, body.start())
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
    while "<" in text and (plain := re.sub(r"<[^<>]*>", "", text)) != text:
        text = plain  # commas of type parameters part no parameters
    for start, end in split_at_commas(text, 0, len(text)):
        name, colon, kind = text[start:end].partition(":")
        name = name.strip().removeprefix("mut ").lstrip("_")
        is_text = not colon or re.search(r"\b(?:str|String|Kind|Display|Cow|Into)\b", kind)
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
