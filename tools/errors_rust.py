"""The errors of the Rust sources, found by reading.

    Error::new(Kind::X, "read input", "…").advise("…")     a row
    fn refuse(what: &str) -> Error { Error::new(…, what) }   a template: each call of it is a row

errors_texts.py says which texts an argument can be; each of them gives a row. What stays unknown is
a hole: `{name}`.
"""

import re
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path

from errors_row import ALTERNATIVES, Row, is_sentence, taken_apart
from errors_source import Function, RustFile, end_of_brackets, nearest, split_at_commas
from errors_texts import RustTexts

# The constructors that all others use: their arguments, and a row in which these are holes.
CONSTRUCTORS = {
    "Error::new": (("kind", "operation", "message"), Row("{kind}", "{operation}", "{message}")),
    "Error::bug": (("operation", "message"), Row("bug", "{operation}", "{message}")),
    "Error::from_io": (("operation",), Row("io", "{operation}", "{error of the system}")),
    "type_error": (("message", "advice"), Row("TypeError", "", "{message}", "{advice}")),
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
APART = re.compile(r"(^|/)tests(/|\.rs$)|/faulty\.rs$|/error\.rs$")
NOTICES = (".notice", "warnings.push", "notices.push")

_CHAIN = re.compile(r"\s*\??\s*\.\s*(\w+)\s*(?:::<[^>]*>)?\(")
_CALL = re.compile(r"(?<![\w!.])(?:(?:\w+::)*\w+|\w+(?:\.\w+)*\.\w+)\s*\(")
_NAMED = re.compile(r"\blet (?:mut )?(\w+)(?:\s*:\s*Error)?\s*=\s*$")
_ADVISE = re.compile(r"\.\s*(advise(?:_options)?)\(")
_RAISED = re.compile(r"Py(\w+)::new_err")
_SAYS = re.compile(r"^(?:warnings?|notices?(?:_of_\w+)?)$|_(?:warning|notice)$")


class RustErrors:
    """All sources of Rust, which share constants and public helpers."""

    def __init__(self, folders: list[Path]) -> None:
        paths = sorted(path for folder in folders for path in folder.rglob("*.rs"))
        self.files = [
            RustFile(path, path.read_text(encoding="utf-8")).read()
            for path in paths
            if not APART.search(path.as_posix().rpartition("crates/")[2])
        ]
        self.texts = RustTexts(self.files)
        by_name: dict[str, list[tuple[RustFile, Function]]] = {}
        for file in self.files:
            for function in file.functions:
                by_name.setdefault(function.name, []).append((file, function))
        self.by_name = by_name

    def rows(self) -> Iterator[tuple[Path, Row]]:
        """Yield each row with its file, in the order of the sources."""
        tables = [(file, list(self._rows_of(file))) for file in self.files]
        for file, rows in tables:
            shown = [
                row for function, row, template in rows if not (template and function.is_called)
            ]
            for row in shown:
                whole = taken_apart(row.kind, row.message)
                yield file.path, whole if whole.advice else row
            said = " ".join(row.message for _, row, _ in rows)
            for text in dict.fromkeys(self.texts.messages(file)):
                if not re.search(re.sub(r"\\\{.*?\\\}|…", ".+?", re.escape(text)), said):
                    yield file.path, Row("", "", text)

    def _rows_of(self, file: RustFile) -> Iterator[tuple[Function, Row, bool]]:
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
        if _SAYS.search(function.name):
            for text in self.texts.literals(file, function.start, function.end):
                if is_sentence(text):
                    yield Row("notice", "", text)
            return
        named: dict[str, list[Row]] = {}
        done = set[int]()
        for call in _CALL.finditer(file.code, function.start, function.end):
            if file.function_at(call.start()) is not function:
                continue
            rows, advised_at = self._of_chain(file, call)
            done |= advised_at
            name = _NAMED.search(file.code, max(function.start, call.start() - 60), call.start())
            if name is None:
                yield from rows
            else:
                named.setdefault(name[1], []).extend(rows)
        yield from self._advised_later(file, function, named, done)

    def _of_chain(self, file: RustFile, call: re.Match[str]) -> tuple[list[Row], set[int]]:
        """The rows of a call and what its chain adds, and where the advice in it stands."""
        close = end_of_brackets(file.code, call.end() - 1)
        spans = split_at_commas(file.code, call.end(), close - 1)
        rows = list(self._of_call(file, call[0].rstrip("(").strip(), spans, call.start()))
        if not rows:
            return [], set()
        chain, advised_at = self._chain(file, close)
        return [changed for row in rows for changed in with_chain(row, chain)], advised_at

    def _advised_later(
        self, file: RustFile, function: Function, named: dict[str, list[Row]], done: set[int]
    ) -> Iterator[Row]:
        """The rows of errors that have a name, with the advice that is added by it."""
        replaced = set[Row]()
        for advice in _ADVISE.finditer(file.code, function.start, function.end):
            if advice.start(1) in done or file.function_at(advice.start()) is not function:
                continue
            receiver = re.search(r"(\w+)\s*$", file.code[: advice.start()][-40:])
            rows = named.get(receiver[1], []) if receiver else []
            close = end_of_brackets(file.code, advice.end() - 1)
            for text in self.texts.advice(file, advice.end(), close):
                yield from advised(rows, text)
            replaced |= {row for row in rows if not row.advice}
        for rows in named.values():
            yield from (row for row in rows if row not in replaced)

    def _of_call(
        self, file: RustFile, name: str, spans: list[tuple[int, int]], at: int
    ) -> Iterator[Row]:
        short = name.rpartition("::")[2].rpartition(".")[2]
        if raised := _RAISED.fullmatch(name):
            template = Row(raised[1], "", "{message}")
            yield from self._filled(file, template, ("message",), spans)
        elif name in CONSTRUCTORS:
            names, template = CONSTRUCTORS[name]
            yield from self._filled(file, template, names, spans)
        elif name.endswith(NOTICES):
            for text in self.texts.of(file, *spans[0]) if spans else ():
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
        direct = text.startswith(("format!", '"'))
        if not direct and name == "Err":
            return
        for found in self.texts.of(file, *spans[0]):
            if is_sentence(found):
                advice = next(iter(self.texts.of(file, *spans[1])), "") if len(spans) > 1 else ""
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
        texts = [self.texts.of(file, *span) for _, span in wanted]
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
                found["advice"] = self.texts.advice(file, link.end(), close)
                ends.add(link.start(1))
            elif link[1] == "during":
                found["operation"] = self.texts.of(file, link.end(), close - 1)
            at = close
        return found, ends


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
