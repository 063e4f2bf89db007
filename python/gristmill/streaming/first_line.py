"""Scripts whose first line has the system run them otherwise than was meant."""

from pathlib import Path
from typing import Any

from gristmill.mapreduce.kinds import is_dict

__all__ = ["remarks"]

_STEPS = {"map": "-mapper", "combine": "-combiner", "reduce": "-reducer"}
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
        path = Path(links.get(program.removeprefix("./"), program))
        said = _of(path) if path.is_absolute() and path.is_file() else None
        if said is not None:
            found.append(f"{option} {program}: {said}")
    return found


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
    return None
