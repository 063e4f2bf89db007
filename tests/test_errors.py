"""Errors speak with one voice: all of them are found in the sources, and each keeps the rules.

A user reads "cannot OPERATION: MESSAGE. What to do: ADVICE." `python tools/errors.py` prints the
table: read it as a whole when you change an error.
"""

import doctest
import importlib
import re
import sys
from functools import cache
from pathlib import Path

import pytest
from tests.test_words import ODD

TOP = Path(__file__).parents[1]
sys.path.insert(0, str(TOP / "tools"))

import errors  # noqa: E402 - a tool
from errors_python import python_rows  # noqa: E402
from errors_row import Row, taken_apart  # noqa: E402
from errors_rust import RustErrors  # noqa: E402


@cache
def tables() -> dict[str, list[tuple[str, Row]]]:
    return errors.tables()


WORDS_MAX = 40
"""A message or an advice that is longer says two things."""

NAMES = frozenset({"gristmill", "ray", "rust", "python", "hadoop", "java", "object"})
"""Names that may begin a message, besides those in capitals; json says `Object`."""

NO_ORDER = re.compile(r"(a|an|the|it|its|you|your|there|this|that|one|no|in|if not|\w+ing)\b")
"""What an advice does not begin with: it tells the reader what to do."""

OUT = re.compile(
    r"\b(look what|look who|behind (the|it)|has gone|is there no|says not|"
    r"sorry|invalid|illegal|unable to|failed to|cannot be honoured|has it no more|who asks|"
    r"(is|are) none\b(?! of))",
)
"""Turns of phrase that are not plain, besides those that tests/test_words.py watches."""

MUST_ADVISE = ("exists", "disk_full", "permission", "Refused")
"""Errors of these kinds the user can do something about: each says what."""

NO_ADVICE = re.compile(
    r"^read a private file$|^the token file \{\w+\} is empty$|^(file exists|no space left)$"
)
"""What may leave it out: it says it itself, or is of a store for tests."""


def texts(row: Row) -> list[str]:
    return [text for text in (row.operation, row.message, row.advice) if text]


def breaks(row: Row) -> list[str]:
    """The rules that a row breaks."""
    found = [rule for rule, broken in RULES.items() if broken(row)]
    return [f"{rule}: {row}" for rule in found]


def starts_high(row: Row) -> bool:
    first = re.match(r"[A-Z][a-z]+(?![\w-])", row.message)
    return row.kind != "notice" and first is not None and first[0].lower() not in NAMES


def orders_nothing(row: Row) -> bool:
    return bool(NO_ORDER.match(row.advice)) or row.advice[:1].isupper()


def is_long(row: Row) -> bool:
    return any(len(text.split()) > WORDS_MAX for text in texts(row) if row.kind != "notice")


def advises_nothing(row: Row) -> bool:
    """Where the system's or a server's own words are shown, they may be all there is."""
    said = NO_ADVICE.search(row.operation) or NO_ADVICE.search(row.message.rpartition(": ")[2])
    return row.kind in MUST_ADVISE and not (row.advice or said or row.message.endswith("}"))


RULES = {
    "a full stop follows the text: it has none of its own": lambda row: any(
        re.search(r"[^.]\.$|[,:;]$", text) for text in texts(row) if row.kind != "notice"
    ),
    "no exclamation mark": lambda row: any("!" in text.replace("#!", "") for text in texts(row)),
    "one space between words": lambda row: any(
        re.search(r"\S  +\S| $|^ ", text) for text in texts(row) if row.kind != "notice"
    ),
    "a message begins with a small letter": starts_high,
    "an advice begins with what to do": orders_nothing,
    "an operation is a verb with its object": lambda row: bool(
        re.match(r"(the|a|an|it|to|\w+ing)\b", row.operation)
    ),
    "not a message within a message": lambda row: (
        "cannot cannot" in row.message
        or bool(re.search(r"What to do: .*What to do: ", f"{row.message} {row.advice}"))
    ),
    "plain words": lambda row: any(ODD.search(text) or OUT.search(text) for text in texts(row)),
    "short": is_long,
    "what to do": advises_nothing,
}


def test_the_table_has_all_errors() -> None:
    found = {name: len(rows) for name, rows in tables().items()}
    assert sum(found.values()) > 1000
    assert min(found.values()) > 1
    for name, rows in tables().items():
        text = errors.shown(rows)
        assert all(f"{row}" in text and f"## {path}\n" in text for path, row in rows), name


