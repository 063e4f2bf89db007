"""One schema for all parts of an output: those that are narrower are written anew.

    part ─▶ .part.new, beside it ─rename─▶ part        in a store: put in its place
    sizes ─▶ _SUCCESS

A task knows the columns of its own part alone. So this comes after the last task, and after the
commit: the engine has no step between. If the process is killed here, the output is whole, and
each part has all its values; some may have other columns than the rest. See
docs/decisions/one-schema.md.
"""

import json
import os
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from gristmill import _core
from gristmill.locations import is_remote
from gristmill.mapreduce.formats import BadRecord, Output
from gristmill.mapreduce.result import Part, of_output, parts_of, success_of

__all__ = ["with_one_schema"]


def with_one_schema(main: Output, named: Mapping[str, Output]) -> tuple[Part, ...]:
    """Give the parts of each output of a job the columns of all; returns the parts.

    Raises:
        BadRecord: No columns hold the records of all parts.
        OSError: A part cannot be read or written.
    """
    parts = parts_of(main.folder)
    with ExitStack() as files:
        try:
            renewed = dict(_renewed(parts, main.folder, {"part": main, **named}, files))
        except BadRecord as error:
            what = f"cannot give the parts of {main.folder} one schema: {error.what}"
            raise BadRecord(f"{what}. They stay as they were written", error.advice) from None
        if not renewed:
            return parts
        parts = tuple(
            replace(part, bytes=renewed[part.name][0]) if part.name in renewed else part
            for part in parts
        )
        for name, (_, source) in renewed.items():
            _put(source, f"{main.folder}/{name}")
    _tell_sizes(main.folder, parts)
    return parts


def _renewed(
    parts: Iterable[Part], folder: str, outputs: Mapping[str, Output], files: ExitStack
) -> Iterator[tuple[str, tuple[int, str]]]:
    """Write narrower parts anew: by name, how many bytes the new file has, and its path."""
    for name, form in outputs.items():
        own = of_output(parts, name)
        paths = [f"{folder}/{part.name}" for part in own]
        for number, write in form.narrower(paths) if len(paths) > 1 else ():
            target = files.enter_context(_beside(paths[number]))
            yield own[number].name, (write(target), target)


def _tell_sizes(folder: str, parts: Sequence[Part]) -> None:
    """Let the `_SUCCESS` of an output have the sizes of its parts."""
    success = success_of(folder)
    sizes = {part.name: part.bytes for part in parts}
    for part in success["parts"]:
        part["bytes"] = sizes[part["name"]]
    success["bytes"] = sum(sizes.values())
    path = f"{folder}/_SUCCESS"
    with _beside(path) as target:
        text = json.dumps(success, indent=2, ensure_ascii=False)
        Path(target).write_text(f"{text}\n", encoding="utf-8")
        _put(target, path)


def _put(source: str, path: str) -> None:
    """Put a file of this machine in the place of another."""
    if is_remote(path):
        _core.put_file(source, path)
        return
    with Path(source).open("rb") as file:
        os.fsync(file.fileno())
    Path(source).replace(path)


@contextmanager
def _beside(path: str) -> Generator[str]:
    """A file on this machine, where a rename to the path can be made; it is gone at the end."""
    if is_remote(path):
        with tempfile.TemporaryDirectory() as folder:
            yield str(Path(folder, "new"))
        return
    target = Path(path).with_name(f".{Path(path).name}.new")
    try:
        yield str(target)
    finally:
        with suppress(FileNotFoundError):
            target.unlink()
