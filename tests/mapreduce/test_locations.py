"""Formats in an object store: what one job writes there, the next one reads."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gristmill as gm

WANTED = [("be", 10_000), ("not", 5_000), ("or", 5_000), ("to", 10_000)]


def words(line: str) -> Iterator[tuple[str, int]]:
    for word in line.split():
        yield word, 1


def row(pair: tuple[str, int]) -> list[dict[str, Any]]:
    return [{"word": pair[0], "n": pair[1]}]


def pair(found: dict[str, Any]) -> list[tuple[str, int]]:
    return [(found["word"], int(found["n"]))]


def same(pair: tuple[str, int]) -> list[tuple[str, int]]:
    return [pair]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with counted words, and a folder beside it in which jobs are begun."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    (tmp_path / "in.txt").write_text("to be or not to be\n" * 5_000)
    place = f"objects://{tmp_path}"
    job = gm.Job(
        gm.text(f"{place}/in.txt"), map=words, reduce=gm.sum(), output=gm.kv(f"{place}/kv")
    )
    result = job.run(workers=2)
    assert sorted(result) == WANTED
    return place


def test_pairs_come_back_and_chains_leave_nothing(store: str) -> None:
    first = gm.Job(gm.kv(f"{store}/kv", tag="kv"), reduce=gm.sum())
    output = gm.tsv(f"{store}/chain")
    found = gm.Job(first, map=same, reduce=gm.sum(), output=output).run(workers=2)
    assert sorted(found) == [(word, str(n)) for word, n in WANTED]
    assert list(Path().iterdir()) == []
    with pytest.raises(FileExistsError, match="the output exists"):
        gm.Job(gm.kv(f"{store}/kv"), reduce=gm.sum(), output=output).run(workers=2)
    assert found.output == f"{store}/chain"
    (file,) = found.files()
    assert file == f"{store}/chain/part-r-00000.tsv"
    assert sorted(gm.Job(gm.tsv(file), map=same, output=gm.tsv(f"{store}/again")).run()) == sorted(
        found
    )


def test_what_a_chain_keeps_lies_where_runs_go(store: str, tmp_path: Path) -> None:
    spill = tmp_path / "spill"
    spill.mkdir()

    def seen(_: object) -> list[tuple[str, int]]:
        return [(path.name, 1) for path in spill.iterdir()]

    first = gm.Job(gm.kv(f"{store}/kv"), reduce=gm.sum())
    job = gm.Job(first, map=seen, reduce=gm.sum(), output=gm.kv(f"{store}/chain"))
    names = [name for name, _ in job.run(workers=1, spill_dir=spill)]
    assert any(name.startswith(".chain.job_") for name in names), names
    assert list(spill.iterdir()) == []


@pytest.mark.parametrize("form", [gm.csv, gm.parquet, gm.arrow, gm.jsonl])
def test_rows_come_back(form: Callable[[str], Any], store: str) -> None:
    pytest.importorskip("pyarrow")
    rows = gm.Job(gm.kv(f"{store}/kv"), map=row, output=form(f"{store}/rows")).run(workers=2)
    assert sorted(pair(one)[0] for one in rows) == WANTED
    again = gm.Job(form(f"{store}/rows"), map=pair, reduce=gm.sum(), output=gm.kv(f"{store}/again"))
    assert sorted(again.run(workers=2)) == WANTED


def test_a_file_that_is_gone_or_was_changed_is_missed(store: str, tmp_path: Path) -> None:
    output = gm.kv(f"{store}/again")
    result = gm.Job(gm.kv(f"{store}/kv"), map=same, reduce=gm.sum(), output=output).run(workers=2)
    assert sorted(result) == WANTED
    file = tmp_path / "again/part-r-00000.kv"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(ValueError, match=rf"has {len(whole) - 1} bytes and had {len(whole)}\."):
        list(result)
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r"part-r-00000.kv does not exist"):
        list(result)


def test_a_success_leaves_out_the_named_outputs_that_it_lists(store: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for name in ("_SUCCESS", "errors-r-00000", "part-r-00000"):
        (other / name).write_text("" if name == "_SUCCESS" else f"{name}\n")
    job = gm.Job(gm.text(f"{store}/other"), map=lambda line: [line], output=gm.text("all"))
    assert sorted(job.run(no_sync=True)) == ["errors-r-00000", "part-r-00000"]

    def divided(line: str, context: gm.Context) -> list[str]:
        context.output("errors").write("an error")
        return [line]

    outputs = {"errors": gm.text()}
    ours = gm.Job(gm.items(["a"]), map=divided, output=gm.text(f"{store}/ours"), outputs=outputs)
    ours.run(no_sync=True)
    job = gm.Job(gm.text(f"{store}/ours"), map=lambda line: [line], output=gm.text("main"))
    assert list(job.run(no_sync=True)) == ["a"]


def test_what_is_not_there_is_said(store: str) -> None:
    job = gm.Job(gm.text(f"{store}/none"), map=words, reduce=gm.sum(), output=gm.kv(f"{store}/x"))
    with pytest.raises(FileNotFoundError, match="objects://"):
        job.run(workers=2)
