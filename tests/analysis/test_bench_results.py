"""Folders of results that are whole, cut short, damaged, or something else."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.harness import run

from gristmill.analysis.bench import results
from gristmill.analysis.bench.errors import BenchError
from gristmill.analysis.bench.results import read_results

from .bench_results import measured, sorts, write


def test_what_is_written_is_read(tmp_path: Path) -> None:
    runs = sorts([5.0, 6.0], {"workers": "2"})
    found = read_results(write(tmp_path, runs, vary={"workers": ("1", "2")}, sizes=(4000,)))
    assert found.runs == runs
    assert (found.asked.vary, found.asked.sizes) == ({"workers": ("1", "2")}, (4000,))
    assert found.machine["processors"] == 2


def test_a_folder_without_runs_is_empty(tmp_path: Path) -> None:
    assert read_results(write(tmp_path, [])).runs == []


def test_the_last_line_of_a_run_counts(tmp_path: Path) -> None:
    first, second = sorts([5.0, 6.0])
    again = replace(first, wall_s=7.0)
    assert read_results(write(tmp_path, [first, second, again])).runs == [second, again]


def test_a_line_that_was_cut_short_is_no_run(tmp_path: Path) -> None:
    first, second = sorts([5.0, 6.0])
    file = write(tmp_path, [first, second]) / "runs.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    assert read_results(tmp_path).runs == [first]
    results.append(tmp_path, second)
    assert read_results(tmp_path).runs == [first, second]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{", "line 2 is not a run"),
        ("[]", "line 2 is not a run"),
        ("null", "line 2 is not a run"),
        ('{"round": 1}', "line 2 is not a run"),
        ('{"round": 1, "config": {}, "step": "a", "wall_s": 0}', "wall_s is 0"),
        ('{"round": 1, "config": {}, "step": "a", "wall_s": NaN}', "wall_s is nan"),
        ('{"round": 1, "config": {}, "step": "a", "wall_s": "1"}', "line 2 is not a run"),
        ('{"round": 1, "config": 3, "step": "a", "wall_s": 1}', "line 2 is not a run"),
        ('{"round": 1, "config": {}, "step": "a", "wall_s": 1, "report": 5}', "line 2 is not"),
        ('{"round": 1, "config": {}, "step": [], "wall_s": 1}', "line 2 is not a run"),
        ('{"round": 1, "config": {}, "step": "a", "wall_s": 1e999}', "line 2 is not a run (a num"),
        pytest.param(
            f'{{"round": 1, "config": {{}}, "step": "a", "wall_s": 1{"0" * 400}}}',
            "a number in it is too large",
            id="400 digits",
        ),
        pytest.param("[" * 200_000, "line 2 is not a run (its lists are nested", id="nested"),
    ],
)
def test_a_damaged_line_is_named(line: str, expected: str, tmp_path: Path) -> None:
    file = write(tmp_path, sorts([5.0])) / "runs.jsonl"
    file.write_text(f"{file.read_text()}{line}\n{file.read_text()}")
    with pytest.raises(BenchError, match="cannot read the results") as caught:
        read_results(tmp_path)
    assert expected in str(caught.value)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "machine.json: it is not JSON"),
        ("[]", "machine.json: it is not an object"),
        ("{}", "machine.json: the format is None, this program reads 1"),
        ('{"format": 1}', "machine.json: a field is missing or wrong"),
        (b"\xff\xfe{}", "machine.json: it is not JSON ('utf-8' codec"),
        pytest.param("[" * 200_000, "it is not JSON (its lists are nested too", id="nested"),
        ('{"format": 1e999}', "machine.json: it is not JSON (a number in it is too large)"),
        ('{"format": 1, "asked": {"later": 1}, "machine": {}, "versions": {}}', "or wrong"),
    ],
)
def test_a_damaged_head_is_named(text: str | bytes, expected: str, tmp_path: Path) -> None:
    write(tmp_path, sorts([5.0]))
    (tmp_path / "machine.json").write_bytes(text.encode() if isinstance(text, str) else text)
    for command in (("report", tmp_path), ("compare", tmp_path, tmp_path)):
        done = run("bench", *command, status=1)
        assert expected in done.stderr
        assert "What to do: " in done.stderr


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    for command in ("report", "compare"):
        more = [tmp_path] if command == "compare" else []
        done = run("bench", command, tmp_path / "none", *more, status=1)
        assert f"{tmp_path}/none/machine.json: no such file" in done.stderr


def test_unknown_fields_of_runs_are_left_alone(tmp_path: Path) -> None:
    file = write(tmp_path, [measured("terasort", 1, 5.0)]) / "runs.jsonl"
    found = json.loads(file.read_text())
    file.write_text(json.dumps({**found, "later": 1}) + "\n")
    assert read_results(tmp_path).runs[0].wall_s == 5.0
