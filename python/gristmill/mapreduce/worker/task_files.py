"""The files that an attempt writes: its part of the output, of named outputs, and bad records.

    <attempt's folder>/part-r-00003.tsv          the output
                       errors-r-00003.tsv   the output named `errors`
                       _bad-m-00007.jsonl   records that were left out

The driver moves those of attempts that count to the job's output; the rest is never seen.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gristmill import _core
from gristmill.mapreduce.context import NamedOutput
from gristmill.mapreduce.formats.format import Output, Where, Writer
from gristmill.mapreduce.kinds import is_batch
from gristmill.mapreduce.shown import shown

__all__ = ["TaskFiles"]


class TaskFiles:
    """Files of an attempt; made when they are first written to, but the main one always."""

    def __init__(self, folder: str, label: str, main: Output, named: dict[str, Output]) -> None:
        self._folder = folder
        self._label = label
        self._named = named
        self._main = main
        self._open: dict[str, _File] = {}
        self._bad: list[str] = []

    def main(self) -> "_File":
        """Return the job's output."""
        return self._file("part", self._main)

    def output(self, name: str) -> NamedOutput:
        """Return the output of a name."""
        form = self._named.get(name)
        if form is None:
            raise KeyError(
                f"the job has no output {name!r}. What to do: give it, as Job(outputs={{...}})."
            )
        return self._file(name, form)

    def put_aside(self, where: Where | None, record: object, error: str) -> None:
        """Keep a bad record."""
        file, offset, number, line = where or (None, None, None, None)
        place = {"file": file, "offset": offset, "record": number, "line": line or None}
        try:
            data = record.decode() if isinstance(record, bytes) else record
            text = json.dumps({**place, "error": error, "data": data}, ensure_ascii=False)
            text.encode()  # which half of a surrogate pair does not let be done
        except (TypeError, ValueError):
            text = json.dumps({**place, "error": error, "data": shown(record)})
        self._bad.append(text)

    def close(self) -> list[dict[str, Any]]:
        """Finish all files; returns what the report says of them."""
        found = [file.close(name) for name, file in self._open.items()]
        if self._bad:
            name = f"_bad-{self._label}.jsonl"
            path = self._path(name)
            data = "".join(f"{line}\n" for line in self._bad).encode()
            path.write_bytes(data)
            found.append({"name": name, "bytes": len(data), "records": len(self._bad)})
        return found

    def records(self) -> int:
        """Return how many records the main output has."""
        main = self._open.get(self._name("part", self._main))
        return 0 if main is None else main.count

    def _file(self, prefix: str, form: Output) -> "_File":
        name = self._name(prefix, form)
        file = self._open.get(name)
        if file is None:
            file = self._open[name] = _File(form.writer(str(self._path(name))))
        return file

    def _name(self, prefix: str, form: Output) -> str:
        return f"{prefix}-{self._label}{form.suffix}"

    def _path(self, name: str) -> Path:
        path = Path(self._folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


class _File:
    """A file, and how many records it has."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._lines = writer if isinstance(writer, _core.LineWriter) else None
        self._count = 0

    @property
    def count(self) -> int:
        """How many records are written."""
        return self._count if self._lines is None else self._lines.records()

    def write(self, record: Any) -> None:  # noqa: ANN401 - whatever the format takes
        """Write a record; of a batch, all its rows."""
        if self._lines is not None:
            self._lines.write(record)
        elif is_batch(record):
            self._write_batch(record)
        else:
            self._count += 1
            self._writer.write(record)

    def _write_batch(self, batch: Any) -> None:  # noqa: ANN401 - a batch or table
        from gristmill.mapreduce.formats.table_writer import TableWriter, rows_of

        self._count += batch.num_rows
        if isinstance(self._writer, TableWriter):
            self._writer.write(batch)
            return
        for row in rows_of(batch):
            self._writer.write(row)

    def consume(self, records: Iterable[Any]) -> None:
        """Write all records of an iterable."""
        if self._lines is not None:
            self._lines.consume(records)
            return
        write = self._writer.write
        for record in records:
            if type(record) is not dict and is_batch(record):
                self._write_batch(record)
            else:
                self._count += 1
                write(record)

    def take(self, groups: "_core.Groups") -> None:
        """Write each key with its aggregate."""
        if self._lines is not None:
            self._lines.take(groups)
        else:
            self.consume(groups)

    def close(self, name: str) -> dict[str, Any]:
        """Finish the file."""
        return {"name": name, "bytes": self._writer.close(), "records": self.count}
