"""errors.md: exit codes, the kinds of errors, and the exceptions of Python."""

import re

from reference import TOP
from reference.markdown import code, document, plain, table

__all__ = ["kinds", "page"]

_EXIT_CODES = [
    ["0", "The job did what it was asked. (`sort -c`: the input is in order.)"],
    [
        "1",
        "The job failed, or a check found something: the error says what."
        " (`grep`: no line was selected.)",
    ],
    [
        "2",
        "The command line is wrong; nothing was done."
        " (`grep` and `sort -c`: also if a file cannot be read.)",
    ],
    ["5", "`gristmill streaming`: the output exists, or the input does not, as in Hadoop."],
    ["130, 143", "Ctrl-C or a signal ended the job; it leaves nothing behind that looks whole."],
    [
        "141",
        "The reader of the output's pipe went away, as in `gristmill sort FILE | head`: nothing is"
        " wrong, and nothing is said.",
    ],
]

_INTRODUCTION = """\
An error is one paragraph on standard error: what the job could not do, where (file, offset,
record), and what to do. A program should test the kind of the error, which is stable, not its text.
`--json` prints it as `error.kind`; in Python it is `gm.report_of(error).error.kind`."""

_EXCEPTION = re.compile(r"((?:Kind::\w+[\s|]*)+)=>\s*\{?\s*Py(\w+)::new_err")


def page() -> str:
    """Return the page."""
    raised = _exceptions()
    rows = [[code(name), plain(text), code(raised[variant])] for variant, name, text in kinds()]
    return document(
        "Errors and exit codes",
        _INTRODUCTION,
        "## Exit codes",
        table(["code", "meaning"], _EXIT_CODES),
        "## Kinds",
        table(["kind", "what went wrong", "in Python"], rows),
        "[When it fails](../guide/when-it-fails.md) says how to find and correct an error in your"
        " own functions.",
    )


def kinds() -> list[tuple[str, str, str]]:
    """Return the variant, the name and the meaning of each kind, from the engine's own text."""
    source = (TOP / "crates/base/src/error.rs").read_text(encoding="utf-8")
    body = source.partition("pub enum Kind {")[2].partition("\n}")[0]
    names = dict(re.findall(r'Kind::(\w+) => "(\w+)"', source))
    found = re.findall(r"((?:\s*///[^\n]*\n)+)\s*(\w+),", body)
    return [
        (variant, names[variant], " ".join(re.sub(r"\s*///", " ", text).split()))
        for text, variant in found
    ]


def _exceptions() -> dict[str, str]:
    source = (TOP / "crates/python/src/error.rs").read_text(encoding="utf-8")
    return {
        variant: exception
        for variants, exception in _EXCEPTION.findall(source)
        for variant in re.findall(r"Kind::(\w+)", variants)
    }
