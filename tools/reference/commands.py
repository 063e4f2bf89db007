"""commands.md: every command with its arguments and options."""

from reference.markdown import code, document, fenced, plain, table
from reference.model import CommandPage, OptionRow, pages

__all__ = ["page"]

_INTRODUCTION = """\
`gristmill COMMAND --help` shows the same on the terminal, and `man gristmill-COMMAND` where the
manual pages are installed. A flag without a default here is off. An option with a value and
without a default is not set.

Exit codes are those of [errors and exit codes](errors.md). What `--json` prints is in
[JSON output](json.md)."""


def page() -> str:
    """Return the page."""
    found = pages()
    listed = table(
        ["command", "what it does"],
        [[f"[`{one.name}`](#{_anchor(one)})", plain(one.summary)] for one in found],
    )
    return document("Commands", _INTRODUCTION, listed, *map(_section, found))


def _anchor(one: CommandPage) -> str:
    return f"gristmill-{one.name.replace(' ', '-')}"


def _section(one: CommandPage) -> str:
    parts = [f"## gristmill {one.name}", fenced(one.usage), *map(plain, one.text)]
    if one.example:
        parts.append(f"Example:\n\n{fenced(one.example, 'sh')}")
    if one.arguments:
        rows = [[code(name), plain(text)] for name, text in one.arguments]
        parts.append(table(["argument", "what it is"], rows))
    if one.options:
        parts.append(_options(one.options))
    return "\n\n".join(parts)


def _options(options: tuple[OptionRow, ...]) -> str:
    columns = 3 if any(option.default for option in options) else 2
    rows = [
        (code(option.name), plain(_with_variable(option)), plain(option.default))
        for option in options
    ]
    head = ("option", "what it does", "default")
    return table(head[:columns], [row[:columns] for row in rows])


def _with_variable(option: OptionRow) -> str:
    if not option.environment:
        return option.text
    return f"{option.text} The variable `{option.environment}` gives it, too."
