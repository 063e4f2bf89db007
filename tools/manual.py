"""The manual pages: gristmill.1, and gristmill-NAME.1 for each command, of the texts of the help.

    python tools/manual.py          writes them where the wheel takes them from

`make dist` calls it. The wheel brings them to share/man/man1 of the environment that it is
installed in.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from reference.environment import OF_OTHERS, OURS
from reference.model import CommandPage, OptionRow, pages

from gristmill import __version__
from gristmill.cli.render.overview import overview

__all__ = ["FOLDER", "made", "write"]

FOLDER = Path(__file__).parents[1] / "gristmill._core.data/data/share/man/man1"

_ABOUT = "sort, group and count data that is bigger than memory"
_EXIT = (
    ("0", "The command did what it was asked."),
    ("1", "The job failed, or a check found something: the message says what."),
    ("2", "The command line is wrong; nothing was done."),
    ("130", "Ctrl-C ended it."),
)


def made() -> dict[str, str]:
    """Return the pages by the names of their files."""
    found = pages()
    below: dict[str, list[CommandPage]] = {}
    for one in found:
        below.setdefault(one.name.partition(" ")[0], []).append(one)
    result = {"gristmill.1": _program(found)}
    for name, (page, *rest) in below.items():
        result[f"gristmill-{name}.1"] = _command(page, rest)
    return result


def _program(found: list[CommandPage]) -> str:
    names = [one.name for one in found if " " not in one.name]
    summaries = {one.name: one.summary for one in found}
    lines = overview(names, summaries.__getitem__)
    variables = {**OURS, **OF_OTHERS}
    return _page(
        "gristmill",
        _ABOUT,
        [
            _section("SYNOPSIS", [".B gristmill", r"[\fIOPTIONS\fR] \fICOMMAND\fR [\fIARG\fR]..."]),
            _section(
                "DESCRIPTION",
                [
                    _text("Runs a job on this machine or on a Ray cluster, and proves its output."),
                    _text("Each command has its own page, such as gristmill-sort(1)."),
                ],
            ),
            _section("COMMANDS", [".nf", *map(_text, lines), ".fi"]),
            _section(
                "OPTIONS",
                [
                    *_item("-h, --help", "Show all commands."),
                    *_item("--version", "Print the version; with --json what was built, and how."),
                ],
            ),
            _section("EXIT STATUS", [line for code, text in _EXIT for line in _item(code, text)]),
            _section(
                "ENVIRONMENT",
                [line for name, text in variables.items() for line in _item(name, text)],
            ),
            _see_also(f"gristmill-{name}" for name in names),
        ],
    )


def _command(one: CommandPage, below: list[CommandPage]) -> str:
    sections = [
        _section("SYNOPSIS", [".B " + _text(one.usage)]),
        _section("DESCRIPTION", _paragraphs(one.text)),
    ]
    if one.arguments:
        rows = [line for name, text in one.arguments for line in _item(name, text)]
        sections.append(_section("ARGUMENTS", rows))
    if one.options:
        sections.append(_section("OPTIONS", _options(one.options)))
    for other in below:
        body = [".B " + _text(other.usage), ".PP", *_paragraphs(other.text)]
        title = f"gristmill {other.name}".upper()
        sections.append(_section(title, [*body, *_options(other.options)]))
    if one.example:
        sections.append(_section("EXAMPLE", [".nf", _text(one.example), ".fi"]))
    sections.append(_see_also(["gristmill"]))
    return _page(f"gristmill-{one.name}", one.summary[:1].lower() + one.summary[1:], sections)


def _options(options: tuple[OptionRow, ...]) -> list[str]:
    lines: list[str] = []
    for option in options:
        text = option.text
        if option.default:
            text += f" Default: {option.default}."
        if option.environment:
            text += f" The variable {option.environment} gives it, too."
        lines += _item(option.name, text)
    return lines


def _page(name: str, about: str, sections: Iterable[list[str]]) -> str:
    lines = [
        r".\" Made by `make manual` from the table of options.",
        f'.TH "{name.upper()}" "1" "" "Gristmill {__version__}" "Gristmill"',
        *_section("NAME", [rf"{_text(name)} \- {_text(about)}"]),
        *(line for section in sections for line in section),
    ]
    return "\n".join(lines) + "\n"


def _section(title: str, body: Iterable[str]) -> list[str]:
    return [f'.SH "{title}"', *body]


def _item(term: str, text: str) -> list[str]:
    return [".TP", rf"\fB{_text(term)}\fR", _text(text)]


def _paragraphs(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for line in (_text(text), ".PP")][:-1]


def _see_also(names: Iterable[str]) -> list[str]:
    return _section("SEE ALSO", [", ".join(rf"\fB{_text(name)}\fR(1)" for name in names)])


def _text(text: str) -> str:
    r"""A line of text, in which roff sees nothing to act on.

    >>> print(_text(".a -b 'c' d`e"), _text("É"))
    \&.a \-b 'c' de \[u00C9]
    """
    plain = text.replace("`", "").replace("\\", r"\e").replace("-", r"\-")
    plain = "".join(one if one.isascii() else rf"\[u{ord(one):04X}]" for one in plain)
    return rf"\&{plain}" if plain.startswith((".", "'")) else plain


def write(folder: Path) -> None:
    """Write the pages; those of commands that are gone are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = made()
    for path in folder.glob("*.1"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(FOLDER)
