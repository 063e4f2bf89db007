"""`gm.max_by`, `gm.min_by`, and `gm.first` and `gm.last` in an order: one value of each key."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gristmill as gm
from gristmill.mapreduce.check.determinism import check_output
from gristmill.mapreduce.plain_order import by_worth

ROWS: list[dict[str, Any]] = [{"id": n % 3, "at": (n * 7) % 5, "n": n} for n in range(20)]
NEWEST = {
    key: max((row for row in ROWS if row["id"] == key), key=lambda row: row["at"])
    for key in range(3)
}


def job_of(tmp_path: Path, rows: Any = ROWS, **options: Any) -> gm.Job:
    options = {"map": lambda row: [(row["id"], row)], "output": gm.kv(tmp_path / "out"), **options}
    return gm.Job(gm.items(rows), **options)


@pytest.mark.parametrize("split_max", [1, None])
def test_the_newest_record_of_each_id(tmp_path: Path, split_max: int | None) -> None:
    job = job_of(tmp_path, reduce=gm.max_by(lambda row: row["at"]), split_max=split_max)
    result = job.run(workers=2, no_sync=True)
    assert dict(result) == NEWEST, "of equal ones the first"
    assert job.name == "<lambda>, gm.max_by(<lambda>)"
    if split_max is None:
        counters = result.counters
        assert counters["COMBINE_INPUT_RECORDS"] == 20
        assert counters["REDUCE_INPUT_RECORDS"] < 20 or counters["LAUNCHED_MAPS"] == 20


def test_it_combines_before_the_shuffle(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("".join(f"{n % 3} {n}\n" for n in range(3000)))
    job = gm.Job(
        gm.delimited(tmp_path / "in", " "),
        reduce=gm.min_by(int),
        output=gm.kv(tmp_path / "out"),
    )
    result = job.run(workers=1, no_sync=True)
    assert list(result) == [("0", "0"), ("1", "1"), ("2", "2")]
    assert result.counters["REDUCE_INPUT_RECORDS"] == 3
    job = job_of(tmp_path, reduce=gm.max_by(lambda row: row["at"]), parts=2)
    assert check_output(job, rounds=1, engine=False).deterministic


numbers = st.one_of(st.integers(-3, 3), st.floats(), st.booleans(), st.none(), st.text(max_size=2))


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from("ab"), numbers), max_size=20))
def test_they_compare_as_sort_by_does(tmp_path: Path, pairs: list[Any]) -> None:
    numbered = [(key, (value, at)) for at, (key, value) in enumerate(pairs)]
    for reduce, pick in ((gm.max_by, max), (gm.min_by, min)):
        job = gm.Job(
            gm.items(numbered), reduce=reduce(lambda value: value[0]), output=gm.kv(tmp_path / "o")
        )
        found = dict(job.run(workers=1, no_sync=True, overwrite=True, progress=False))
        for key in {key for key, _ in numbered}:
            wanted = pick((v for k, v in numbered if k == key), key=lambda v: by_worth(v[0]))
            assert found[key][1] == wanted[1]


@pytest.mark.parametrize(("reduce", "sign"), [(gm.first(), 1), (gm.last(), -1)])
def test_first_and_last_in_an_order(tmp_path: Path, reduce: gm.Aggregate, sign: int) -> None:
    rows = [{**row, "id": 1} for row in ROWS]
    order = lambda key, row: sign * row["n"]  # noqa: E731
    result = job_of(tmp_path, rows, reduce=reduce, sort_by=order).run(no_sync=True)
    assert [row["n"] for _, row in result] == [0]
    newest = job_of(tmp_path, reduce=gm.first(), sort_by=lambda key, row: gm.desc(row["at"]))
    assert dict(newest.run(no_sync=True, overwrite=True)) == NEWEST
    grouped = job_of(
        tmp_path, reduce=reduce, group_by=lambda key: "all", sort_by=lambda key, row: row["n"]
    )
    ((key, row),) = grouped.run(no_sync=True, overwrite=True)
    assert (key, row["id"]) == ("all", 0 if sign == 1 else 2), "keys of a group come first"


def test_missing_values_in_an_order(tmp_path: Path) -> None:
    options: dict[str, Any] = {"map": None, "sort_by": lambda key, value: value is None}
    job = job_of(
        tmp_path, [("a", None), ("a", 2), ("b", None)], reduce=gm.last(skip_none=True), **options
    )
    assert list(job.run(no_sync=True)) == [("a", 2), ("b", None)]


@pytest.mark.parametrize("reduce", [gm.sum(), gm.collect(), gm.max()])
def test_other_reductions_have_no_order(tmp_path: Path, reduce: gm.Aggregate) -> None:
    with pytest.raises(ValueError, match="sort_by= is for functions"):
        job_of(tmp_path, reduce=reduce, sort_by=lambda key, row: 1)
    with pytest.raises(ValueError, match="combine= is for functions"):
        job_of(tmp_path, reduce=gm.first(), sort_by=lambda key, row: 1, combine=lambda k, v: v)


def test_what_is_no_function() -> None:
    for make in (gm.max_by, gm.min_by):
        with pytest.raises(TypeError, match=rf"cannot make gm\.{make.__name__}\('at'\)"):
            make("at")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"reduce is gm\.max_by itself.* call it: gm\.max_by\(\)"):
        gm.Job(gm.items([]), reduce=gm.max_by)


def test_what_by_returns_is_a_key(tmp_path: Path) -> None:
    job = job_of(tmp_path, reduce=gm.max_by(lambda row: row))
    with pytest.raises(RuntimeError, match="what the by of gm") as caught:
        job.run(no_sync=True, workers=1)  # so that the first task fails first
    text = str(caught.value)
    assert "combine gm.max_by(<lambda>): what the by of gm.max_by(<lambda>) returns must" in text
    assert "is of type dict, for the value {'at': " in text
    assert f"({__file__}, line " in text
    assert "key 0" in text


def test_a_function_of_two_values_is_refused_when_the_job_is_made() -> None:
    with pytest.raises(TypeError, match=r"takes \(key, row\), and is called with one argument"):
        gm.max_by(lambda key, row: row)  # type: ignore[misc, arg-type]  # pyright: ignore[reportArgumentType]
