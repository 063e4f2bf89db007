"""What a job has done, and its output as records, as a table, as a frame.

The rule that must hold: what is read is all that the job wrote, or an error. The job's `_SUCCESS`
names its files, and a `Result` keeps these names, so that a file that is gone is missed. One that
was written after the `_SUCCESS`, which comes last, is compared with the checksum there.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import repr as short
from typing import Any
from zlib import crc32

from gristmill import _core
from gristmill.errors import ours
from gristmill.locations import is_remote, open_read, size_of
from gristmill.mapreduce.extras import pandas, polars, pyarrow
from gristmill.mapreduce.formats.exact_columns import Misfit, inferred, of_type
from gristmill.mapreduce.formats.format import BadRecord, Output
from gristmill.mapreduce.formats.table_writer import to_rows
from gristmill.names import from_json
from gristmill.report import JobReport
from gristmill.store_options import each_with, with_store_options

__all__ = ["LEFT_OUT", "Part", "Result", "of_output", "parts_of", "success_of"]

LEFT_OUT = ("MAP_SKIPPED_RECORDS", "REDUCE_SKIPPED_GROUPS")
"""The counters of what `skip_bad` left out."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file that a job wrote."""

    name: str
    """Its name in the output."""
    records: int
    """How many records it holds."""
    bytes: int
    """Its length."""

    @property
    def is_bad(self) -> bool:
        """Whether it keeps bad records, which are no part of the output."""
        return self.name.startswith("_bad-")


