"""Several inputs of one job: a join of tables in different formats."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.mapreduce.harness import gristmill

import gristmill as gm
from gristmill.mapreduce.check.determinism import check_output
from gristmill.mapreduce.check.naive import run_naively
from gristmill.mapreduce.retry.replay_record import replay_record

USERS: list[dict[str, Any]] = [{"id": n, "name": f"n{n}"} for n in range(50)]
SALES = [(n % 60, n) for n in range(500)]


def by_user(record: dict[str, Any], context: gm.Context) -> Iterator[tuple[int, tuple[str, Any]]]:
    if context.tag == "users":
        yield record["id"], ("name", record["name"])
    else:
        yield int(record["user"]), ("sale", int(record["amount"]))


def joined(_: int, values: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, int]]:
    found = list(values)
    names = [value for kind, value in found if kind == "name"]
    for name in names:
        yield name, sum(value for kind, value in found if kind == "sale")


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    users, sales = tmp_path / "users.parquet", tmp_path / "sales.csv.gz"
    module: Any = pq
    module.write_table(pa.Table.from_pylist(USERS), users, row_group_size=7)
    lines = "".join(f"{user},{amount}\n" for user, amount in SALES)
    sales.write_bytes(gzip.compress(f"user,amount\n{lines}".encode()))
    return users, sales


def wanted() -> dict[str, int]:
    return {
        row["name"]: sum(amount for user, amount in SALES if user == row["id"]) for row in USERS
    }


def join_of(tables: tuple[Path, Path], tmp_path: Path, **options: Any) -> gm.Job:
    users, sales = tables
    return gm.Job(
        [gm.csv(sales, tag="sales"), gm.parquet(users, tag="users")],
        map=by_user,
        reduce=joined,
        output=gm.kv(tmp_path / "out"),
        **options,
    )


@pytest.mark.parametrize("split_max", [None, 100])
def test_a_join(tables: tuple[Path, Path], tmp_path: Path, split_max: int | None) -> None:
    job = join_of(tables, tmp_path, split_max=split_max, parts=3)
    result = job.run(workers=2, no_sync=True)
    assert dict(result.read()) == wanted()
    assert result.counters["MAP_INPUT_RECORDS"] == len(USERS) + len(SALES)
    naive = run_naively(job)
    assert dict(row for part in naive.parts for row in part) == wanted()
    assert "gm.parquet" in job.explain()
    assert "tag='sales'" in job.explain()


def test_values_come_in_the_order_of_the_inputs(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x 1\nx 2\n")
    sources = [gm.items([("x", "0")], tag="i"), gm.delimited(tmp_path / "a", " ")]
    job = gm.Job(sources, reduce=gm.collect(), output=gm.kv(tmp_path / "out"))
    assert list(job.run(no_sync=True).read()) == [("x", ("0", "1", "2"))]
    job = gm.Job(sources[:1], reduce=gm.collect(), output=gm.kv(tmp_path / "out"))
    assert str(job.input) == "gm.items(1 items)"


def test_a_check_and_a_single_record(tables: tuple[Path, Path], tmp_path: Path) -> None:
    job = join_of(tables, tmp_path, combine=None)
    assert not check_output(job, rounds=1, engine=True).differences
    single = replay_record(job, str(tables[0]), 3)
    assert list(single.yielded()) == [(3, ("name", "n3"))]
    single = replay_record(job, str(tables[1]), len("user,amount\n"))
    assert list(single.yielded()) == [(0, ("sale", 0))]


def test_a_chain_and_bad_records(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"n": 1}\nnot json\n{"n": 2}\n')
    (tmp_path / "b.txt").write_text("3\nfour\n5\n")

    def numbers(record: Any, context: gm.Context) -> Iterator[tuple[str, int]]:
        yield context.tag, record["n"] if context.tag == "json" else int(record)

    first = gm.Job(
        [gm.jsonl(tmp_path / "a.jsonl", tag="json"), gm.text(tmp_path / "b.txt", tag="text")],
        map=numbers,
        reduce=gm.sum(),
        skip_bad=2,
    )
    chain = first.then(map=lambda pair: [pair], output=gm.kv(tmp_path / "out"))  # type: ignore[reportUnknownLambdaType]
    assert sorted(chain.run(no_sync=True).read()) == [("json", 3), ("text", 8)]


def test_batches_of_two_formats(tables: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "ids").write_text("1\n2\n")

    def ids(batch: Any, context: gm.Context) -> Iterator[tuple[str, int]]:
        yield context.tag, batch.num_rows

    sources = [gm.parquet(tables[0], tag="users"), gm.text(tmp_path / "ids", tag="ids")]
    job = gm.Job(sources, map_batches=ids, reduce=gm.sum(), output=gm.kv(tmp_path / "out"))
    assert dict(job.run(no_sync=True).read()) == {"users": 50, "ids": 2}


def test_the_command_line_names_inputs_by_tags(tables: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(
        "import gristmill as gm\n\n\n"
        "def tagged(record, context):\n"
        "    yield context.tag, 1\n\n\n"
        'job = gm.Job([gm.csv("none", tag="sales"), gm.parquet("none", tag="users")],'
        ' map=tagged, reduce=gm.sum(), output=gm.tsv("out"))\n'
    )
    users, sales = tables
    given = ["--input", f"sales={sales}", "--input", f"users={users}"]
    done = gristmill("run", "job.py", *given, "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["records"] == 2
    assert (tmp_path / "out/part-r-00000.tsv").read_text() == "sales\t500\nusers\t50\n"
    wrong = gristmill("run", "job.py", "--input", str(sales), cwd=tmp_path, status=2)
    assert "write TAG=PATH; the tags are: sales, users" in wrong.stderr


@pytest.mark.parametrize(
    ("given", "error"), [([], ValueError), ([1], TypeError), (["a"], TypeError)]
)
def test_lists_that_make_no_job(given: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="cannot make the job"):
        gm.Job(given, map=by_user)
    job = gm.Job(gm.items([1]), map=by_user)
    with pytest.raises(TypeError, match="the output that it writes"):
        gm.Job([job], map=by_user)  # type: ignore[list-item] - that is the test
