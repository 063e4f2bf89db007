"""Bad records that a job leaves out: counted over a chain, kept where the user finds them, told."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.mapreduce.harness import gristmill

import gristmill as gm

LINES = ['{"u": "a", "n": 1}', "{broken", '{"u": "b", "n": 2}', '{"u": "a", "n": 3}', "nope"]


def amounts(row: dict[str, Any]) -> Any:
    yield row["u"], row["n"]


def not_b(pair: tuple[str, int]) -> Any:
    if pair[0] == "b":
        raise ValueError("no b")
    yield pair


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


def chain(source: Path, **options: Any) -> gm.Job:
    first = gm.Job(gm.jsonl(source), map=amounts, reduce=gm.sum(), skip_bad=5, **options)
    return first.then(map=not_b, skip_bad=1, output=gm.kv(source.parent / "out"))


def kept(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("_bad-*"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_a_chain_counts_and_keeps_what_all_its_jobs_leave_out(source: Path) -> None:
    result = chain(source).run(workers=1)
    assert list(result) == [("a", 4)]
    assert result.skipped == 3
    assert result.counters["MAP_SKIPPED_RECORDS"] == 3
    assert result.left_out == {str(source.parent / "out"): 3}
    assert repr(result).endswith("; 3 left out>")
    names = sorted(path.name for path in (source.parent / "out").glob("_bad-*"))
    assert names == ["_bad-1-m-00000.jsonl", "_bad-m-00000.jsonl"]
    assert [one["data"] for one in kept(source.parent / "out")][:2] == ["{broken", "nope"]
    assert not list(source.parent.glob(".out*"))


def test_what_a_job_of_a_chain_with_an_output_leaves_out_stays_there(source: Path) -> None:
    result = chain(source, output=gm.kv(source.parent / "first")).run(workers=1)
    assert result.left_out == {str(source.parent / "first"): 2, str(source.parent / "out"): 1}
    assert len(kept(source.parent / "first")) == 2
    assert len(kept(source.parent / "out")) == 1


def test_a_result_without_bad_records_says_nothing_of_them(tmp_path: Path) -> None:
    job = gm.Job(gm.items([("a", 1)]), reduce=gm.sum(), output=gm.kv(tmp_path / "out"), skip_bad=2)
    result = job.run(workers=1)
    assert (result.skipped, result.left_out) == (0, {})
    assert "left out" not in repr(result)


PROGRAM = """
import gristmill as gm

def amounts(row):
    yield row["u"], row["n"]

