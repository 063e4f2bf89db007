"""`gm.text`, `gm.fixed`, `gm.delimited` and `gm.tsv`: lines, and records of one length."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

from gristmill import _core
from gristmill.mapreduce.formats import batches
from gristmill.mapreduce.formats.fields import tsv_fields
from gristmill.mapreduce.formats.format import Format, Reader, Writer
from gristmill.mapreduce.formats.lines import (
    NativeReader,
    Utf8Reader,
    decoder,
    lines_of,
    plan_lines,
    plan_whole,
)
from gristmill.mapreduce.formats.paths import StrPath, as_paths
from gristmill.mapreduce.formats.plan import Plan
from gristmill.signatures import known_options

__all__ = ["Delimited", "Fixed", "Text", "Tsv", "delimited", "fixed", "text", "tsv"]

Paths = StrPath | Iterable[StrPath]

_OURS = re.compile(r"[A-Za-z0-9]+-[mr]-[0-9]{5,}\.tsv(\.[a-z0-9]+)?")


@dataclass(frozen=True)
class Text(Format):
    """Lines of text; see `text`."""

    NAME: ClassVar[str] = "text"
    SUFFIX: ClassVar[str] = ".txt"
    CAN_SKIP: ClassVar[bool] = True

    lines: int = 1
    whole: bool = False
    encoding: str | None = "utf-8"
    errors: str = "strict"
    strip_cr: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_count("lines", self.lines)
        if self.whole and self.lines != 1:
            raise ValueError(
                f"cannot read the options: lines={self.lines}, whole={self.whole} does not say what"
                " a record is. What to do: give lines from 1 on, or whole=True alone."
            )
        if self.encoding is not None:
            decoder(self.encoding, self.errors)

    def plan(self, split_min: int, split_max: int) -> Plan:
        """Cut the files at record ends; a file that is one record is never cut."""
        if self.whole:
            return plan_whole(self, split_min, split_max)
        return plan_lines(self, split_min, split_max, lines=self.lines, ends_with_lf=self.strip_cr)

    def open(self, what: dict[str, Any], *, tolerant: bool = False) -> Reader:
        """Open a split; the engine decodes what is UTF-8, and Python anything else."""
        decode = None if self.encoding is None else decoder(self.encoding, self.errors)
        plain = self.encoding in ("utf-8", "utf8") and self.errors == "strict" and not tolerant
        native = lines_of(
            what, text=plain, strip_cr=self.strip_cr, lines=self.lines, whole=self.whole
        )
        if self.whole:
            decode = None if plain else decode
            return NativeReader(native, partial(_whole, native.given, decode))
        if plain or decode is None:
            return NativeReader(native)
        return NativeReader(native, partial(_list, decode) if self.lines > 1 else decode)

    def open_batches(self, what: dict[str, Any]) -> Reader:
        """Open a split as batches with a column `line`."""
        if not self.batched:
            return super().open_batches(what)
        plain = self.encoding in ("utf-8", "utf8") and self.errors == "strict"
        decode = None if plain or self.encoding is None else decoder(self.encoding, self.errors)
        native = lines_of(what, text=plain, strip_cr=self.strip_cr)
        return batches.TextBatches(native, plain, decode)

    @property
    def batched(self) -> bool:
        """Lines come in batches; several of them, or whole files, do not."""
        return self.lines == 1 and not self.whole

    def writer(self, path: str) -> Writer:
        """Make a file of lines."""
        return _core.LineWriter(path, self.codec)

    def as_written(self) -> Self:
        """Keep a carriage return at the end of a record."""
        return replace(self, strip_cr=False)


@dataclass(frozen=True)
class Fixed(Format):
    """Records of one length; see `fixed`."""

    NAME: ClassVar[str] = "fixed"
    SUFFIX: ClassVar[str] = ".bin"

    length: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_count("length", self.length)

    def plan(self, split_min: int, split_max: int) -> Plan:
        """Cut the files between records: each split but the last of a file is whole records."""
        return plan_lines(self, split_min, split_max, stride=self.length)

    def open(self, what: dict[str, Any], *, tolerant: bool = False) -> Reader:
        """Open a split."""
        del tolerant  # bytes are always right
        return NativeReader(lines_of(what, fixed=self.length))


@dataclass(frozen=True)
class Delimited(Format):
    """Lines that are a key and a value; see `delimited`."""

    NAME: ClassVar[str] = "delimited"
    SUFFIX: ClassVar[str] = ".txt"
    CAN_SKIP: ClassVar[bool] = True

    separator: str | bytes = "\t"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.separator:
            raise ValueError(
                "cannot read the options: the separator of gm.delimited is empty."
                ' What to do: give for example separator="\\t".'
            )

    @property
    def keyed(self) -> bool:
        """Its records are pairs."""
        return True

    def plan(self, split_min: int, split_max: int) -> Plan:
        """Cut the files at line ends."""
        return plan_lines(self, split_min, split_max, ends_with_lf=True)

    def open(self, what: dict[str, Any], *, tolerant: bool = False) -> Reader:
        """Open a split; keys and values are text, or bytes where the separator is."""
        as_text = isinstance(self.separator, str)
        if tolerant and as_text:
            native = lines_of(what, text=False, strip_cr=True)
            return NativeReader(native, partial(_decode_halves, self.separator))
        native = lines_of(what, text=as_text, strip_cr=True)
        reader = Utf8Reader if as_text else NativeReader
        return reader(native, partial(_halves, self.separator))


@dataclass(frozen=True)
class Tsv(Format):
    r"""Lines of fields between tabs; see `tsv`."""

    NAME: ClassVar[str] = "tsv"
    SUFFIX: ClassVar[str] = ".tsv"
    CAN_SKIP: ClassVar[bool] = True

    escapes: bool | None = None

    @property
    def keyed(self) -> bool:
        """Its records are pairs, where there are two fields."""
        return True

    def plan(self, split_min: int, split_max: int) -> Plan:
        """Cut the files at line ends."""
        plan = plan_lines(self, split_min, split_max, ends_with_lf=True)
        ours = set(map(_is_ours, plan.files))
        if self.escapes is None and len(ours) > 1:
            raise ValueError(
                f"cannot plan the job: {self} reads files that gm.tsv wrote, in which \\t is a tab,"
                " and others. What to do: give escapes=True or escapes=False, or make them two"
                " inputs."
            )
        return plan

    def open(self, what: dict[str, Any], *, tolerant: bool = False) -> Reader:
        """Open a split."""
        escapes = self.escapes
        if escapes is None:
            escapes = any(_is_ours(piece["path"]) for piece in what["pieces"])
        fields = tsv_fields if escapes else _plain_fields
        native = lines_of(what, text=not tolerant, strip_cr=True)
        if tolerant:
            return NativeReader(native, partial(_decode_fields, fields))
        return Utf8Reader(native, fields)

    def writer(self, path: str) -> Writer:
        """Make a file of lines."""
        return _core.LineWriter(path, self.codec, tsv=True)

    def as_written(self) -> Self:
        """Know that tabs in fields were escaped."""
        return replace(self, escapes=True)


@known_options
def text(
    paths: Paths = (),
    *,
    lines: int = 1,
    whole: bool = False,
    encoding: str | None = "utf-8",
    errors: str = "strict",
    strip_cr: bool = True,
    codec: str | None = None,
    tag: str = "",
) -> Text:
    r"""Lines of text: as an input, a record is a line without its end.

    As an output, a record is written as `str` has it, bytes as they are, and a key with its value
    with a tab in between.

    Args:
        paths: Files, directories, patterns such as `"books/**/*.txt*"`; as an output, a directory.
            gzip, bzip2, zstd, lz4, xz and snappy are told by name and by first bytes.
        lines: How many lines are a record; more than one make it a list. They are counted from the
            beginning of each file: the last record of a file may have fewer. A file that is cut is
            read twice, first to count its lines.
        whole: Make each file a record: a tuple of its path and its content.
        encoding: Of the input; `None` gives bytes.
        errors: What to do with bytes that are not text, as for `bytes.decode`.
        strip_cr: Take a carriage return before the line's end away, as Hadoop and Python do; with
            False it is the last character of the line.
        codec: How the output is compressed: `gzip`, `bzip2`, `zstd`, `lz4`, `xz` or `snappy`.
        tag: A name for this input, if a job has several: `context.tag` while the job reads it.

    Raises:
        ValueError: An option makes no sense.

    Example:
        >>> text("books/**/*.txt*", encoding="latin-1").paths
        ('books/**/*.txt*',)
    """
    return Text(as_paths(paths), codec, lines, whole, encoding, errors, strip_cr, tag=tag)


@known_options
def fixed(paths: Paths, length: int, *, tag: str = "") -> Fixed:
    """Records of `length` bytes each, as `bytes`.

    Args:
        paths: Files, directories, patterns.
        length: Bytes of a record.
        tag: A name for this input, if a job has several: `context.tag` while the job reads it.

    Raises:
        ValueError: `length` is less than 1.

    Example:
        >>> fixed("data/", 100).length
        100
    """
    return Fixed(as_paths(paths), None, length, tag=tag)


@known_options
def delimited(paths: Paths, separator: str | bytes = "\t", *, tag: str = "") -> Delimited:
    r"""Lines that are a key and a value: a record is a tuple, cut at the first separator.

    Args:
        paths: Files, directories, patterns.
        separator: What stands between them; `bytes` give keys and values that are bytes. A line
            without it is a key with an empty value.
        tag: A name for this input, if a job has several: `context.tag` while the job reads it.

    Raises:
        ValueError: The separator is empty.

    Example:
        >>> delimited("log/*.txt", separator=" ").keyed
        True
    """
    return Delimited(as_paths(paths), None, separator, tag=tag)


@known_options
def tsv(
    paths: Paths = (), *, escapes: bool | None = None, codec: str | None = None, tag: str = ""
) -> Tsv:
    r"""Lines of fields with tabs in between.

    As an output, key and value become fields, and tuples one field each of what they hold; tab,
    newline, carriage return and backslash are written as `\t`, `\n`, `\r` and `\\`. As an input a
    record is a tuple of texts.

    Args:
        paths: As an input files, directories, patterns; as an output a directory.
        escapes: Whether `\t`, `\n`, `\r` and `\\` of an input stand for one character each, as
            databases write them, too. By default they do in files with names of this output, such
            as `part-r-00000.tsv`, and all other files are taken as they are.
        codec: How the output is compressed: `gzip`, `bzip2`, `zstd`, `lz4`, `xz` or `snappy`.
        tag: A name for this input, if a job has several: `context.tag` while the job reads it.

    Example:
        >>> tsv("counts/", codec="gzip").suffix
        '.tsv.gz'
    """
    return Tsv(as_paths(paths), codec, escapes, tag=tag)


def _check_count(name: str, value: Any) -> None:  # noqa: ANN401 - checked here
    whole = isinstance(value, Integral)
    if not whole or value < 1:
        raise (ValueError if whole else TypeError)(
            f"cannot read the options: {name} must be a whole number of 1 or more, not {value!r}."
            f" What to do: give for example {name}=4."
        )


def _whole(
    given: dict[str, str], decode: Callable[[bytes], str] | None, record: tuple[str, Any]
) -> tuple[str, Any]:
    path, content = record
    return given.get(path, path), content if decode is None else decode(content)


def _list(decode: Callable[[bytes], str], record: list[bytes]) -> list[str]:
    return [decode(line) for line in record]


def _halves(separator: Any, line: Any) -> tuple[Any, Any]:  # noqa: ANN401 - both str or both bytes
    key, _, value = line.partition(separator)
    return key, value


def _decode_halves(separator: Any, line: bytes) -> tuple[Any, Any]:  # noqa: ANN401
    return _halves(separator, line.decode())


def _plain_fields(line: str) -> tuple[str, ...]:
    return tuple(line.split("\t"))


def _decode_fields(fields: Callable[[str], tuple[str, ...]], line: bytes) -> tuple[str, ...]:
    return fields(line.decode())


def _is_ours(path: str) -> bool:
    """Whether a file has a name as the files of an output of `tsv` have."""
    return _OURS.fullmatch(path.rpartition("/")[2]) is not None
