"""Where a job was begun: what its history says of the command line, without secrets, and the host.

    sys.argv ──without_secrets──▶ argv ─┐
             ──hidden_in──────▶ hidden ─┼──▶ _core.History
    the machine's name ─────────────────┘

A history outlives its job and is shown to others, so that a word which may be a secret is never in
it: what a name like `password` or `api_key` is given, what a URL has before its host, and all
variables of the environment that the command line sets.
"""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from gristmill import _core
from gristmill.history.home import jobs_folder
from gristmill.names import show_text

__all__ = ["ON_HEAD", "hidden_in", "place", "without_secrets"]

ON_HEAD = "GRISTMILL_ON_HEAD"
"""A variable that a submitted command has on the head of its cluster: its files go when it ends."""

HIDDEN = "***"

_TELLING = (
    r"passw|passphrase|pwd|secret|token|credential|authorization|bearer|signature|cookie"
    r"|(?:access|account|api|auth|private|encryption|ssh)[._-]?key|sharedkey"
)
#: Patterns are compiled where a word needs them, which few do: they take a quarter of a megabyte.
_NAME_IS_SECRET = rf"(?i){_TELLING}"
_ASSIGNED = rf"(?is)([\w.\-]*(?:{_TELLING})[\w.\-]*[\"']?\s*[=:]\s*)(?!//).+"
_AFTER_OPTION = rf"(?i)(--?[\w\-]*(?:{_TELLING})[\w\-]*\s+)[^\s\-]\S*"
_BEARER = r"(?i)\b(bearer|basic)\s+\S+"
_USER_IN_URL = r"(?<=\w)(?<!\babfs)(?<!\babfss)(://)[^\s/@]+@"  # Azure's container is no secret
#: Only a word with one of these can hold a secret with its name; few file names have one.
_CAN_TELL = re.compile(r"[=:@\s]")
_SETS_VARIABLE = frozenset({"-cmdenv", "--cmdenv"})


def place(*, keep_short: bool) -> "_core.History":
    """Return where the history of a job goes that begins now, and what it says of its beginning."""
    return _core.History(
        jobs_folder(),
        keep_short=keep_short,
        code_goes=ON_HEAD in os.environ,
        argv=_command_line(),
        host=show_text(os.uname().nodename),
        hidden=hidden_in(sys.argv[1:]),
    )


def hidden_in(words: Sequence[str]) -> list[tuple[str, str]]:
    """Return what of a command line is hidden, as errors may quote it, and what stands for it.

    Errors end with a command that works as printed, so that they quote the words that they were
    given; a history keeps these errors.

    Example:
        >>> hidden_in(["-cmdenv", "A=b", "--token", "x y", "in"])
        [('A=b', 'A=***'), ("--token 'x y'", '--token ***'), ('--token x y', '--token ***')]
    """
    pairs: list[tuple[str, str]] = []
    for before, word, told in zip(["", *words], words, without_secrets(words), strict=False):
        if told == HIDDEN:  # the name before it says what it is: alone it may be any word
            pairs += [(f"{before} {form}", f"{before} {HIDDEN}") for form in _forms(word)]
        elif told != word:
            pairs += [(form, told) for form in _forms(word)]
    return [(show_text(word), show_text(told)) for word, told in pairs]


def _forms(word: str) -> list[str]:
    """A word as a shell needs it, and as it is."""
    from shlex import quote

    return list(dict.fromkeys([quote(word), word]))


def without_secrets(words: Iterable[str]) -> list[str]:
    """Return the words of a command line, with `***` in the place of what may be a secret.

    Example:
        >>> without_secrets(["job.py", "--db-password", "x", "--set", "api_key=y", "s3://a:b@c/d"])
        ['job.py', '--db-password', '***', '--set', 'api_key=***', 's3://***@c/d']
    """
    found: list[str] = []
    before = ""
    for word in words:
        found.append(_without_secret(word, before))
        before = word
    return found


def _without_secret(word: str, before: str) -> str:
    if before in _SETS_VARIABLE:
        return f"{word.partition('=')[0]}={HIDDEN}"
    if before.startswith("-") and "=" not in before and re.search(_NAME_IS_SECRET, before):
        return HIDDEN
    if not _CAN_TELL.search(word):
        return word
    word = re.sub(_BEARER, rf"\1 {HIDDEN}", word)
    word = re.sub(_AFTER_OPTION, rf"\1{HIDDEN}", word)
    word = re.sub(_USER_IN_URL, rf"\1{HIDDEN}@", word)
    return re.sub(_ASSIGNED, rf"\1{HIDDEN}", word)


def _command_line() -> list[str]:
    """The command line as a user would type it again: `gristmill` by its name."""
    first, *rest = sys.argv or [""]
    path = Path(first)
    program = ["python", first]
    if path.name == "__main__.py":
        program = [path.parent.name]
    elif path.suffix != ".py" and path.name not in ("", "-c", "-m"):
        program = [path.name]
    return [*program, *without_secrets(rest)]
