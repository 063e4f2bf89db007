"""Inputs whose files are cut at line ends, or into records of one length; read by the engine.

    plan_text ──▶ pieces of files ──▶ LineReader (native) ──▶ parse, in Python ──▶ record

A line belongs to the split in which it begins. Compressed files are told by their names and first
bytes, and are one split each; small files are combined.
"""

import codecs
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from encodings.aliases import aliases
from functools import partial
from pathlib import Path
from typing import Any

from gristmill import _core
from gristmill.locations import absolute, is_remote
from gristmill.mapreduce.formats.combine_splits import before_of
from gristmill.mapreduce.formats.format import BadRecord, Format, Where
from gristmill.mapreduce.formats.paths import find_files
from gristmill.mapreduce.formats.plan import Plan, Split, split_bytes, split_records
from gristmill.names import from_json, show_path, to_json

__all__ = [
    "TO_UTF8",
    "Lines",
    "NativeReader",
    "Utf8Reader",
    "decoder",
    "lines_of",
    "not_utf8",
    "plan_lines",
    "plan_whole",
]

_ERRORS = ("strict", "ignore", "replace", "backslashreplace", "surrogateescape")

TO_UTF8 = "convert the file, for example with iconv -f latin1 -t utf-8 FILE > NEW"
"""What to do about a file of another encoding."""

_LOOKED_AT = 100
"""Files whose lines are looked at: those of a job are of one kind."""
_LOOK_BYTES = 1 << 14
_CR_LEAST = 2

Parse = Callable[[Any], Any]


@dataclass(slots=True)
class Lines:
    """The engine's reader of a split, which opens files one after another.

    It knows them by paths from the root, for user code may change the current folder meanwhile;
    people, by the paths that they gave.
    """

    native: "_core.LineReader"
    given: dict[str, str]
    """The paths as they were given."""

    def where(self) -> Where:
        """Return where the record that came last begins."""
        file, offset, record, line = self.native.where()
        return self.given.get(file, file), offset, record, line


@dataclass(slots=True)
class NativeReader:
    """A reader of the engine's, whose records may be parsed further."""

    lines: Lines
    """What knows where it is."""
    parse: Parse | None = None
    """What is made of each record."""

    def __iter__(self) -> Iterator[Any]:
        # `map` goes on after an exception, which a generator would not.
        native = self.lines.native
        return iter(native) if self.parse is None else map(self.parse, native)

    def where(self) -> Where:
        """Return where the record that came last begins."""
        return self.lines.where()

    def raw(self) -> object:
        """Return the record that came last as it stands in the file."""
        return self.lines.native.raw()

    def bytes_read(self) -> int:
        """Return how many bytes of the split are read."""
        return self.lines.native.bytes_read()

    def records_read(self) -> int:
        """Return how many records have come."""
        return self.lines.native.records_read()


class Utf8Reader(NativeReader):
    """A reader of text of a format that has no `encoding=` to name: it says what else to do."""

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from super().__iter__()
        except ValueError:
            line = self.raw()
            assert isinstance(line, bytes)
            try:
                line.decode()
            except UnicodeDecodeError as error:
                raise not_utf8(error) from None
            raise


def not_utf8(error: UnicodeDecodeError) -> BadRecord:
    """Return what to say of a line of another encoding."""
    what = f"the line is not UTF-8: {error.reason} at its byte {error.start}"
    return BadRecord(what, TO_UTF8)


def plan_lines(
    source: Format,
    split_min: int,
    split_max: int,
    *,
    cut: bool = True,
    combine: bool = True,
    stride: int = 1,
    lines: int = 1,
    csv: tuple[str, str] | None = None,
    ends_with_lf: bool = False,
) -> Plan:
    """Cut the files of `source` at every end of so many lines, or at multiples of `stride`.

    With `csv`, a delimiter and a quote, they are cut where rows begin. For that they are read, so
    files in stores are not cut.

    Raises:
        ValueError: The lines of a file end with CR alone, and `ends_with_lf` says that it matters.
    """
    files = find_files(source.paths, far=False)
    if ends_with_lf:
        _refuse_cr_alone(source, files[:_LOOKED_AT])
    if csv is not None and any(map(is_remote, files)):
        cut, csv = False, None
    found = from_json(
        _core.plan_text(
            files,
            split_min=split_min,
            split_max=split_max,
            cut=cut,
            combine=combine,
            stride=stride,
            lines=lines,
            csv=None if csv is None else (ord(csv[0]), ord(csv[1])),
        )
    )
    splits = [Split(split["bytes"], split["what"]) for split in found["splits"]]
    return Plan(splits, found["files"], list(source.paths))


