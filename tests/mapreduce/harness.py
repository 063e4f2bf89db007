"""What the tests of jobs share."""

import bz2
import gzip
import lzma
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import gristmill as gm
from gristmill import _core

Compress = Callable[[bytes], bytes]


def words(line: str) -> Iterator[tuple[str, int]]:
    """The map of all examples."""
    for word in line.split():
        yield word, 1


def total(key: Any, values: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """A reduction."""
    yield key, sum(values)


def itself(record: Any) -> Iterator[Any]:
    """A map."""
    yield record


def listed(key: Any, values: Iterable[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """A reduction that gives its values."""
    yield key, list(values)


def run(source: Any, folder: Path, **options: Any) -> gm.Result:
    """Run a job, or one of this source; a list is its items."""
    if not isinstance(source, gm.Job | list):
        return gm.Job(source, output=options.pop("output", gm.kv(folder / "out")), **options).run()
    options.setdefault("output", gm.kv(folder / "out"))
    return gm.Job(gm.items(source), **options).run(workers=1, no_sync=True)


def native(codec: str) -> Callable[[Path, bytes], None]:
    """Write with our own codec."""

    def write(path: Path, data: bytes) -> None:
        path.unlink(missing_ok=True)
        writer = _core.CompressedWriter(str(path), codec)
        writer.write(data)
        writer.close()

    return write


def foreign(compress: Compress) -> Callable[[Path, bytes], None]:
    """Write with somebody else's codec."""
    return lambda path, data: void(path.write_bytes(compress(data)))


def void(_: object) -> None:
    """Nothing."""


CODECS: dict[str, tuple[str, Callable[[Path, bytes], None]]] = {
    "none": ("", foreign(bytes)),
    "gzip": (".gz", foreign(gzip.compress)),
    "bzip2": (".bz2", foreign(bz2.compress)),
    "xz": (".xz", foreign(lzma.compress)),
    "zstd": (".zst", native("zstd")),
    "lz4": (".lz4", native("lz4")),
    "snappy": (".snappy", native("snappy")),
    "gzip without a suffix": ("", foreign(gzip.compress)),
}


def gristmill(
    *arguments: str | Path, cwd: Path, status: int = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the program, in a folder."""
    from tests.cli.harness import GRISTMILL, clean_environment

    done = subprocess.run(
        [GRISTMILL, *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        cwd=cwd,
        env=clean_environment(**environment),
        timeout=60,
        check=False,
    )
    assert done.returncode == status, f"{done.returncode}\n{done.stdout}{done.stderr}"
    return done
