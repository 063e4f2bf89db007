"""Jobs as inputs of commands: `gm.join(job, "cities.csv", by="id", output=...)`."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import gristmill as gm

SALES = [(1, 30), (2, 5), (1, 12), (4, 1)]


def pairs(sale: tuple[int, int]) -> Iterator[tuple[int, int]]:
    yield sale


def rows(sale: tuple[int, int]) -> Iterator[dict[str, object]]:
    yield {"user": sale[0], "text": 'a,"b"\n', "amount": sale[1]}


def fails(_: tuple[int, int]) -> Iterator[tuple[int, int]]:
    raise LookupError("no such user")
    yield 1, 1


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("users.csv").write_text("id,name\n1,ada\n2,ben\n3,cy\n")
    return tmp_path


def left(desk: Path) -> list[str]:
    return sorted(path.name for path in desk.iterdir())


def test_a_job_is_joined_with_a_file(desk: Path) -> None:
    amounts = gm.Job(gm.items(SALES), map=pairs, reduce=gm.sum())
    gm.join("users.csv", amounts, by="id=key", how="left", output="out.csv")
    assert Path("out.csv").read_text() == "id,name,value\n1,ada,42\n2,ben,5\n3,cy,\n"
    gm.join(amounts, "users.csv", by="key=id", how="anti", output="out.parquet", workers=1)
    assert pq.read_table("out.parquet").to_pylist() == [{"key": 4, "value": 1}]
    assert left(desk) == ["out.csv", "out.parquet", "users.csv"]


def test_jobs_stand_among_files(desk: Path) -> None:
    Path("more.csv").write_text("user,text,amount\n9,x,2\n")
    job = gm.Job(gm.items(SALES), map=rows)
    gm.sort([job, "more.csv"], key=["amount:num"], output="out.csv")
    wanted = ['4,"a,""b""', '",1', "9,x,2", '2,"a,""b""', '",5', '1,"a,""b""']
    assert Path("out.csv").read_text().splitlines()[1:7] == wanted
    gm.top_records(1, [job], jsonl=True, key=["amount:num:desc"], output="out.jsonl")
    found = json.loads(Path("out.jsonl").read_text())
    assert found == {"user": 1, "text": 'a,"b"\n', "amount": 30}
    assert left(desk) == ["more.csv", "out.csv", "out.jsonl", "users.csv"]


def test_an_output_stays_and_is_read(desk: Path) -> None:
    job = gm.Job(gm.items(SALES), map=rows, output=gm.parquet("sales/"))
    gm.group(job, by="user", sum="amount", output="out.parquet")
    found = {row["user"]: row["amount_sum"] for row in pq.read_table("out.parquet").to_pylist()}
    assert found == {1: 42, 2: 5, 4: 1}
    assert pq.read_table("sales").num_rows == 4
    assert left(desk) == ["out.parquet", "sales", "users.csv"]


def test_what_a_job_fails_at_is_raised(desk: Path) -> None:
    with pytest.raises(RuntimeError, match="no such user"):
        gm.shuf([gm.Job(gm.items(SALES), map=fails)], output="out.csv")
    with pytest.raises(ValueError, match='no column "amount"'):
        gm.sort([gm.Job(gm.items(SALES), map=pairs)], key=["amount"], output="out.csv")
    assert left(desk) == ["users.csv"]


def test_it_is_refused_where_no_table_is_read(desk: Path) -> None:
    with pytest.raises(TypeError):
        gm.wordcount([gm.Job(gm.items(SALES), map=pairs)], "out")  # pyright: ignore[reportArgumentType]
    assert left(desk) == ["users.csv"]


def test_wrong_values_are_told_as_they_were_given(desk: Path) -> None:
    with pytest.raises(ValueError, match="inputs is empty"):
        gm.unique([], output="out")
    with pytest.raises(ValueError, match=r"99999999999999999999 is not a whole number from 1 to"):
        gm.top_records(99_999_999_999_999_999_999, "users.csv", output="out")
    assert left(desk) == ["users.csv"]
