"""The demo's command line, and its flow: the steps in their folder, then the figures."""

import json
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import click

from gristmill.cli.demo.screen import say_figures
from gristmill.cli.demo.steps import Demo, DemoFailed, failed_demo
from gristmill.cli.failures import DONE, FAILED, WRONG, fail, paragraph_of
from gristmill.cli.generated import JSON, JobCommand
from gristmill.report import JobReport
from gristmill.terminal import console, signals
from gristmill.units import show_bytes

__all__ = ["COPIES", "demo"]

COPIES = 3
"""The most copies of the data that lie in the folder at once: input, output, and the output
again or the file by which the device is measured."""

_RESERVE_BYTES = 64 << 20
"""Room for the file system's own books."""


def _run(rows: str, directory: str, *, as_json: bool) -> int:
    try:
        with _workspace(Path(directory), COPIES * 100 * _rows(rows) + _RESERVE_BYTES) as folder:
            figures = Demo(folder, rows, quiet=as_json).run()
    except DemoFailed as failed:
        return _failed(failed.report, as_json=as_json)
    except OSError as error:
        return _failed(failed_demo("io", paragraph_of(error)), as_json=as_json)
    except signals.Interrupted as interrupted:
        message = "cancelled; the directory is removed."
        _failed(failed_demo("cancelled", message), as_json=as_json)
        return signals.exit_code(interrupted.signum)
    if as_json:
        console.put(json.dumps(figures.to_json()))
    else:
        say_figures(figures)
    return DONE


def _failed(report: JobReport, *, as_json: bool) -> int:
    if as_json:
        console.put(report.to_json())
    assert report.error is not None
    fail("demo", report.error.message)
    return WRONG if report.error.kind == "bad_option" else FAILED


demo = JobCommand(
    name="demo",
    help="Make a gigabyte of records here, sort them, prove the result, and show what it took. "
    f"Needs room for {COPIES} copies of the data; what it makes is removed at the end.",
    short_help="Make, sort and prove a gigabyte here, and show what it took",
    params=[
        click.Option(
            ["--rows"],
            default="10m",
            metavar="ROWS",
            help="How many records of 100 bytes.  [default: 10m]",
        ),
        click.Option(
            ["--dir", "directory"],
            default=".",
            metavar="DIR",
            help="Where to make a temporary directory.  [default: the current directory]",
        ),
        JSON,
    ],
    callback=_run,
    example="gristmill demo --rows 10m --dir /tmp",
    arguments=[],
)


def _rows(text: str) -> int:
    """The number that a number of rows stands for, as far as room on the disk is concerned.

    What the engine would not take stands for none, so that the first step says what is wrong.
    """
    suffixes = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
    factor = suffixes.get(text[-1:].lower(), 1)
    digits = text if factor == 1 else text[:-1]
    return int(digits) * factor if digits.isascii() and digits.isdigit() else 0


@contextmanager
def _workspace(parent: Path, needed_bytes: int) -> Generator[Path]:
    """A folder below `parent` for as long as the demo runs; gone afterwards, however it ends."""
    free_bytes = shutil.disk_usage(parent).free
    if free_bytes < needed_bytes:
        raise DemoFailed.because(
            "disk_full",
            f"cannot run the demo: it needs {show_bytes(needed_bytes)} ({needed_bytes:,} bytes,"
            f" for {COPIES} copies of the data), and the file system of {parent.resolve()} has"
            f" {show_bytes(free_bytes)} ({free_bytes:,} bytes) free."
            " What to do: give --dir on another disk, or fewer --rows.",
        )
    folder = None
    try:
        with signals.deferred() as pending:
            folder = Path(tempfile.mkdtemp(prefix="gristmill-demo-", dir=parent))
        pending.check()
        yield folder
    finally:
        with signals.deferred():
            if folder is not None:
                shutil.rmtree(folder)
