"""Where the input of a step lies when it begins: in the page cache, or on the device alone."""

import os
from collections.abc import Iterable, Iterator
from glob import glob
from pathlib import Path

from gristmill import _core
from gristmill.analysis.bench.bench_request import Cache
from gristmill.analysis.bench.errors import BenchError

__all__ = ["bring_about", "files_of"]

_BLOCK_BYTES = 4 << 20
_DROP = Path("/proc/sys/vm/drop_caches")


def bring_about(cache: Cache, inputs: Iterable[str]) -> None:
    """Read the inputs into the page cache (`warm`), or out of it (`cold`, `dropped`).

    `cold` asks the kernel to forget the pages of these files; `dropped`, all that it has cached,
    for which one must be root. Inputs in stores are left alone.

    Raises:
        BenchError: Only root may drop all caches.

    Example:
        >>> bring_about("cold", ["s3://bucket/data"])
    """
    if cache == "dropped":
        _drop()
        return
    for file in files_of(inputs):
        if cache == "warm":
            _read(file)
        else:
            _forget(file)


def files_of(inputs: Iterable[str]) -> Iterator[Path]:
    """Return the files of inputs, those in stores left out.

    Example:
        >>> list(files_of(["s3://bucket/data", "no such file"]))
        []
    """
    for one in inputs:
        if _core.is_remote(one):
            continue
        found = glob(one)  # noqa: PTH207 - of a job file it may be a pattern, also an absolute one
        for top in map(Path, found):
            yield from (path for path in (top, *sorted(top.rglob("*"))) if path.is_file())


def _read(path: Path) -> None:
    buffer = bytearray(_BLOCK_BYTES)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def _forget(path: Path) -> None:
    if not hasattr(os, "posix_fadvise"):
        raise BenchError(
            "cannot make the input cold: this system has no posix_fadvise."
            " What to do: leave out --cache cold."
        )
    with path.open("rb") as file:
        os.fsync(file.fileno())  # pages that are not written yet cannot be forgotten
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _drop() -> None:
    os.sync()
    try:
        _DROP.write_text("3\n")
    except OSError as error:
        raise BenchError(
            f"cannot drop the caches of the machine: {_DROP}: {str(error.strerror).lower()}."
            " What to do: run as root, or take --cache cold, which needs no rights."
        ) from error
