"""What goes to the head along with a command: Gristmill, the user's files, and the command line.

    on_head.py      what the job of Ray runs
    told.json       the command line, the folder; no variables: see secrets.py
    lib/            Gristmill, and the packages that it needs
    files/…         files of this machine, each under its path: relative names and `__file__` hold

The same files make the same package, byte for byte: a cluster that keeps it gets it once.
"""

import hashlib
import io
import os
import stat
import sys
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from gristmill import _core
from gristmill.cluster.connection import variables_of_stores, wrong
from gristmill.cluster.packing import sources
from gristmill.cluster.submission import on_head
from gristmill.names import to_json
from gristmill.units import show_bytes

__all__ = ["Command", "Package", "packaged"]

_NEEDED = ("click", "cloudpickle", "platformdirs")
"""Packages without which the command does not run there."""

_BYTES_MAX = 100_000_000
"""How large a package may be: the dashboard takes 100 MiB."""

_LEVEL = 1
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Command:
    """A command line, as it runs on the head."""

    words: Sequence[str]
    files: Iterable[str] = ()
    """Files of this machine that it reads there, by whole paths."""
    roots: Sequence[str] = ()
    """Folders of this machine in which Python finds the user's modules."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package, and its name."""

    name: str
    content: bytes


def packaged(command: Command) -> Package:
    """Return what goes to the head.

    Raises:
        ValueError: It is too large.
        OSError: A file of it cannot be read.

    Example:
        >>> package = packaged(Command(["teragen", "10", "/shared/data"]))
        >>> package.name.startswith("gristmill_"), package.name.endswith(".zip")
        (True, True)
    """
    told = {
        "words": list(command.words),
        "folder": _inside(str(Path.cwd())),
        "roots": [_inside(root) for root in command.roots],
        "awaits_variables": bool(variables_of_stores()),
        "platform": f"{sys.platform} {os.uname().machine}",
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as target:
        _put(target, "on_head.py", Path(on_head.__file__))
        _write(target, "told.json", to_json(told).encode())
        for name, file in _of_us():
            _put(target, f"lib/{name}", file)
        for name in sorted(set(command.files)):
            _put(target, _inside(name), Path(name))
    content = made.getvalue()
    if len(content) > _BYTES_MAX:
        raise wrong(
            f"cannot run the job on the cluster: it would take {show_bytes(len(content))} along,"
            f" and the dashboard takes {show_bytes(_BYTES_MAX)}. What to do: put large files in a"
            " place that all nodes see, and name them there."
        )
    return Package(f"gristmill_{hashlib.sha256(content).hexdigest()[:32]}.zip", content)


def _inside(path: str) -> str:
    """The name in the package of a file or folder of this machine."""
    return f"files{os.path.abspath(path)}"  # noqa: PTH100 - links stay


def _of_us() -> list[tuple[str, Path]]:
    """Gristmill's files and those of packages that it needs, with their names."""
    folders = [Path(_core.__file__ or "").parent]
    for name in _NEEDED:
        found = find_spec(name)
        if found is not None and found.origin is not None:
            folders.append(Path(found.origin).parent)
    return sorted(
        (str(file.relative_to(folder.parent)), file)
        for folder in folders
        for file in sources(folder)
    )


def _put(target: zipfile.ZipFile, name: str, file: Path) -> None:
    _write(target, name, file.read_bytes(), stat.S_IMODE(file.stat().st_mode))


def _write(target: zipfile.ZipFile, name: str, content: bytes, mode: int = 0o600) -> None:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.external_attr = (stat.S_IFREG | mode) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    target.writestr(entry, content, compresslevel=_LEVEL)
