"""Verdicts on results whose truth is known, and results that cannot be compared."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.harness import run

from gristmill.analysis.bench.comparing import compare, noted, read_side
from gristmill.analysis.bench.errors import BenchError
from gristmill.analysis.bench.results import Measured

from .bench_results import MACHINE, measured, sorts, times, write


def two(tmp_path: Path, one: list[float], other: list[float]) -> tuple[Path, Path]:
    return write(tmp_path / "a", sorts(one)), write(tmp_path / "b", sorts(other))


@pytest.mark.parametrize(
    ("mean", "verdict", "status"),
    [(10.0, "no difference", 0), (8.0, "faster", 0), (12.5, "slower", 1)],
)
def test_the_verdict_is_the_truth(mean: float, verdict: str, status: int, tmp_path: Path) -> None:
    folders = two(tmp_path, times(10.0, 0.02, 6, seed=1), times(mean, 0.02, 6, seed=2))
    said = json.loads(run("bench", "compare", *folders, "--json", status=status).stdout)
    (found,) = said["comparisons"]
    assert (found["verdict"], found["paired"]) == (verdict, False)
    assert found["low"] < mean / 10 < found["high"]
    assert said["slower_beyond_tolerance"] is bool(status)
    table = run("bench", "compare", *folders, status=status).stdout
    assert verdict in table
    assert f"{found['low']:.3f} to {found['high']:.3f}" in table


def test_noise_is_no_difference(tmp_path: Path) -> None:
    """Means that are 10 % apart say nothing where runs scatter by 30 %."""
    folders = two(tmp_path, times(10.0, 0.3, 5, seed=3), times(11.0, 0.3, 5, seed=4))
    assert run("bench", "compare", *folders).stdout.count("no difference") == 1


def test_a_tolerance_is_of_the_whole_interval(tmp_path: Path) -> None:
    folders = two(tmp_path, times(10.0, 0.01, 6, seed=1), times(11.0, 0.01, 6, seed=2))
    run("bench", "compare", *folders, status=1)
    run("bench", "compare", *folders, "--tolerance", "5", status=1)
    run("bench", "compare", *folders, "--tolerance", "15")
    for wrong in ("-1", "x", "inf", "nan"):
        assert (
            "--tolerance"
            in run("bench", "compare", *folders, "--tolerance", wrong, status=2).stderr
        )


def test_few_runs_are_no_verdict(tmp_path: Path) -> None:
    folders = two(tmp_path, [10.0], [20.0])
    assert "too few runs" in run("bench", "compare", *folders).stdout


def drifting(tmp_path: Path) -> Path:
    """A machine that becomes twice as slow; one configuration is 5 % slower than the other."""
    runs: list[Measured] = []
    for number in range(1, 9):
        for workers, factor in (("1", 1.0), ("2", 1.05)):
            noise = times(1.0, 0.005, 1, seed=number * 10 + int(workers))[0]
            seconds = 10.0 * (1 + number / 8) * factor * noise
            runs.append(measured("terasort", number, seconds, config={"workers": workers}))
    return write(tmp_path, runs, vary={"workers": ("1", "2")})


def test_turns_are_paired(tmp_path: Path) -> None:
    folder = drifting(tmp_path / "r")
    (found,) = compare(read_side(f"{folder}:workers=1"), read_side(f"{folder}:workers=2"))
    assert found.ratio.paired
    assert found.verdict == "slower"
    assert found.ratio.value == pytest.approx(1.05, rel=0.01)
    # The same times from two sessions say nothing: the drift hides it.
    apart = two(
        tmp_path,
        [r.wall_s for r in read_side(f"{folder}:workers=1").runs()["", "terasort"]],
        [r.wall_s for r in read_side(f"{folder}:workers=2").runs()["", "terasort"]],
    )
    (found,) = compare(*map(read_side, map(str, apart)))
    assert (found.ratio.paired, found.verdict) == (False, "no difference")


def test_rounds_that_one_side_lacks_are_left_out(tmp_path: Path) -> None:
    runs = [*sorts([10, 11, 12], {"w": "1"}), *sorts([20, 22], {"w": "2"})]
    folder = write(tmp_path / "r", runs, vary={"w": ("1", "2")})
    (found,) = compare(read_side(f"{folder}:w=1"), read_side(f"{folder}:w=2"))
    assert found.n == (2, 2)
    assert found.ratio.value == pytest.approx(2)


def test_warm_up_does_not_count(tmp_path: Path) -> None:
    cold = [replace(one, round=0, warm_up=True) for one in sorts([1000.0])]
    one = write(tmp_path / "a", [*cold, *sorts([10.0, 10.1, 10.2])])
    other = write(tmp_path / "b", sorts([10.0, 10.1, 10.2]))
    assert compare(read_side(str(one)), read_side(str(other)))[0].n == (3, 3)


def test_intervals_hold_together(tmp_path: Path) -> None:
    """With many steps each interval is wider: else one of twenty would be slower by chance."""
    values = times(10.0, 0.05, 5, seed=1), times(11.0, 0.05, 5, seed=2)
    alone = [write(tmp_path / f"a{place}", sorts(some)) for place, some in enumerate(values)]
    many = [
        write(
            tmp_path / f"b{place}",
            [replace(one, step=f"step-{step}") for step in range(20) for one in sorts(some)],
        )
        for place, some in enumerate(values)
    ]
    (one,) = compare(*map(read_side, map(str, alone)))
    found = compare(*map(read_side, map(str, many)))
    assert len(found) == 20
    wide, narrow = found[0].ratio.interval, one.ratio.interval
    assert wide is not None
    assert narrow is not None
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"suite": "io"}, "suite is 'sort' in the first, 'io' in the second"),
        ({"rows": 5}, "rows is 10000000 in the first, 5 in the second"),
        ({"cache": "cold"}, "cache is 'warm' in the first, 'cold' in the second"),
    ],
)
def test_other_work_is_refused(asked: dict[str, Any], expected: str, tmp_path: Path) -> None:
    one = write(tmp_path / "a", sorts([10.0, 10.1]))
    other = write(tmp_path / "b", sorts([10.0, 10.1]), **asked)
    assert expected in run("bench", "compare", one, other, status=1).stderr


def test_another_machine_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = write(tmp_path / "a", sorts([10.0, 10.1]))
    monkeypatch.setitem(MACHINE, "processors", 64)
    other = write(tmp_path / "b", sorts([10.0, 10.1]))
    done = run("bench", "compare", one, other, status=1)
    assert "processors is 2 in the first, 64 in the second" in done.stderr


def test_what_may_be_the_cause_is_said(tmp_path: Path) -> None:
    one = write(tmp_path / "a", sorts([10.0, 10.1]))
    other = write(tmp_path / "b", sorts([10.0, 10.1]), options={"workers": "2"})
    told = noted(read_side(str(one)).results, read_side(str(other)).results)
    assert told == ["workers is missing in the first, '2' in the second"]
    assert told[0] in run("bench", "compare", one, other).stdout


def test_what_only_one_side_has_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "r", [*sorts([10.0], {"w": "1"}), *sorts([20.0], {"w": "2"})])
    plain = write(tmp_path / "a", sorts([10.0]))
    with pytest.raises(BenchError, match=r"w=1 terasort, w=2 terasort in one of them only"):
        compare(read_side(str(plain)), read_side(str(folder)))
    with pytest.raises(BenchError, match="no run of it counts; it has w=1, w=2"):
        read_side(f"{folder}:w=3")
    with pytest.raises(BenchError, match="with themselves"):
        compare(read_side(str(folder)), read_side(str(folder)))
