"""`gristmill resume` of a chain of jobs: killed in any of them, it goes on to the same bytes."""

import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .chain_of_jobs import histories, killed_in, killed_while_it_goes_on, make_chain
from .harness import clean_environment, end, failure, names, run, start
from .resuming import tree


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a chain, its input and what it makes of it."""
    folder = tmp_path_factory.mktemp("chain")
    make_chain(folder, lines=5_000)
    return folder


@pytest.fixture
def bench(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "bench"
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OF_THE_FIRST", "kept")
    (folder / "wanted.json").write_text(
        run("run", "chain.py", "--output", "wanted", "--json").stdout
    )
    monkeypatch.setenv("SLOW", "1")
    yield folder


@pytest.mark.parametrize(
    ("job", "between"), [(1, "none"), (2, "none"), (2, "between"), (3, "between")]
)
def test_killed_in_each_of_its_jobs(
    job: int, between: str, bench: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_in(home, job, "--set", f"between={between}")
    (listed,) = [one for one in json.loads(run("jobs", "--json").stdout) if one["resumable"]]
    told = run("jobs", "show", listed["job_id"]).stdout
    assert "resumes the chain" in told
    assert "  job 1 of the chain" in run("jobs").stdout
    assert not (bench / "out").exists()
    monkeypatch.delenv("OF_THE_FIRST")  # jobs behind the dead one have it from the first process
    monkeypatch.chdir(home)
    said = json.loads(run("resume", "last", "--json").stdout)
    wanted = json.loads((bench / "wanted.json").read_text())
    assert [one["records"] for one in said["chain"]] == [one["records"] for one in wanted["chain"]]
    assert said["user_counters"] == wanted["user_counters"]
    assert tree(bench / "out") == tree(bench / "wanted")
    assert hidden(bench) == []
    assert (bench / "between").exists() == (between != "none")
    assert "is over" in failure("resume", listed["job_id"])


def hidden(folder: Path) -> list[str]:
    return [name for name in names(folder) if name.startswith(".")]


def test_killed_again_while_it_goes_on(bench: Path, home: Path) -> None:
    killed_in(home, 1)
    assert killed_while_it_goes_on(bench, random.Random(2), longest_s=0.5) >= 1
    assert tree(bench / "out") == tree(bench / "wanted")
    assert hidden(bench) == []


def test_from_python_and_between_two_jobs(bench: Path, home: Path) -> None:
    """The history of the third job is gone, as if the process had died before it had one."""
    killed_in(home, 3)
    shutil.rmtree(histories(home)[-1].parent)
    program = "import gristmill as gm; print(gm.resume('last').records)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=home,
        env=clean_environment(),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert int(done.stdout) == sum(len(part.splitlines()) for part in tree(bench / "out").values())
    assert tree(bench / "out") == tree(bench / "wanted")


@pytest.mark.parametrize("harm", ["code", "mode", "content", "gone"])
def test_what_is_refused_is_resumed_when_the_reason_is_gone(
    harm: str, bench: Path, home: Path
) -> None:
    killed_in(home, 2)
    job_id = histories(home)[-1].parent.name
    (definition,) = bench.glob(".out.job_*/definition")
    path = bench / "helper.py" if harm == "code" else definition
    before, mode = path.read_bytes(), path.stat().st_mode
    if harm == "mode":
        path.chmod(0o640)
    elif harm == "gone":
        path.unlink()
    else:
        path.write_bytes(before + b"#")
    said = failure("resume", job_id)
    words = "a file of its code has changed" if harm == "code" else "its definition is gone"
    assert f"cannot resume a chain of jobs: {words}" in said
    assert names(bench)[0].startswith(".out.job_")
    path.write_bytes(before)
    path.chmod(mode)
    run("resume", job_id)
    assert tree(bench / "out") == tree(bench / "wanted")


def test_an_output_that_is_gone_is_named_and_a_line_that_was_cut_is_none(
    bench: Path, home: Path
) -> None:
    killed_in(home, 2)
    (folder,) = bench.glob(".out.job_*")
    (folder / "0").rename(bench / "moved")
    assert "the output of its job 1 is gone" in failure("resume", "last")
    (bench / "moved").rename(folder / "0")
    with (folder / "begun").open("a") as file:
        file.write('{"number": 2, "jo')
    assert killed_while_it_goes_on(bench, random.Random(4), longest_s=0.5) >= 1
    assert tree(bench / "out") == tree(bench / "wanted")


def test_what_a_dead_chain_left_goes_with_the_next_one(bench: Path, home: Path) -> None:
    killed_in(home, 2)
    other = bench / ".out.job_20260101000000_1"  # it has no definition: no chain made it
    other.mkdir()
    run("run", "chain.py")
    assert hidden(bench) == [other.name]


def test_a_chain_that_lives_is_not_resumed(bench: Path, home: Path) -> None:
    process = start("run", "chain.py", "--history", "--workers", "1")
    while len(histories(home)) < 2:
        time.sleep(0.01)
    first = histories(home)[0].parent.name
    assert "is over" in failure("resume", first)
    assert end(process).status == 0
    assert tree(bench / "out") == tree(bench / "wanted")


def test_functions_that_cannot_be_sent_are_found_before_the_first_job(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a\n")
    (tmp_path / "chain.py").write_text(
        "import threading, gristmill as gm\n"
        "lock = threading.Lock()\n"
        "first = gm.Job(gm.text('in.txt'), map=lambda line: [(line, 1)], output=gm.kv('first'))\n"
        "job = first.then(map=lambda pair: [lock], output=gm.text('out'))\n"
    )
    said = run("run", "chain.py", cwd=tmp_path, status=2).stderr
    assert "cannot send map" in said
    assert set(names(tmp_path)) == {"__pycache__", "chain.py", "in.txt"}
