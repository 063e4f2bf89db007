"""What a job has done, and its output as records, as a table, as a frame."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gristmill.mapreduce.extras import pandas, polars, pyarrow
from gristmill.mapreduce.formats import Output
from gristmill.mapreduce.table_writer import to_rows
from gristmill.report import JobReport

__all__ = ["Result"]


@dataclass(frozen=True, slots=True)
class Result:
    """A job that has succeeded."""

    report: JobReport
    """What it did, used and proved."""
    form: Output
    """The output's format."""
    outputs: dict[str, Output]
    """The formats of its named outputs."""

    @property
    def counters(self) -> dict[str, int]:
        """Counters by Hadoop's names, such as `MAP_INPUT_RECORDS`."""
        return self.report.counters

    @property
    def user_counters(self) -> dict[str, dict[str, int]]:
        """Counters of the job's functions: groups, and in them names."""
        return self.report.user_counters

    @property
    def output(self) -> Path:
        """The directory of the output."""
        return Path(self.form.folder)

    @property
    def history(self) -> Path | None:
        """The folder of the job's history, if one is kept: `gristmill report` draws it."""
        return None if self.report.history is None else Path(self.report.history)

    def files(self, name: str | None = None) -> list[Path]:
        """Return the files of the output, or of a named one, in order."""
        return sorted(self.output.glob(f"{name or 'part'}-[mr]-*"))

    def read(self, name: str | None = None) -> Iterator[Any]:
        """Yield the records of the output, in order, as its format reads them.

        `kv` gives keys and values as they were, `tsv` tuples of texts, `jsonl` what JSON keeps,
        `csv` and `parquet` dicts, `text` lines.

        Args:
            name: Of a named output; by default the main one.

        Raises:
            KeyError: There is no such output.
            OSError: A file is not there, or cannot be read.
        """
        form = self.form if name is None else self.outputs[name]
        for path in self.files(name):
            yield from form.open_file(str(path))

    def to_arrow(self, name: str | None = None) -> Any:  # noqa: ANN401 - a pyarrow.Table
        """Return the output as a `pyarrow.Table`; pairs are the columns `key` and `value`.

        Args:
            name: Of a named output; by default the main one.

        Raises:
            ImportError: pyarrow is not installed; says how to install it.
            ValueError: The values of a column are of several types.
        """
        arrow = pyarrow()
        rows = [to_rows(record) for record in self.read(name)]
        names = dict.fromkeys(column for row in rows for column in row)
        table: dict[str, Any] = {}
        for column in names:
            try:
                table[column] = arrow.array([row.get(column) for row in rows])
            except (ValueError, TypeError, OverflowError) as error:
                raise ValueError(
                    f"cannot make a table of {self.output}: the values of its column {column} are"
                    f" not of one type: {error}. To go on: use read(), or let the job give values"
                    " of one type."
                ) from None
        return arrow.table(table)

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
