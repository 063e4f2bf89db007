"""GNU sort's options: which of them `gristmill sort` has under another name, and which not yet.

    -S 1G     ──▶ its name here is --memory
    -k2       ──▶ not here yet
    --wings   ──▶ unknown to GNU sort, too: click's own error

The table is that of GNU coreutils 9; a test compares it with the installed sort.
"""

from dataclasses import dataclass

import click

from gristmill.cli.failures import Refused

__all__ = ["GNU_OPTIONS", "GnuOption", "explained"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GnuOption:
    """An option of GNU sort that `gristmill sort` does not have under this name."""

    letter: str = ""
    """Its short name, with the dash; empty where there is none."""
    word: str
    """Its long name, with the dashes."""
    ours: str = ""
    """Its name here, with the form of its value; empty where it is not here yet."""
    advice: str = ""
    """What to do in the meantime, if there is something."""

    @property
    def names(self) -> tuple[str, ...]:
        """Both names."""
        return (self.letter, self.word) if self.letter else (self.word,)

    @property
    def shown(self) -> str:
        """Both names, as in an error."""
        return f"{self.letter} ({self.word})" if self.letter else self.word


GNU_OPTIONS = (
    GnuOption(letter="-S", word="--buffer-size", ours="--memory SIZE"),
    GnuOption(letter="-T", word="--temporary-directory", ours="--spill-dir PATH"),
    GnuOption(word="--parallel", ours="--workers N"),
    GnuOption(letter="-b", word="--ignore-leading-blanks"),
    GnuOption(letter="-d", word="--dictionary-order"),
    GnuOption(letter="-f", word="--ignore-case"),
    GnuOption(letter="-g", word="--general-numeric-sort"),
    GnuOption(letter="-h", word="--human-numeric-sort", advice="for help, give --help"),
    GnuOption(letter="-i", word="--ignore-nonprinting"),
    GnuOption(letter="-k", word="--key"),
    GnuOption(letter="-m", word="--merge", advice="leave it out: the output is the same"),
    GnuOption(letter="-M", word="--month-sort"),
    GnuOption(letter="-n", word="--numeric-sort"),
    GnuOption(letter="-R", word="--random-sort"),
    GnuOption(letter="-t", word="--field-separator"),
    GnuOption(letter="-V", word="--version-sort"),
    GnuOption(letter="-z", word="--zero-terminated"),
    GnuOption(letter="-C", word="--check=quiet", advice="give -c: the exit code is the same"),
    GnuOption(word="--check=silent", advice="give -c: the exit code is the same"),
    GnuOption(word="--check=diagnose-first", ours="-c"),
    GnuOption(word="--batch-size", advice="leave it out: --memory decides it"),
    GnuOption(word="--compress-program"),
    GnuOption(word="--debug"),
    GnuOption(word="--files0-from"),
    GnuOption(word="--random-source"),
    GnuOption(word="--sort"),
)
"""Those that need an answer: -c, -o, -r, -s and -u mean the same here."""


def explained(error: click.UsageError, arguments: list[str]) -> click.UsageError:
    """Return what to say of a wrong command line of `sort` in place of click's own error.

    Args:
        error: Click's error.
        arguments: The command line.
    """
    if not isinstance(error, (click.NoSuchOption, click.BadOptionUsage)):
        return error
    found = _find(error.option_name, arguments)
    if found is None:
        return error
    if found.ours:
        what = f"{found.shown} of GNU sort has another name here"
        return Refused(what, found.advice or f"give {found.ours}", error.ctx)
    return Refused(f"{found.shown} of GNU sort is not here yet", found.advice, error.ctx)


def _find(name: str, arguments: list[str]) -> GnuOption | None:
    """The option that was meant; a long name may be cut short, as GNU has it."""
    if name == "--check":  # it has a value, which is where the two sorts differ
        given = next((word for word in arguments if word.startswith("--check=")), name)
        return next((one for one in GNU_OPTIONS if one.word == given), None)
    exact = [one for one in GNU_OPTIONS if name in one.names]
    if exact or not name.startswith("--") or name == "--version":
        return exact[0] if exact else None
    begun = [one for one in GNU_OPTIONS if one.word.startswith(name) and "=" not in one.word]
    return begun[0] if len(begun) == 1 else None
