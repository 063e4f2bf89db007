"""`gm.kv`: keys and values in our own encoding, for what the next job reads.

    magic (8 bytes) | block ... | end

    block   bytes: u32 LE | records: u32 LE | crc32 of the payload: u32 LE | payload
    payload records, each: key bytes: u32 LE | value bytes: u32 LE | key | value
    end     a block of 0 bytes, with the number of the file's records as u64 LE for its payload

Keys and values keep their types, in the encoding of the shuffle. A file that is not compressed is
cut between blocks. Described in docs/internals/kv-file.md.
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from reprlib import repr as short
from typing import Any, BinaryIO, ClassVar

from gristmill import _core
from gristmill.locations import absolute, open_read, size_of
from gristmill.mapreduce.formats.combine_splits import Before, Several, before_of, is_shared, shared
from gristmill.mapreduce.formats.format import CODECS, BadRecord, Format, Reader, Where, Writer
from gristmill.mapreduce.formats.paths import StrPath, as_paths
from gristmill.mapreduce.formats.plan import Plan, Split, split_bytes
from gristmill.mapreduce.kinds import is_pair
from gristmill.names import show_path
from gristmill.signatures import known_options

__all__ = ["KeyValues", "kv"]

MAGIC = b"GMKV\x00\x01\r\n"
_BLOCK = struct.Struct("<III")
_PAIR = struct.Struct("<II")
_END = struct.Struct("<Q")
_BLOCK_BYTES = 256_000


@dataclass(frozen=True)
class KeyValues(Format):
    """Keys and values, typed; see `kv`."""

    NAME: ClassVar[str] = "kv"
    SUFFIX: ClassVar[str] = ".kv"

    turned: bool = False
    """Whether keys in descending order are read as `gm.desc` of them; otherwise as they were."""

    @property
    def keyed(self) -> bool:
        """Its records are pairs."""
        return True

    def plan(self, split_min: int, split_max: int) -> Plan:
        """Cut the files between blocks; compressed ones are a split each."""
        files = self.files()
        splits: list[Split] = []
        total = sum(size_of(path) for path in files)
        size = split_bytes(total, split_min, split_max)
        for path in files:
            if path.endswith(tuple(CODECS.values())):
                length = size_of(path)
                splits.append(Split(length, {"path": path, "start": None, "bytes": length}))
            else:
                splits.extend(_cut(path, size))
        return Plan(shared(splits, size), files, list(self.paths))

    def open(self, what: dict[str, Any], *, tolerant: bool = False) -> Reader:
        """Open a split."""
        if is_shared(what):
            return Several(what, self.open, tolerant=tolerant)
        # A damaged block has no records to go on with.
        pairs = _PairReader(what["path"], what["start"], what["bytes"], before_of(what))
        if self.turned:
            pairs.decode_key = _core.decode_key
        return pairs

    def writer(self, path: str) -> Writer:
        """Make a file of pairs."""
        return _PairWriter(path, self.codec)


@known_options
def kv(
    paths: StrPath | Iterable[StrPath] = (), *, codec: str | None = None, tag: str = ""
) -> KeyValues:
    """Keys and values in Gristmill's own encoding: they come back as they were, types and all.

    As an output, every record must be a tuple of a key and a value.

    Args:
        paths: As an input files, directories, patterns; as an output a directory.
        codec: How the output is compressed: `gzip`, `bzip2`, `zstd`, `lz4`, `xz` or `snappy`.
        tag: A name for this input, if a job has several: `context.tag` while the job reads it.

    Example:
        >>> kv("counts/").suffix
        '.kv'
    """
    return KeyValues(as_paths(paths), codec, tag=tag)


def _cut(path: str, size: int) -> Iterator[Split]:
    """Splits of about `size` bytes: whole blocks, whose headers are all that is read."""
    length = size_of(path)
    with open_read(path) as file:
        _check_magic(file.read(len(MAGIC)), path)
        start, at, block_bytes = 0, len(MAGIC), -1
        while at < length:
            header = file.read(_BLOCK.size)
            if len(header) < _BLOCK.size:
                raise _damaged(path, at, "it ends in the middle of a block")
            block_bytes = _BLOCK.unpack(header)[0]
            at += _BLOCK.size + (block_bytes or _END.size)
            file.seek(at)
            if at - start >= size and block_bytes and at < length:
                yield Split(at - start, {"path": path, "start": start, "bytes": at - start})
                start = at
    if block_bytes != 0 or at != length:
        raise _damaged(path, length, "it ends without its end mark")
    yield Split(length - start, {"path": path, "start": start, "bytes": length - start})


class _PairReader:
    """The pairs of a split; an offset is that of the pair's block."""

    def __init__(self, path: str, start: int | None, size: int, before: Before) -> None:
        self._path = path
        self._before = before
        self._found = absolute(path)  # user code may go elsewhere
        self._start = start
        self._size = size
        self._at = start or 0
        self._count = 0
        self._last: object = None
        self.decode_key: Callable[[bytes], Any] = _core.decode

    def __iter__(self) -> Iterator[Any]:
        if self._start is None:
            yield from self._pairs(_core.CompressedReader(self._found), None)
        else:
            with open_read(self._found) as file:
                file.seek(self._start)
                yield from self._pairs(file, self._start + self._size)

    def _pairs(
        self, file: "BinaryIO | _core.CompressedReader", end: int | None
    ) -> Iterator[tuple[Any, Any]]:
        if not self._start:
            _check_magic(file.read(len(MAGIC)), self._path)
        begun = self._start or 0
        at = begun or len(MAGIC)
        in_file = 0
        while end is None or at < end:
            self._at = at
            header = file.read(_BLOCK.size)
            if len(header) < _BLOCK.size:
                raise _damaged(self._path, at, "it ends without its end mark")
            size, records, crc = _BLOCK.unpack(header)
            payload = file.read(size or _END.size)
            if len(payload) < (size or _END.size) or zlib.crc32(payload) != crc:
                raise _damaged(self._path, at, "a block is not as it was written")
            if size == 0:
                if begun == 0 and _END.unpack(payload)[0] != in_file:
                    raise _damaged(self._path, at, f"it holds {in_file} records, not all")
                return
            in_file += records
            files, records, done = self._before
            _core.pulse(records + self._count, at, files, done + at - begun)
            for pair in _unpacked(payload, self.decode_key):
                self._count += 1
                self._last = pair
                yield pair
            at += _BLOCK.size + size

    def where(self) -> Where:
        """Return the block of the pair that came last."""
        return self._path, self._at, max(self._count - 1, 0), 0

    def raw(self) -> object:
        """Return the pair that came last."""
        return self._last

    def bytes_read(self) -> int:
        """Return how many bytes of the split are read: all, when it has ended."""
        return self._size

    def records_read(self) -> int:
        """Return how many pairs have come."""
        return self._count


