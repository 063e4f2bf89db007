"""The steps of the demo: each does one thing and says in one line what came of it.

    make ──▶ data/ ──read──▶ page cache ──sort──▶ sorted/ ──validate against data/──▶ proof
                                            └─▶ device's floor, right after the sort
    data/ ──sort, one worker──▶ alone/ ──hash──▶ the same bytes as sorted/

The floor is measured next to the sort whose measure it is: disks, virtual ones above all, do not
keep their speed for long.
"""

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Self

from gristmill import _core
from gristmill.cli.demo.figures import Figures, Floor
from gristmill.cli.runner import run_job
from gristmill.job import new_job_id
from gristmill.options import Value
from gristmill.report import Failure, JobReport
from gristmill.terminal import console, signals
from gristmill.terminal.progress import progress_bar
from gristmill.units import show_bytes, show_count, show_rate, show_seconds

__all__ = ["Demo", "DemoFailed", "failed_demo"]

_BLOCK_BYTES = 1 << 20
_STREAMS = 2
"""Writers at once when the device is measured; more do not make it faster."""


_DIFFERENT = "cannot call the outputs the same"
_REPORT = "What to do: please report this as a defect of Gristmill."


class DemoFailed(Exception):
    """The demo cannot continue. The report is that of the job that failed, if it was a job."""

    def __init__(self, report: JobReport) -> None:
        super().__init__(report.command)
        self.report = report

    @classmethod
    def because(cls, kind: str, message: str) -> Self:
        """What is no job's failure."""
        return cls(failed_demo(kind, message))


def failed_demo(kind: str, message: str) -> JobReport:
    """The report of a demo that failed between jobs."""
    error = Failure(kind=kind, message=message)
    status = "cancelled" if kind == "cancelled" else "failed"
    return JobReport(job_id=new_job_id(), command="demo", status=status, error=error)


class Demo:
    """The demo's steps, in a folder that is removed by someone else."""

    def __init__(self, folder: Path, rows: str, *, quiet: bool) -> None:
        self.folder = folder
        self.rows = rows
        self.quiet = quiet
        self.data, self.sorted, self.alone = (folder / name for name in ("data", "sorted", "alone"))

    def run(self) -> Figures:
        """Go through all steps."""
        if not self.quiet:
            console.say(f"in {self.folder}, which is removed at the end:")
        made = self._make()
        self._read()
        ordered = self._sort()
        floor = self._measure_floor(ordered)
        validated = self._validate()
        alone = self._sort_alone()
        self._compare()
        return Figures(
            made=made, sorted=ordered, validated=validated, sorted_alone=alone, floor=floor
        )

    def _make(self) -> JobReport:
        made = self._job("teragen", rows=self.rows, output=self.data)
        if made.records == 0:
            raise DemoFailed.because("bad_option", "cannot run the demo with 0 records.")
        records, size = show_count(made.records, "record"), show_bytes(made.output_bytes)
        self._say(made.wall_s, f"made {records}, {size}, with checksum {made.checksum}")
        return made

    def _read(self) -> None:
        began_s = perf_counter()
        in_all = _bytes_of(_parts(self.data))
        with progress_bar(quiet=self.quiet) as progress:
            for done in _read_all(_parts(self.data)):
                progress.show("read", done, in_all)
        self._say(perf_counter() - began_s, "read them once, so that they are in the page cache")

    def _sort(self) -> JobReport:
        report = self._job("terasort", inputs=[self.data], output=self.sorted)
        workers, files = show_count(report.workers, "worker"), show_count(report.parts, "file")
        rate = show_rate(report.output_bytes, report.wall_s)
        self._say(report.wall_s, f"sorted them with {workers} into {files}, durable: {rate}")
        return report

    def _measure_floor(self, ordered: JobReport) -> Floor:
        """Move the same bytes, file by file as the sort does; between two files Ctrl-C is heard."""
        began_s = perf_counter()
        in_all, files = ordered.output_bytes, max(ordered.parts, 1)
        write_s = read_s = 0.0
        with progress_bar(quiet=self.quiet) as progress:
            for number in range(files):
                start, end = in_all * number // files, in_all * (number + 1) // files
                progress.show("floor", start, in_all)
                file_write_s, file_read_s = _core.device_floor(self.folder, end - start, _STREAMS)
                write_s, read_s = write_s + file_write_s, read_s + file_read_s
        self._say(perf_counter() - began_s, "measured what the device takes to move as many bytes")
        return Floor(cached_read_s=read_s, direct_write_s=write_s)

    def _validate(self) -> JobReport:
        report = self._job("teravalidate", input=self.sorted, against=str(self.data))
        self._say(report.wall_s, "validated: in order, and the same records as were made")
        return report

    def _sort_alone(self) -> JobReport:
        report = self._job("terasort", inputs=[self.data], output=self.alone, workers=1)
        rate = show_rate(report.output_bytes, report.wall_s)
        self._say(report.wall_s, f"sorted them again with 1 worker: {rate}")
        return report

    def _compare(self) -> None:
        """Hash every part of both outputs.

        Raises:
            DemoFailed: They differ.
        """
        began_s = perf_counter()
        ours, theirs = _parts(self.sorted), _parts(self.alone)
        if [part.name for part in ours] != [part.name for part in theirs]:
            raise DemoFailed.because(
                "proof", f"{_DIFFERENT}: there are other files with 1 worker. {_REPORT}"
            )
        done, in_all = 0, _bytes_of(ours)
        with progress_bar(quiet=self.quiet) as progress, ThreadPoolExecutor(2) as hashers:
            for pair in zip(ours, theirs, strict=True):
                progress.show("compare", done, in_all)
                one, other = hashers.map(_digest, pair)
                if one != other:
                    name = pair[0].name
                    raise DemoFailed.because(
                        "proof", f"{_DIFFERENT}: {name} differs with 1 worker. {_REPORT}"
                    )
                done += _bytes_of(pair[:1])
        self._say(perf_counter() - began_s, "compared the SHA-256 of every file: the same")

    def _job(self, command: str, **values: Value) -> JobReport:
        with signals.deferred() as pending:
            report = run_job(command, values, pending, quiet=self.quiet)
        pending.check()
        if report.error is not None:
            raise DemoFailed(report)
        return report

    def _say(self, took_s: float, what: str) -> None:
        if not self.quiet:
            console.say(f"{show_seconds(took_s):>8}  {what}")


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*"))


def _bytes_of(files: Sequence[Path]) -> int:
    return sum(path.stat().st_size for path in files)


def _read_all(files: list[Path]) -> Iterator[int]:
    """Read the files, and say after each block how many bytes it were so far."""
    done, block = 0, memoryview(bytearray(_BLOCK_BYTES))
    for path in files:
        with path.open("rb", buffering=0) as file:
            while read_bytes := file.readinto(block):
                done += read_bytes
                yield done


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
