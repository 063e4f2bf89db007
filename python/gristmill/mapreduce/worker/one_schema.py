"""One schema for all parts of an output: those that are narrower are written anew.

    last task ─▶ part ─▶ .part.new, beside it ─rename─▶ part ─▶ commit     `renewed`, in a worker
    last task ─▶ commit ─▶ part ─▶ a file of this machine ─put─▶ part      `renewed_in_store`
                           sizes ─▶ _SUCCESS

A task knows the columns of its own part alone. What tasks send to a store can be read only once
it is published: if the process is killed then, the output is whole and each part has all its
values, but some may have other columns than the rest. See docs/decisions/one-schema.md.
"""

import json
import tempfile
from collections.abc import Container, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from gristmill import _core
from gristmill.locations import is_remote
from gristmill.mapreduce.formats.format import BadRecord, Output
from gristmill.mapreduce.results.result import Part, of_output, parts_of, success_of

__all__ = ["renewed", "renewed_in_store"]


def renewed(
    folder: str, files: Iterable[Mapping[str, Any]], outputs: Mapping[str, Output]
) -> list[dict[str, Any]]:
    """Give files of outputs that are not published yet the columns of all.

    Args:
        folder: Where they are.
        files: Their names, records and bytes, as the engine's UserTaskFile has them.
        outputs: What each output is by its name; the main one is `part`.

    Returns:
        Those that were written anew, with their new lengths.

    Raises:
        BadRecord: No columns hold the records of all files.
        OSError: A file cannot be read or written.
    """
    parts = [Part(file["name"], file["records"], file["bytes"]) for file in files]
    with ExitStack() as made:
        found = dict(_narrower(parts, folder, outputs, made))
        for name, (_, source) in found.items():
            Path(source).replace(Path(folder, name))
    return [
        {"name": part.name, "records": part.records, "bytes": found[part.name][0]}
        for part in parts
        if part.name in found
    ]


def renewed_in_store(main: Output, named: Mapping[str, Output]) -> tuple[Part, ...]:
    """Give the published parts of a job's outputs the columns of all; returns the parts.

    Raises:
        BadRecord: No columns hold the records of all parts.
        OSError: A part cannot be read or written.
    """
    parts = parts_of(main.folder)
    with ExitStack() as made:
        try:
            found = dict(_narrower(parts, main.folder, {"part": main, **named}, made))
        except BadRecord as error:
            what = f"cannot give the parts of {main.folder} one schema: {error.what}"
            raise BadRecord(f"{what}. They stay as they were written", error.advice) from None
        if not found:
            return parts
        parts = tuple(
            replace(part, bytes=found[part.name][0]) if part.name in found else part
            for part in parts
        )
        for name, (_, source) in found.items():
            _core.put_file(source, f"{main.folder}/{name}")
    _tell_sizes(main.folder, parts, found)
    return parts


def _narrower(
    parts: Iterable[Part], folder: str, outputs: Mapping[str, Output], made: ExitStack
) -> Iterator[tuple[str, tuple[int, str]]]:
    """Write narrower parts anew: by name, how many bytes the new file has, and its path."""
    for name, form in outputs.items():
        own = of_output(parts, name)
        paths = [f"{folder}/{part.name}" for part in own]
        for number, write in form.narrower(paths) if len(paths) > 1 else ():
            target = made.enter_context(_beside(paths[number]))
            yield own[number].name, (write(target), target)


def _tell_sizes(folder: str, parts: Iterable[Part], rewritten: Container[str]) -> None:
    """Let the `_SUCCESS` of an output have the sizes of its parts; those rewritten have no CRC."""
    success = success_of(folder)
    sizes = {part.name: part.bytes for part in parts}
    for part in success["parts"]:
        if part["name"] in rewritten:
            part["bytes"], part["crc"] = sizes[part["name"]], None
    success["bytes"] = sum(sizes.values())
    with _beside(f"{folder}/_SUCCESS") as target:
        text = json.dumps(success, indent=2, ensure_ascii=False)
        Path(target).write_text(f"{text}\n", encoding="utf-8")
        _core.put_file(target, f"{folder}/_SUCCESS")


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
