"""`gm.jsonl`: a JSON value a line."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from gristmill import _core
from gristmill.mapreduce.formats import BadRecord, Format, Reader, Writer
from gristmill.mapreduce.kinds import is_pair
from gristmill.mapreduce.lines import NativeReader, lines_of, plan_lines
from gristmill.mapreduce.paths import StrPath, as_paths
from gristmill.mapreduce.plan import Plan

__all__ = ["Jsonl", "jsonl"]

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Jsonl(Format):
    """JSON values, one a line; see `jsonl`."""

    NAME: ClassVar[str] = "jsonl"
    SUFFIX: ClassVar[str] = ".jsonl"

    def plan(self, split_min: int, split_max: int) -> Plan:
        """Cut the files at line ends, which JSON has nowhere else."""
        return plan_lines(self, split_min, split_max)

    def open(self, what: dict[str, Any], *, tolerant: bool = False) -> Reader:
        """Open a split."""
        del tolerant  # bytes are read, and each line is parsed by itself
        return NativeReader(lines_of(what, text=False), _value)

    def writer(self, path: str) -> Writer:
        """Make a file of lines."""
        return _core.LineWriter(path, self.codec, line_of=_line)


def jsonl(paths: StrPath | Iterable[StrPath] = (), *, codec: str | None = None) -> Jsonl:
    """JSON values, one a line.

    As an output, a key with its value becomes `{"key": ..., "value": ...}`, any other record what
    `json.dumps` makes of it. Bytes, NaN and infinities have no JSON: an error names the record.

    Args:
        paths: As an input files, directories, patterns; as an output a directory.
        codec: How the output is compressed: `gzip`, `bzip2`, `zstd`, `lz4`, `xz` or `snappy`.

    Example:
        >>> jsonl("log/*.jsonl.gz").suffix
        '.jsonl'
    """
    return Jsonl(as_paths(paths), codec)


def _value(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"the line is no JSON: {error}") from None


def _line(record: object) -> str:
    shown = {"key": record[0], "value": record[1]} if is_pair(record) else record
    try:
        line = json.dumps(shown, ensure_ascii=False, allow_nan=False)
        if not line.isascii() and _SURROGATE.search(line):
            line = json.dumps(shown)  # half a surrogate pair has no UTF-8, but an escape
        return line
    except (TypeError, ValueError, RecursionError) as error:
        raise BadRecord(
            f"the record has no JSON: {error}. To go on: make it of dicts, lists, str, int, float,"
            " bool and None, or write another format."
        ) from None
