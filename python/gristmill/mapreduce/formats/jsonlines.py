"""`gm.jsonl`: a JSON value a line."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import is_not
from typing import Any, ClassVar

from gristmill import _core
from gristmill.mapreduce.formats.format import BadRecord, Format, Reader, Writer
from gristmill.mapreduce.formats.lines import (
    TO_UTF8,
    Lines,
    NativeReader,
    lines_of,
    not_utf8,
    plan_lines,
)
from gristmill.mapreduce.formats.paths import StrPath, as_paths
from gristmill.mapreduce.formats.plan import Plan
from gristmill.mapreduce.keys import Desc
from gristmill.mapreduce.kinds import is_dict, is_list, is_pair, is_tuple
from gristmill.mapreduce.shown import shown
from gristmill.signatures import known_options

__all__ = ["Jsonl", "jsonl"]

_ADVICE = (
    "make the record of dicts, lists, str, finite numbers, bool and None, or write another format"
)
_ADVICE_KEYS = "make the keys of each dict text, or write another format"
_LIKE_A_NUMBER = re.compile(r'": (?:(?<=[0-9]": )|(?<=true": )|(?<=false": )|(?<=null": ))').search
"""Finds a key that may have been no text: a look at each key of the record takes longer."""

_GOES_ON = (b"[", b"{", b",")
_ENDS = (b"]", b"}")
"""How lines end, and what they are, of a document that has a line for each of its parts."""

_MARK = b"\xef\xbb\xbf"
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Jsonl(Format):
    """JSON values, one a line; see `jsonl`."""

    NAME: ClassVar[str] = "jsonl"
    SUFFIX: ClassVar[str] = ".jsonl"
    CAN_SKIP: ClassVar[bool] = True

    skip_blank: bool = False

    def plan(self, split_min: int, split_max: int) -> Plan:
        """Cut the files at line ends, which JSON has nowhere else."""
        return plan_lines(self, split_min, split_max, ends_with_lf=True)

    def open(self, what: dict[str, Any], *, tolerant: bool = False) -> Reader:
        """Open a split."""
        del tolerant  # bytes are read, and each line is parsed by itself
        lines = lines_of(what, text=False)
        return _Values(lines) if self.skip_blank else NativeReader(lines, _value)

    def writer(self, path: str) -> Writer:
        """Make a file of lines."""
        return _core.LineWriter(path, self.codec, line_of=_line)


@known_options
def jsonl(
    paths: StrPath | Iterable[StrPath] = (),
    *,
    skip_blank: bool = False,
    codec: str | None = None,
    tag: str = "",
) -> Jsonl:
    """JSON values, one a line.

    As an output, a key with its value becomes `{"key": ..., "value": ...}`, any other record what
    `json.dumps` makes of it. Bytes, NaN and infinities have no JSON: an error names the record.

    Args:
        paths: As an input files, directories, patterns; as an output a directory.
        skip_blank: Pass over lines of an input that are empty or hold white space alone;
            otherwise such a line is an error.
        codec: How the output is compressed: `gzip`, `bzip2`, `zstd`, `lz4`, `xz` or `snappy`.
        tag: A name for this input, if a job has several: `context.tag` while the job reads it.

    Example:
        >>> jsonl("log/*.jsonl.gz").suffix
        '.jsonl'
    """
    return Jsonl(as_paths(paths), codec, skip_blank, tag=tag)


_BLANK = object()
"""In the place of a line that is passed over."""


class _Values(NativeReader):
    """A reader that passes over blank lines, and does not count them."""

    def __init__(self, lines: Lines) -> None:
        super().__init__(lines, self._value)
        self._blank = 0

    def __iter__(self) -> Iterator[Any]:
        # `filter` and `map` go on after an exception, which a generator would not.
        return filter(partial(is_not, _BLANK), super().__iter__())

    def records_read(self) -> int:
        """Return how many values have come."""
        return super().records_read() - self._blank

    def _value(self, line: bytes) -> object:
        try:
            return _value(line)
        except BadRecord:  # asked only then, so that other lines cost nothing
            if line.strip():
                raise
            self._blank += 1
            return _BLANK


def _value(line: bytes) -> object:
    try:
        # Given bytes, `loads` would take the first line of a UTF-16 file, and fail at the second.
        return json.loads(line.removeprefix(_MARK).decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        if not line.strip():
            advice = "give gm.jsonl skip_blank=True to pass over blank lines"
            raise BadRecord("the line is not JSON: it is blank", advice) from None
        raise _no_json(line, error) from None


def _no_json(line: bytes, error: Exception) -> BadRecord:
    """What is wrong with a line; of a whole file that is of another kind, no line is to blame."""
    if b"\0" in line:
        what = "the line is not UTF-8: it has bytes that are 0, as UTF-16 has"
        order = "be" if line[:1] == b"\0" else "le" if line[1:2] == b"\0" else ""  # without a mark
        return BadRecord(what, TO_UTF8.replace("latin1", f"utf-16{order}"))
    if isinstance(error, UnicodeDecodeError):
        return not_utf8(error)
    what = f"the line is not JSON: {error}"
    if line.rstrip()[-1:] in _GOES_ON or line.strip() in _ENDS:
        each = "." if line.startswith(b"{") else ".[]"
        what += ". It looks like a part of one JSON document over several lines"
        return BadRecord(what, f"make it a value a line: jq -c '{each}' in.json > out.jsonl")
    return BadRecord(what)


def _line(record: object) -> str:
    plain = {"key": record[0], "value": record[1]} if is_pair(record) else record
    try:
        line = _as_json(plain)
        if not line.isascii() and _SURROGATE.search(line):
            line = json.dumps(
                plain, default=_inside
            )  # half a surrogate pair has no UTF-8, but an escape
    except (TypeError, ValueError, RecursionError) as error:
        raise BadRecord(f"{shown(record)} has no JSON: {_why(error)}", _ADVICE) from None
    if _LIKE_A_NUMBER(line) and _loses_a_key(plain):
        what = f"{shown(record)} has no JSON: two keys of a dict are one there"
        raise BadRecord(what, _ADVICE_KEYS)
    return line


def _inside(value: object) -> object:
    """What JSON has of a value that it does not know: of a descending key, the key."""
    if isinstance(value, Desc):
        return value.key
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


_as_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_inside).encode
"""Made once: `json.dumps` makes an encoder for each record, where there are options."""


def _loses_a_key(value: object) -> bool:
    """Whether two keys of a dict are one in JSON, as 1 and "1" are."""
    if is_dict(value):
        names = {json.dumps({key: 0}) for key in value}
        return len(names) < len(value) or any(map(_loses_a_key, value.values()))
    return (is_list(value) or is_tuple(value)) and any(map(_loses_a_key, value))


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, ValueError):
        return "it holds NaN, an infinity, or itself"
    return str(error)