@dataclass(frozen=True, slots=True)
class Result:
    """A job that has succeeded; iterating over it reads its output.

    `len(result)` is the number of its records. As a list, a result is true if it holds any.

    Example:
        >>> import tempfile, gristmill as gm
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     job = gm.Job(gm.items([("a", 1)]), reduce=gm.sum(), output=gm.kv(f"{folder}/out"))
        ...     result = job.run(workers=1)
        ...     list(result), len(result), repr(result).replace(folder, "...")
        ([('a', 1)], 1, "<Result: 1 record in 1 file of gm.kv('.../out')>")
    """

    report: JobReport
    """What it did, used and proved."""
    form: Output
    """The output's format."""
    outputs: dict[str, Output]
    """The formats of its named outputs."""
    parts: tuple[Part, ...]
    """All files of the output, those of named outputs too."""
    store_option: dict[str, str] | None = None
    """How its store is reached, where the job was told that."""
    left_out: dict[str, int] = field(default_factory=dict[str, int])
    """How many bad records `skip_bad` left out, of this job and those of its chain before it, by
    the directory whose files `_bad-*` keep them."""
    of_chain: tuple[tuple[str, JobReport], ...] = ()
    """Of a chain the name and the report of each job, in order; else nothing."""

    def __iter__(self) -> Iterator[Any]:
        return self.read()

    def __len__(self) -> int:
        return sum(part.records for part in self._parts(None))

    def __repr__(self) -> str:
        records, files = len(self), len(self._parts(None))
        written = f"{_counted(records, 'record')} in {_counted(files, 'file')} of {self.form}"
        return f"<Result: {written}{f'; {self.skipped:,} left out' if self.skipped else ''}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the first records, and the counters."""
        from gristmill.mapreduce.results.exception_notes import program
        from gristmill.mapreduce.results.result_html import html_of

        report = "" if self.history is None else f"{program()} report {self.report.job_id}"
        return html_of(repr(self), self.read, self.counters, report)

    @property
    def skipped(self) -> int:
        """How many bad records `skip_bad` left out, in the whole chain; groups count as one."""
        return sum(self.left_out.values()) or sum(
            self.report.counters.get(name, 0) for name in LEFT_OUT
        )

    @property
    def counters(self) -> dict[str, int]:
        """Counters by Hadoop's names, such as `MAP_INPUT_RECORDS`."""
        return self.report.counters

    @property
    def user_counters(self) -> dict[str, dict[str, int]]:
        """Counters of the functions of the job and of its chain: groups, and in them names."""
        return self.report.user_counters

    @property
    def output(self) -> "Path | Any":  # noqa: ANN401 - for checkers a path, which it nearly always is
        """The directory of the output: a `Path`; in an object store its location, a `str`."""
        return _place(self.form.folder)

    @property
    def history(self) -> Path | None:
        """The folder of the job's history, if one is kept: `gristmill report` draws it."""
        return None if self.report.history is None else Path(self.report.history)

    def files(self, name: str | None = None) -> "list[Path | Any]":
        """Return the files of the output, or of a named one, in order, as `output` has them.

        Args:
            name: Of a named output; by default the main one.

        Raises:
            KeyError: There is no such output.
        """
        return [_place(file) for file in self._files(name)]

    def read(self, name: str | None = None) -> Iterator[Any]:
        """Yield the records of the output, in order, as its format reads them.

        `kv` gives keys and values as they were, `tsv` tuples of texts, `jsonl` what JSON keeps,
        `csv` and `parquet` dicts, `text` lines.

        Args:
            name: Of a named output; by default the main one.

        Raises:
            KeyError: There is no such output.
            FileNotFoundError: The output, or a file of it, was removed since the job.
            ValueError: A file of it was changed since the job, or another job wrote it.
            OSError: A file cannot be read.
        """
        parts = self._parts(name)
        with with_store_options(self.store_option):
            self._check_job()
            for part in parts:
                self._check(part)
        return each_with(self.store_option, self._records(self._form(name), parts))

    def _records(self, form: Output, parts: list[Part]) -> Iterator[Any]:
        for part in parts:
            path = self._check(part)  # once more: reading the files before it may have taken hours
            try:
                yield from form.open_file(path)
            except BadRecord as error:
                said = f"cannot read the output of job {self.report.job_id}: {error.what}"
                advice = f" What to do: {error.advice}." if error.advice else ""
                message = f"{said} (file {path}).{advice}"
                raise ours(ValueError(message), "bad_input") from error

    def _check_job(self) -> None:
        """Refuse an output that another job has written since; only its `_SUCCESS` says so."""
        mine = job = self.report.job_id
        with suppress(OSError, ValueError):
            job = success_of(self.form.folder).get("job_id", mine)
        if job != mine:
            raise ours(
                ValueError(
                    f"cannot read the output of job {mine}: job {job} has written"
                    f" {self.form.folder} since. What to do: read the result of that job, or run"
                    " this one again."
                ),
                "bad_input",
            )

    def _check(self, part: Part) -> str:
        """The path of a file that is there, and as it was."""
        path = f"{self.form.folder}/{part.name}"
        with suppress(FileNotFoundError, NotADirectoryError):
            found = size_of(path)
            if found == part.bytes and not self._has_other_bytes(path, part):
                return path
            how = (
                "other bytes" if found == part.bytes else f"{found:,} bytes and had {part.bytes:,}"
            )
            raise ours(
                ValueError(
                    f"cannot read the output of job {self.report.job_id}: {path} has {how}."
                    " It was changed after the job had written it."
                    " What to do: run the job again, or restore it."
                ),
                "bad_input",
            )
        gone = path if _exists(self.form.folder) else self.form.folder
        raise FileNotFoundError(
            f"cannot read the output of job {self.report.job_id}: {gone} does not exist."
            " It was removed or renamed after the job had written it."
            " What to do: run the job again, or restore it."
        )

    def _has_other_bytes(self, path: str, part: Part) -> bool:
        """Whether a file of the same length is another one; most are not read to find out."""
        if is_remote(path):
            return False
        with suppress(OSError, ValueError, KeyError):  # of a `_SUCCESS` that is gone, or not ours
            success = Path(self.form.folder, "_SUCCESS")
            if Path(path).stat().st_mtime_ns <= success.stat().st_mtime_ns:
                return False
            crcs = {one["name"]: one["crc"] for one in success_of(self.form.folder)["parts"]}
            return _crc_of(path) != crcs[part.name]
        return False

    def _form(self, name: str | None) -> Output:
        if name is None:
            return self.form
        if name not in self.outputs:
            known = ", ".join(sorted(self.outputs)) or "none"
            raise KeyError(f"the job has no output {name!r}; its named outputs: {known}")
        return self.outputs[name]

    def _files(self, name: str | None) -> list[str]:
        return [f"{self.form.folder}/{part.name}" for part in self._parts(name)]

    def _parts(self, name: str | None) -> list[Part]:
        self._form(name)
        return of_output(self.parts, name or "part")

    def to_arrow(self, name: str | None = None) -> Any:  # noqa: ANN401 - a pyarrow.Table
        """Return the output as a `pyarrow.Table`; pairs are the columns `key` and `value`.

        Args:
            name: Of a named output; by default the main one.

        Raises:
            ImportError: pyarrow is not installed; says how to install it.
            FileNotFoundError: The output, or a file of it, was removed since the job.
            ValueError: The values of a column are of several types.
        """
        arrow = pyarrow()
        rows = [to_rows(record) for record in self.read(name)]
        form = self._form(name)
        schema = getattr(form, "schema", None)
        names = dict.fromkeys(column for row in rows for column in row)
        if schema is not None:
            names = dict.fromkeys(schema.names)
        elif not rows:
            names = dict.fromkeys(getattr(form, "columns", None) or ())
        table: dict[str, Any] = {}
        for column in names:
            try:
                values = [row.get(column) for row in rows]
                table[column] = (
                    inferred(values)
                    if schema is None
                    else of_type(values, schema.field(column).type)
                )
            except Misfit as misfit:
                value = rows[misfit.index][column]
                raise ValueError(
                    f"cannot make a table of {self.form.folder}: the values of its column"
                    f" {column!r} are not of one type: record {misfit.index + 1:,} has"
                    f" {short(value)}, and those before are {misfit.kind}. What to do: use"
                    " read(), or let the job give values of one type."
                ) from None
        return arrow.table(table, schema=schema)

    def to_pandas(self, name: str | None = None) -> Any:  # noqa: ANN401 - a pandas.DataFrame
        """Return the output as a `pandas.DataFrame`.

        Args:
            name: Of a named output; by default the main one.

        Raises:
            ImportError: pandas or pyarrow is not installed; says how to install it.
        """
        pandas()
        return self.to_arrow(name).to_pandas()

    def to_polars(self, name: str | None = None) -> Any:  # noqa: ANN401 - a polars.DataFrame
        """Return the output as a `polars.DataFrame`.

        Args:
            name: Of a named output; by default the main one.

        Raises:
            ImportError: polars or pyarrow is not installed; says how to install it.
        """
        frames = polars()
        return frames.from_arrow(self.to_arrow(name))


