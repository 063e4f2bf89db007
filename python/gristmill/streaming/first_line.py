"""What of a job's scripts goes wrong when they start: their first line, or where they are."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

from gristmill.mapreduce.kinds import is_dict

__all__ = ["cannot_start", "remarks", "selects_nothing"]

_STEPS = {"map": "-mapper", "combine": "-combiner", "reduce": "-reducer"}
_SHELLS = ("sh", "bash", "dash", "ksh", "zsh")
_GREPS = ("grep", "egrep", "fgrep", "zgrep", "rg")
_UNIX = "a part of the commands; write its lines as Unix does, as with sed -i 's/\\r$//'"
_LOOK_BYTES = 4096


def remarks(definition: dict[str, Any]) -> list[str]:
    """Return what is to be said of a job's scripts, before they run.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile(suffix=".py") as file:
        ...     _, _ = file.write(b"import sys"), file.flush()
        ...     steps = {"map": {"script": [file.name]}, "combine": None, "reduce": "identity"}
        ...     found = remarks({"links": [], **steps})
        >>> found[0].startswith("-mapper /"), "no #! line" in found[0]
        (True, True)
    """
    links: dict[str, str] = dict(definition["links"])
    found = list[str]()
    for name, option in _STEPS.items():
        step = definition[name]
        words: list[str] = step.get("script", []) if is_dict(step) else []
        if not words:
            continue
        program = words[0]
        path = _path(program, links)
        said = None if path is None else _of(path)
        if said is not None:
            found.append(f"{option} {program}: {said}")
        found += [f"{option} {name}: {said}" for name, said in _given_to_shell(words, links)]
        found += _not_shipped(option, words, definition)
    return found


def _not_shipped(option: str, words: list[str], definition: dict[str, Any]) -> Iterator[str]:
    """Of the words of a command, the files of this directory that tasks do not see in theirs."""
    shipped = {name for kind in ("links", "archives") for name, _ in definition.get(kind, ())}
    for number, word in enumerate(words):
        name = word.removeprefix("./")
        is_file = PurePath(name).suffix and "/" not in name and Path(name).is_file()
        if is_file and name not in shipped and not (number == 0 and shutil.which(word)):
            yield (
                f"{option} {' '.join(words)}: {name} is in this directory but was not shipped: add "
                f"-files {name}"
            )


def cannot_start(definition: dict[str, Any]) -> list[str]:
    """Return why scripts cannot start on this machine, each with what to do.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _, _ = file.write(b"#!/no/python2.4"), file.flush()
        ...     steps = {"map": {"script": [file.name]}, "combine": None, "reduce": "identity"}
        ...     (found,) = cannot_start({"links": [], **steps})
        >>> found.partition(" begins with ")[2].partition(". ")[0]
        '#!/no/python2.4, which is not there'
    """
    links: dict[str, str] = dict(definition["links"])
    found = list[str]()
    for name, option in _STEPS.items():
        step = definition[name]
        words: list[str] = step.get("script", []) if is_dict(step) else []
        path = _path(words[0], links) if words else None
        said = None if path is None else _hopeless(_first_line(path))
        if said is not None:
            found.append(f"{option} {words[0]} {said}")
    return found


def selects_nothing(definition: dict[str, Any]) -> list[str]:
    """Return what to do about scripts that fail where they select no line, as grep does.

    Example:
        >>> steps = {"map": {"script": ["grep", "x"]}, "combine": None, "reduce": "identity"}
        >>> selects_nothing(steps)[0].partition(". ")[0]
        '-mapper grep ends with exit code 1 where no line matches'
    """
    found = list[str]()
    for name, option in _STEPS.items():
        step = definition[name]
        words: list[str] = step.get("script", []) if is_dict(step) else []
        program = PurePath(words[0]).name if words else ""
        if program in _GREPS:
            found.append(
                f"{option} {program} ends with exit code 1 where no line matches. What to do: if"
                " that is what happened, add -D stream.non.zero.exit.is.failure=false."
            )
    return found


def _hopeless(first: bytes) -> str | None:
    words = first.removeprefix(b"#!").split()
    if not first.startswith(b"#!") or not words:
        return None
    is_env = PurePath(os.fsdecode(words[0])).name == "env"
    # What the interpreter itself is given may end so: perl does not mind.
    if first.endswith(b"\r") and len(words) == 1 + is_env:
        return (
            "cannot start: its first line ends in a carriage return, which the system takes for a "
            "part of the interpreter's name. What to do: write its lines as Unix does, as with "
            "sed -i 's/\\r$//'."
        )
    missing = None if is_env else _missing_interpreter(first)
    if missing is None:
        return None
    begins = first.decode(errors="replace").strip()
    return (
        f"begins with {begins}, which is not there. What to do: install it, or name another "
        "interpreter in the script's first line."
    )


def _path(word: str, links: dict[str, str]) -> Path | None:
    """The script that a word names, if it is known before the job begins."""
    path = Path(links.get(word.removeprefix("./"), word))
    return path if path.is_absolute() and path.is_file() else None


def _given_to_shell(words: list[str], links: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The script that a shell is to run, if the shell will stumble over the ends of its lines."""
    shell = PurePath(words[0]).name
    script = next((word for word in words[1:] if not word.startswith("-")), None)
    path = _path(script, links) if script and shell in _SHELLS and "-c" not in words else None
    if script and path and _first_line(path).endswith(b"\r"):
        yield script, f"its lines end in a carriage return, which {shell} takes for {_UNIX}"


def _first_line(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_LOOK_BYTES).partition(b"\n")[0]
    except OSError:
        return b""  # to start it shows why


def _missing_interpreter(first: bytes) -> str | None:
    """The program that a first line names, if this machine has not got it."""
    words = first.removeprefix(b"#!").decode(errors="replace").split()
    if not words:
        return None
    if PurePath(words[0]).name == "env" and len(words) == 2:
        return None if shutil.which(words[1]) else words[1]
    return words[0] if PurePath(words[0]).is_absolute() and not Path(words[0]).exists() else None


def _of(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            begin = file.read(_LOOK_BYTES)
    except OSError:
        return None  # to start it shows why
    first, _, _ = begin.partition(b"\n")
    if not begin.startswith(b"#!"):
        is_meant = path.suffix == ".sh" or not begin or b"\0" in begin
        return (
            None
            if is_meant
            else (
                "its first line is no #! line, so the system's shell runs it; "
                "begin it with a line such as #!/usr/bin/env python3, or name the interpreter too"
            )
        )
    if first.endswith(b"\r"):
        return (
            "its first line ends in a carriage return, which the system takes for a part of the "
            "interpreter's name; write its lines as Unix does, as with sed -i 's/\\r$//'"
        )
    missing = _missing_interpreter(first)
    if missing is not None:
        begins = first.decode(errors="replace").strip()
        return f"it begins with {begins}, and {missing} is not there on this machine"
    return None