class _PairWriter:
    """A file of pairs."""

    def __init__(self, path: str, codec: str | None) -> None:
        self._file = _core.CompressedWriter(path, codec)
        self._file.write(MAGIC)
        self._pieces: list[bytes] = []
        self._held_bytes = 0
        self._in_block = 0
        self._in_file = 0

    def write(self, record: object) -> None:
        """Write a key with its value."""
        if not is_pair(record):
            raise BadRecord(
                f"gm.kv holds pairs of a key and a value, and {short(record)} is not one",
                "yield (key, value)",
            )
        encoded = _core.encode_key(record[0]), _core.encode(record[1])
        lengths = tuple(map(len, encoded))
        self._pieces.extend((_PAIR.pack(*lengths), *encoded))
        self._held_bytes += _PAIR.size + sum(lengths)
        self._in_block += 1
        if self._held_bytes >= _BLOCK_BYTES:
            self._flush()

    def close(self) -> int:
        """Finish the file; returns how many bytes it has."""
        self._flush()
        end = _END.pack(self._in_file)
        self._file.write(_BLOCK.pack(0, 0, zlib.crc32(end)) + end)
        return self._file.close()

    def _flush(self) -> None:
        if not self._pieces:
            return
        payload = b"".join(self._pieces)
        self._file.write(_BLOCK.pack(len(payload), self._in_block, zlib.crc32(payload)) + payload)
        self._in_file += self._in_block
        self._pieces.clear()
        self._held_bytes = self._in_block = 0


def _unpacked(payload: bytes, decode_key: Callable[[bytes], Any]) -> Iterator[tuple[Any, Any]]:
    at = 0
    while at < len(payload):
        key_bytes, value_bytes = _PAIR.unpack_from(payload, at)
        key_at = at + _PAIR.size
        value_at = key_at + key_bytes
        at = value_at + value_bytes
        yield decode_key(payload[key_at:value_at]), _core.decode(payload[value_at:at])


def _check_magic(found: bytes, path: str) -> None:
    if found != MAGIC:
        raise BadRecord(
            f"cannot read {show_path(path)}: it does not begin as a key/value file does",
            "read it in the format that it was written in",
        )


def _damaged(path: str, offset: int, what: str) -> BadRecord:
    return BadRecord(f"cannot read {show_path(path)}: at offset {offset}, {what}", "write it again")