def parts_of(folder: str) -> tuple[Part, ...]:
    """Return the files that the `_SUCCESS` of a job's output names.

    Raises:
        OSError: It cannot be read.
    """
    found = success_of(folder)
    return tuple(Part(part["name"], part["records"], part["bytes"]) for part in found["parts"])


def success_of(folder: str) -> dict[str, Any]:
    """Return what the `_SUCCESS` of a job's output says.

    Raises:
        OSError: It cannot be read.
    """
    return from_json(_read(f"{folder}/_SUCCESS"))


def of_output(parts: Iterable[Part], name: str) -> list[Part]:
    """Return those of the files that belong to an output, in order; the main one is `part`."""
    begin = f"{name}-"  # names of outputs hold letters and digits alone
    return sorted(
        (part for part in parts if part.name.startswith(begin)), key=lambda part: part.name
    )


def _read(path: str) -> bytes:
    with open_read(path) as file:
        return file.read()


def _crc_of(path: str) -> int:
    crc = 0
    with Path(path).open("rb") as file:
        while piece := file.read(1 << 20):
            crc = crc32(piece, crc)
    return crc


def _place(location: str) -> Path | str:
    return location if is_remote(location) else Path(location)


def _exists(path: str) -> bool:
    return bool(_core.exists(path)) if is_remote(path) else Path(path).exists()


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