def _refuse_cr_alone(source: Format, files: list[str]) -> None:
    """Refuse text of old Macs, and of Excel for them: all of a file would be one line."""
    for path in files:
        if is_remote(path) or not Path(path).is_file():
            continue
        with suppress(OSError), Path(path).open("rb") as file:  # the job says why it cannot be read
            begin = file.read(_LOOK_BYTES)
            if begin.count(b"\r") < _CR_LEAST or b"\n" in begin or b"\0" in begin:
                continue
            keep = ", or give strip_cr=False if it is one line" if source.NAME == "text" else ""
            raise ValueError(
                f"cannot plan the job: the lines of {show_path(path)} end with CR alone, as on old"
                " Macs, so that all of it would be one line. What to do: convert it:"
                f" tr '\\r' '\\n' < FILE > NEW{keep}."
            )


def plan_whole(source: Format, split_min: int, split_max: int) -> Plan:
    """Share the files of `source`, each a record, by their number and by their bytes."""
    plan = plan_lines(source, split_min, split_max, cut=False, combine=False)
    most_files = split_records(len(plan.splits))
    most_bytes = split_bytes(plan.bytes, split_min, split_max)
    shared: list[Split] = []
    held: list[Split] = []
    held_bytes = 0
    for split in plan.splits:
        full = len(held) >= most_files and held_bytes >= split_min
        if held and (full or held_bytes + split.bytes > most_bytes):
            shared.append(_together(held))
            held, held_bytes = [], 0
        held.append(split)
        held_bytes += split.bytes
    if held:
        shared.append(_together(held))
    return replace(plan, splits=shared)


def _together(splits: list[Split]) -> Split:
    pieces = [piece for split in splits for piece in split.what["pieces"]]
    return Split(sum(split.bytes for split in splits), {"pieces": pieces})


def lines_of(what: dict[str, Any], **options: Any) -> Lines:  # noqa: ANN401
    """Open the lines of a split, natively."""
    pieces: list[dict[str, Any]] = what["pieces"]
    paths = [absolute(piece["path"]) for piece in pieces]
    given = {path: piece["path"] for path, piece in zip(paths, pieces, strict=True)}
    found = [{**piece, "path": path} for path, piece in zip(paths, pieces, strict=True)]
    reader = _core.LineReader(to_json(found), before=before_of(what), **options)
    return Lines(reader, given)


def decoder(encoding: str, errors: str) -> Callable[[bytes], str]:
    r"""Return what makes text of a line's bytes.

    Raises:
        ValueError: There is no such encoding, or its lines do not end with the byte 10; or there
            is no such way to handle errors.

    Example:
        >>> decoder("latin-1", "strict")(b"caf\xe9") == "caf\u00e9"
        True
    """
    try:
        newline = "\n".encode(encoding)
    except (LookupError, ValueError):  # the name is unknown, or not one at all
        raise ValueError(
            f"cannot read the options: there is no text encoding {encoding!r}."
            f" What to do: {_advice(encoding, _encodings(), 'utf-8')}."
        ) from None
    try:
        codecs.lookup_error(errors)
    except LookupError:
        raise ValueError(
            f"cannot read the options: there is no way {errors!r} to handle errors."
            f" What to do: {_advice(errors, _ERRORS, 'strict')}."
        ) from None
    if codecs.lookup(encoding).name == "utf-8-sig":
        raise ValueError(
            f"cannot read the options: a file begins with the mark of {encoding!r}, and its lines"
            ' do not. What to do: give encoding="utf-8", which takes the mark away.'
        )
    if newline != b"\n":
        raise ValueError(
            f"cannot read the options: lines cannot be told apart in the encoding {encoding!r}."
            " What to do: convert the files to UTF-8, for example with iconv."
        )
    return partial(_decode, encoding=encoding, errors=errors)


def _encodings() -> set[str]:
    """The names of encodings whose lines can be told apart: some of Python's are of no text."""
    return {name for name in {*aliases, *aliases.values()} if _ends_lines(name)}


def _ends_lines(encoding: str) -> bool:
    try:
        return "\n".encode(encoding) == b"\n"
    except (LookupError, ValueError):
        return False


def _advice(name: str, known: Iterable[str], example: str) -> str:
    near = get_close_matches(name, known, 1, 0.7)
    return f"give for example {near[0] if near else example!r}"


def _decode(line: bytes, *, encoding: str, errors: str) -> str:
    return line.decode(encoding, errors)