def test_errors_speak_with_one_voice() -> None:
    assert [broken for rows in tables().values() for _, row in rows for broken in breaks(row)] == []


@pytest.mark.parametrize(
    ("row", "count"),
    [
        (Row("io", "read input", "it is gone."), 1),
        (Row("io", "read input", "It is gone!"), 2),
        (Row("io", "read input", "it  is gone", "the file is to be given"), 2),
        (Row("io", "the reading", "it is no file"), 2),
        (Row("exists", "write the output", "it exists"), 1),
        (Row("io", "read input", "it is not there, " * 15 + "and nowhere else"), 1),
        (Row("io", "read input", "Ray says no", "check the file"), 0),
    ],
)
def test_a_row_that_breaks_rules_is_found(row: Row, count: int) -> None:
    assert len(breaks(row)) == count


def test_errors_of_rust_are_found(tmp_path: Path) -> None:
    source = tmp_path / "src/read.rs"
    source.parent.mkdir()
    source.write_text(
        """
        const GONE: &str = "it is gone";
        fn read(n: u64) -> Result<()> {
            let advice = "copy it again";
            let name = match n { 0 => "nothing is there", _ => "too much is there" };
            if n == 1 { return Err(refuse(name)); }
            Err(Error::new(Kind::NotFound, "read input", GONE).with("at", n).advise(advice))
        }
        /// Error::new(Kind::Io, "not", "this comment")
        fn refuse(what: &str) -> Error {
            Error::new(Kind::BadInput, "read input", format!("{} of {what}", self.count))
                .advise_options("give {} or more", [JobOption::SpillDir.named()])
        }
        #[cfg(test)]
        mod tests { fn it() { Error::new(Kind::Io, "a", "b of a test"); } }
        """
    )
    assert [str(row) for _, row in RustErrors([tmp_path]).rows()] == [
        "bad_input | read input | {count} of nothing is there | give --spill-dir or more",
        "bad_input | read input | {count} of too much is there | give --spill-dir or more",
        "not_found | read input | it is gone | copy it again",
    ]


def test_errors_of_python_are_found(tmp_path: Path) -> None:
    (tmp_path / "read.py").write_text(
        '''
def read(n):
    """Raise ValueError("not this")."""
    what = "one is missing" if n else "it is empty"
    if n > 1:
        raise _wrong(what)
    raise OSError(f"cannot read {n}: {what}. What to do: copy it.")

def _wrong(what: str) -> ValueError:
    return ValueError(_text(what, "mend it"))

def _text(what: str, advice: str) -> str:
    return f"cannot read: {what}. What to do: {advice}."
'''
    )
    assert [str(row) for _, row in python_rows(tmp_path)] == [
        "ValueError | read | one is missing | mend it",
        "ValueError | read | it is empty | mend it",
        "OSError | read {n} | one is missing | copy it",
        "OSError | read {n} | it is empty | copy it",
    ]


def test_no_source_with_errors_is_left_out() -> None:
    assert sorted(errors.CRATES.values()) == sorted(
        path.relative_to(TOP).as_posix() for path in TOP.glob("crates/*/src")
    )
    for name, folder in errors.CRATES.items():
        shown = {path for path, _ in tables()[name]}
        for path in sorted((TOP / folder).rglob("*.rs")):
            code = path.read_text(encoding="utf-8").partition("#[cfg(test)]")[0]
            code = re.sub(r"//[^\n]*", "", code)
            apart = "tests" in path.parts or path.name in ("tests.rs", "error.rs", "faulty.rs")
            if re.search(r"\bError::new\(", code) and not apart:
                assert path.relative_to(TOP).as_posix() in shown | SHOWN_ELSEWHERE


SHOWN_ELSEWHERE = frozenset(
    {
        "crates/engine/src/jobs/steps/refusal.rs",
        "crates/tasks/src/spill/record_assembler.rs",
        "crates/storage/src/objects/s3/temporary_credential.rs",
    }
)
"""Files whose errors are all shown where they are called."""


@pytest.mark.parametrize("name", ["", "_python", "_row", "_rust", "_source", "_texts"])
def test_examples_of_the_tool(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"errors{name}"))
    assert not found.failed


def test_a_paragraph_is_taken_apart() -> None:
    row = taken_apart("ValueError", "cannot read a: it is gone. What to do: look.")
    assert (row.operation, row.message, row.advice) == ("read a", "it is gone", "look")
