"""What goes to the nodes along with a job, which need Ray and nothing else.

    every job                 the engine
    with Python functions     our package and cloudpickle, and modules of the user that are loaded:
                              whole packages, and the modules beside them
    with files of its own     side files, and files and archives of Hadoop Streaming

A node where the same is in the same place takes it from there; another one fetches and unpacks it,
and reads the copies in its place (`gristmill.cluster.actor`). A file of more than 64 MiB stays
behind, and what would make all that more than 256 MiB: the nodes must see it, as they see the
input.
"""

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gristmill import _core
from gristmill.cluster.actor import Packed, digest
from gristmill.cluster.connection import failed
from gristmill.cluster.user_code import UserCode
from gristmill.units import show_bytes

__all__ = ["kept_by", "of_user", "packed", "sources"]

_BYTES_MAX = 256 << 20
"""How much a job takes along."""

_FILE_BYTES_MAX = 64 << 20
"""How large a file may be that goes along."""

_HIDDEN = ("__pycache__", ".")


def packed(code: UserCode) -> list[Packed]:
    """Return what the nodes get; first where the engine is.

    Raises:
        OSError: Something of it cannot be read.

    Example:
        >>> engine, = packed(UserCode())
        >>> [name.partition(".")[0] for name in engine["names"]]
        ['gristmill/_core']
    """
    engine = Path(_core.__file__ or "")
    root = engine.parents[1]
    folders: dict[Path, set[Path]] = {root: {engine}}
    if code.modules is not None:
        folders[root].update(sources(engine.parent))
        for package in _needed():
            folders.setdefault(package.parent, set()).update(sources(package))
        for folder, files in of_user(code.modules).items():
            folders.setdefault(folder, set()).update(files)
    # Scripts find each other by the folder that they are in.
    for path in map(Path, code.files):
        if path.is_dir():
            folders[path] = {file for file in path.rglob("*") if file.is_file()}
        elif path.stat().st_size > _FILE_BYTES_MAX:
            folders[path] = {path}
        else:
            folders.setdefault(path.parent, set()).add(path)
    found, left = list[Packed](), _BYTES_MAX
    for folder, files in folders.items():
        size = sum(file.stat().st_size for file in files)
        goes = size <= left and folder not in files
        left -= size if goes else 0
        found.append(_of_folder(folder, sorted(files), goes=goes))
    return found


def kept_by(ray: Any, along: list[Packed]) -> list[Packed]:  # noqa: ANN401 - a module
    """Return the same without contents, which Ray keeps: 80 MB do not go to nodes that have them.

    Raises:
        OSError: Ray's object store has no room for them.

    Example:
        >>> class Ray:
        ...     put = staticmethod(len)
        >>> engine, = kept_by(Ray, packed(UserCode()))
        >>> engine["files"], engine["kept"]
        ({}, [1])
    """
    return [
        {**one, "files": {}, "kept": [_put(ray, one["files"])]} if one["files"] else one
        for one in along
    ]


def _put(ray: Any, files: dict[str, tuple[int, bytes]]) -> object:  # noqa: ANN401 - a module
    try:
        return ray.put(files)
    except (ray.exceptions.ObjectStoreFullError, ray.exceptions.OutOfDiskError):
        size = show_bytes(sum(len(content) for _, content in files.values()))
        raise failed(
            f"Ray's object store on this node has no room for the {size} that go to its nodes",
            "start Ray with a larger --object-store-memory, or free space in its --temp-dir:"
            " Ray uses no disk that is 95 % full",
        ) from None


def _of_folder(folder: Path, files: list[Path], *, goes: bool) -> Packed:
    names = ["" if file == folder else str(file.relative_to(folder)) for file in files]
    if not goes:
        return {"path": str(folder), "names": names, "files": {}, "kept": [], "sha256": ""}
    contents = {
        name: (stat.S_IMODE(file.stat().st_mode), file.read_bytes())
        for name, file in zip(names, files, strict=True)
    }
    sha256 = digest((name, content) for name, (_, content) in contents.items())
    return {"path": str(folder), "names": names, "files": contents, "kept": [], "sha256": sha256}


def _needed() -> Iterator[Path]:
    """The folders of packages that a worker imports and that are no part of Python."""
    found = find_spec("cloudpickle")
    if found is not None and found.origin is not None:
        yield Path(found.origin).parent


def sources(package: Path) -> Iterator[Path]:
    """Return the files of a package, but for what Python makes itself.

    Example:
        >>> from gristmill import cluster
        >>> "node_probe.py" in [file.name for file in sources(Path(cluster.__file__).parent)]
        True
    """
    for folder, below, names in os.walk(package):
        below[:] = [name for name in below if not name.startswith(_HIDDEN)]
        files = (Path(folder, name) for name in names if not name.endswith((".pyc", ".pyi")))
        yield from filter(_goes, files)


def _goes(file: Path) -> bool:
    """Whether what lies beside a module can go along: editors and others leave odd things there."""
    return not file.name.startswith(".") and file.is_file() and os.access(file, os.R_OK)


def of_user(modules: Iterable[str]) -> dict[Path, set[Path]]:
    """Return the files that go along with these modules, by the folders in which they are found.

    Example:
        >>> of_user([])
        {}
    """
    roots = [Path(entry or ".").absolute() for entry in sys.path]
    found: dict[Path, set[Path]] = {}
    for module in map(Path, modules):
        root = next((root for root in roots if module.is_relative_to(root)), module.parent)
        files = found.setdefault(root, set(filter(_goes, root.glob("*.py"))))
        top = root / module.relative_to(root).parts[0]
        if top.is_dir():
            files.update(sources(top))
        files.add(module)  # it is loaded, wherever a link to it leads
    return found