first = gm.Job(gm.jsonl("in.jsonl"), map=amounts, reduce=gm.sum())
job = first.then(map=lambda pair: [pair], output=gm.tsv("out"))
alone = gm.Job(gm.jsonl("in.jsonl"), map=amounts, reduce=gm.sum(), output=gm.tsv("out"))
"""


@pytest.mark.parametrize("name", ["job", "alone"])
def test_the_summary_counts_the_output_and_what_is_left_out_apart(source: Path, name: str) -> None:
    folder = source.parent
    (folder / "job.py").write_text(PROGRAM)
    done = gristmill("run", "job.py", "--job", name, "--skip-bad", "2", cwd=folder)
    said = done.stdout.splitlines()
    assert said[0] == "2 records, 8 B, in 1 file of out; 2 left out"
    assert "2 bad records left out, kept in out/_bad-*" in said
    assert len(kept(folder / "out")) == 2


def test_a_line_that_is_not_json_is_blamed_on_the_input_with_what_to_do(source: Path) -> None:
    (source.parent / "job.py").write_text(PROGRAM)
    folder = source.parent
    said = gristmill("run", "job.py", "--job", "alone", cwd=folder, status=1).stderr
    assert "read gm.jsonl('in.jsonl'): the line is not JSON" in said
    assert "leave such records out with skip_bad=N, or gristmill run --skip-bad N." in said
    more = gristmill("run", "job.py", "--skip-bad", "1", cwd=folder, status=1).stderr
    assert "read gm.jsonl('in.jsonl'): the line is not JSON" in more
    assert ", the 2nd bad record; skip_bad allows 1 (file in.jsonl" in more
    assert "map amounts" not in more
    assert "What to do" not in more


def test_a_missing_column_is_no_record_to_leave_out(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a,b\n1,2\n")
    source = gm.csv(tmp_path / "in.csv", columns=["c"])
    with pytest.raises(ValueError, match="no column 'c'") as caught:
        gm.Job(source, map=lambda row: [], output=gm.kv(tmp_path / "out")).run(workers=1)
    assert "skip_bad" not in str(caught.value)


def test_a_line_whose_number_is_not_known_has_none(tmp_path: Path) -> None:
    rows = [json.dumps({"u": "a", "n": 1})] * 200 + ["nope"]
    (tmp_path / "in.jsonl").write_text("\n".join(rows))
    source = gm.jsonl(tmp_path / "in.jsonl")
    options = {"map": amounts, "reduce": gm.sum(), "skip_bad": 1, "split_max": 1000}
    gm.Job(source, output=gm.kv(tmp_path / "out"), **options).run(workers=1)
    (bad,) = kept(tmp_path / "out")
    assert (bad["offset"], bad["line"]) == (200 * 19, None)
    assert bad["error"].startswith("the line is not JSON")


@pytest.mark.parametrize(
    ("aggregate", "bad"),
    [(gm.sum(), "n/a"), (gm.mean(), None), (gm.max(), {"no": "order"}), (gm.top(2), [])],
)
def test_a_value_that_an_aggregate_refuses_is_a_bad_record(
    tmp_path: Path, aggregate: gm.Aggregate, bad: Any
) -> None:
    source = gm.items([("k", 1), ("k", bad), ("k", 1)])
    options = {"map": lambda pair: [pair], "reduce": aggregate, "output": gm.kv(tmp_path / "out")}
    result = gm.Job(source, skip_bad=1, **options).run(workers=1)
    assert result.skipped == 1
    found = list(result)
    expected = gm.Job(gm.items([("k", 1), ("k", 1)]), **options).run(workers=1, overwrite=True)
    assert found == list(expected)


def test_the_checked_values_are_those_that_aggregates_take(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    source = gm.items([("k", numpy.int64(2)), ("k", True), ("k", 1.5), ("k", None)])
    options = {"map": lambda pair: [pair], "output": gm.kv(tmp_path / "out"), "skip_bad": 1}
    for aggregate, found in ((gm.sum(skip_none=True), 4.5), (gm.distinct(), (None, 2, 1.5, True))):
        result = gm.Job(source, reduce=aggregate, **options).run(workers=1, overwrite=True)
        assert (list(result), result.skipped) == ([("k", found)], 0)


# --- one record again ---


def only(folder: Path, place: str, status: int = 0) -> str:
    (folder / "job.py").write_text(PROGRAM)
    done = gristmill("run", "job.py", "--only", place, cwd=folder, status=status)
    return done.stderr if status else done.stdout


def test_only_passes_over_broken_lines(source: Path) -> None:
    offset = sum(len(line) + 1 for line in LINES[:2])
    assert only(source.parent, f"in.jsonl:{offset}").splitlines()[1] == "  ('b', 2)"


def test_only_says_where_a_record_is_broken_and_where_none_begins(source: Path) -> None:
    broken = len(LINES[0]) + 1
    said = only(source.parent, f"in.jsonl:{broken}", 1)
    assert f"cannot read the record at offset {broken} of in.jsonl: the line is not JSON" in said
    said = only(source.parent, f"in.jsonl:{broken + 1}", 2)
    assert f"begins at offset {broken + 1} of in.jsonl" in said
    assert f"such as {broken} or {broken + len(LINES[1]) + 1}." in said
    assert "name a file of the job's input" in only(source.parent, "other.jsonl:0", 2)


def test_only_names_the_place_of_what_fails(source: Path) -> None:
    source.write_text('{"n": 1}\n')
    said = only(source.parent, "in.jsonl:0", 1)
    assert "cannot map the record: KeyError: 'u' (file in.jsonl, offset 0)." in said
