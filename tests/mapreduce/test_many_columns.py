"""Tables of a hundred thousand columns: work and errors that do not grow with their square."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

import gristmill as gm
from gristmill.mapreduce.formats.column_names import check_columns

COLUMNS = 100_000

#: Against hangs: what was quadratic took minutes.
SECONDS_MAX = 60

NAMES = [f"column{number}" for number in range(COLUMNS)]


def test_a_csv_of_many_columns_is_read_and_written(tmp_path: Path) -> None:
    row = ",".join(str(number % 10) for number in range(COLUMNS))
    source = tmp_path / "wide.csv"
    source.write_text("\n".join([",".join(NAMES), *[row] * 20]) + "\n")

    begun = time.monotonic()
    wanted = gm.csv(source, columns=NAMES)  # each is looked up in the header
    output = gm.csv(tmp_path / "out")
    job = gm.Job(wanted, map=lambda record: [record], output=output, split_min="1G")
    result = job.run()

    assert time.monotonic() - begun < SECONDS_MAX
    (part,) = result.output.glob("part-*.csv")
    assert part.read_bytes().replace(b"\r\n", b"\n") == source.read_bytes()
    cut = replace(job, split_min=None, output=gm.csv(tmp_path / "parts")).run()
    assert len(cut.files()) > 1
    assert list(cut.read()) == list(result.read())


def test_names_that_come_twice_are_found_among_many() -> None:
    begun = time.monotonic()
    with pytest.raises(ValueError, match="columns names 'column7' twice"):
        check_columns(gm.csv(), (*NAMES, "column7"))
    assert time.monotonic() - begun < SECONDS_MAX


def test_an_error_shows_some_of_many_names(tmp_path: Path) -> None:
    source = tmp_path / "wide.csv"
    source.write_text(",".join(NAMES) + "\n" + ",".join("0" for _ in NAMES) + "\n")
    job = gm.Job(
        gm.csv(source, columns=["column"]),
        map=lambda record: [record],
        output=gm.csv(tmp_path / "out"),
    )
    with pytest.raises(ValueError, match=r"'column19' and 99,980 more") as caught:
        job.run()
    assert len(str(caught.value)) < 2000
