"""Jobs from and to an object store that fails: the bytes are those of a job on a disk.

The store is the one that is kept in a directory. One request in eight is refused or loses its
reply, and objects are in no listing for a while. That undisturbed jobs of all kinds make the same
is tried in tests/places.
"""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .harness import GRISTMILL, clean_environment, failure, report, run
from .own_code import Bench
from .resuming import Tree, killed_in_a_store

FAULTS = "refused=0.08,lost=0.05,late_ms=300"

KILLS = 6

#: So little memory, beside the parts that are uploaded, that 30 MB make runs.
RUNS = ("--memory", "39M", "--workers", "2")

PROCESSES = ("--runner", "processes")


def url(path: Path) -> str:
    return f"objects://{path}"


def objects(path: Path) -> Tree:
    """All objects of an output but its proof; nothing of an upload is left beside them."""
    own = path / ".objects" if path.is_dir() else path.parent / ".objects"
    left = [name.name for name in own.iterdir() if not name.name.endswith(".version")]
    assert left == [], left
    if path.is_file():
        return {"": path.read_bytes()}
    parts = (part for part in path.iterdir() if part.name not in ("_SUCCESS", ".objects"))
    return {part.name: part.read_bytes() for part in parts}


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: Path) -> Path:
    """An empty object store, in whose neighbour `work` jobs have their folders."""
    assert not home.exists()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    folder = tmp_path / "store"
    folder.mkdir()
    return folder


def faulty(*arguments: str | Path) -> None:
    seed = random.randrange(1 << 20)
    run(*arguments, GRISTMILL_OBJECTS_FAULTS=f"{FAULTS},seed={seed}")


@pytest.fixture(scope="module")
def tera(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Tree]]:
    """300,000 records: 30 MB; and how they are sorted on a disk."""
    folder = tmp_path_factory.mktemp("tera")
    run("teragen", "300k", folder / "in", "--files", "2", "--no-sync")
    run("terasort", folder / "in", folder / "out", "--partitions", "3", "--no-sync")
    wanted = {part.name: part.read_bytes() for part in folder.glob("out/part-*")}
    yield folder / "in", wanted
    shutil.rmtree(folder)


def put(records: Path, folder: Path) -> None:
    """Copy records to a store, an hour ago: every listing has them."""
    shutil.copytree(records, folder)
    for part in folder.iterdir():
        make_old(part)


def make_old(path: Path) -> None:
    """Have a file be of an hour ago."""
    then = time.time() - 3600
    os.utime(path, times=(then, then))


@pytest.mark.parametrize(
    "memory",
    [("--memory", "400M"), RUNS, ("--memory", "64M", *PROCESSES)],
    ids=["memory", "runs", "processes"],
)
def test_terasort(memory: tuple[str, ...], tera: tuple[Path, Tree], store: Path) -> None:
    records, wanted = tera
    put(records, store / "in")
    command = ["terasort", url(store / "in"), url(store / "out"), *memory, "--partitions", "3"]
    faulty(*command)
    assert objects(store / "out") == wanted
    assert "exists" in failure(*command)
    for name in ("part-r-00007", "part-r-00001"):  # of an output with more parts, and another
        (store / "out" / name).write_bytes(b"old")
        make_old(store / "out" / name)
    faulty(*command, "--overwrite")
    assert objects(store / "out") == wanted
    found = report("teravalidate", url(store / "out"), "--against", url(store / "in"))
    assert found["records"] == 300_000
    assert hidden(Path()) == []


def test_explain_says_where_output_and_runs_lie(tera: tuple[Path, Tree], store: Path) -> None:
    records, _ = tera
    explained = report("explain", "terasort", records, url(store / "out"), *RUNS)
    output, runs = explained["disks"]
    assert (output["path"], output["free"]) == (url(store), None)
    assert runs["path"] == "."
    assert runs["free"] > 0
    assert list(store.iterdir()) == []


def parts(folder: Path) -> Tree:
    return {part.name: part.read_bytes() for part in folder.glob("part-*")}


def on_objects(bench: Bench, job: str, store: Path) -> list[str | Path]:
    """The command line of a Python job from and to a store."""
    local = bench.command(job, store / "out")
    there = {
        str(bench.folder / "in.txt"): url(store / "in.txt"),
        str(store / "out"): url(store / "out"),
    }
    return [there.get(str(word), word) for word in local]


@pytest.mark.parametrize("job", ["memory", "runs", "sort", "python", "processes"])
def test_killed_at_any_moment(
    job: str, tera: tuple[Path, Tree], store: Path, home: Path, tmp_path: Path
) -> None:
    records, wanted = tera
    out, more = store / "out", ("--partitions", "3", "--history")
    command: list[str | Path]
    if job == "python":
        bench = Bench.made(tmp_path / "bench", 3_000_000)
        shutil.copy(bench.folder / "in.txt", store / "in.txt")
        run(*bench.command("function", tmp_path / "wanted"))
        wanted = parts(tmp_path / "wanted")
        command = [*on_objects(bench, "function", store), "--history"]
    elif job == "sort":
        put(records, store / "in")
        run("sort", store / "in", "-o", "wanted", "--format", "fixed:100:10")
        wanted = {"": Path("wanted").read_bytes()}
        Path("wanted").unlink()
        command = ["sort", url(store / "in"), "-o", url(out), "--format", "fixed:100:10"]
        command += [*RUNS, "--history"]
    else:
        put(records, store / "in")
        memory = {
            "memory": ("--memory", "400M"),
            "runs": RUNS,
            "processes": ("--memory", "64M", *PROCESSES),
        }[job]
        command = ["terasort", url(store / "in"), url(out), *memory, *more]
    shutil.rmtree(home, ignore_errors=True)
    killed = killed_in_a_store(begun, command, home, kills=KILLS)
    assert objects(out) == wanted
    assert hidden(Path()) == []
    assert killed >= 1, "the job was over before it could be killed"


def begun(*command: str | Path) -> subprocess.Popen[str]:
    faults = f"{FAULTS},seed={random.randrange(1 << 20)}"
    return subprocess.Popen(
        [GRISTMILL, *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=clean_environment(GRISTMILL_OBJECTS_FAULTS=faults),
    )


def test_no_upload_stays_of_a_job_that_fails_is_interrupted_or_pruned(
    tera: tuple[Path, Tree], store: Path
) -> None:
    records, _ = tera
    command = ["terasort", records, url(store / "out"), *RUNS, "--partitions", "3", "--history"]
    for end in (signal.SIGTERM, signal.SIGKILL):
        process = subprocess.Popen(
            [GRISTMILL, *map(str, command)],
            stderr=subprocess.DEVNULL,
            env=clean_environment(GRISTMILL_OBJECTS_FAULTS="refused=0.5"),
        )
        while process.poll() is None and not list(store.glob("out/.objects/*upload*")):
            time.sleep(0.002)
        process.send_signal(end)
        assert process.wait(60) != 0
        if end == signal.SIGKILL:
            assert list(store.glob("out/.objects/*upload*"))
            run("jobs", "prune", "--older-than", "0")
        assert not list(store.glob("out/**/*upload*"))
        assert not (store / "out" / "_SUCCESS").exists()
        assert hidden(Path()) == []


def test_a_store_that_does_not_answer_ends_the_job_with_what_to_do(store: Path) -> None:
    command = ("teragen", "1k", url(store / "made"))
    error = failure(*command, GRISTMILL_OBJECTS_FAULTS="refused=1")
    assert "500" in error
    assert "tries" in error
    assert "check that the store can be reached" in error
    assert "no store for gopher://" in failure("teragen", "1k", "gopher://bucket/made", status=2)


def test_a_spill_directory_that_is_missing_is_named(store: Path) -> None:
    run("teragen", "1k", "in")
    command = ("terasort", "in", url(store / "out"), "--spill-dir")
    error = failure(*command, "nowhere")
    assert "cannot use a spill directory: it does not exist (file " in error
    assert "nowhere)" in error
    assert "give --spill-dir a directory that exists" in error
    Path("file").touch()
    assert "it is not a directory" in failure(*command, "file", status=2)
    assert list(store.iterdir()) == []


@pytest.mark.parametrize("faults", ["refused=often", "wings=2", "refused=2", "late_ms", "\udcff"])
def test_faults_that_make_no_sense_are_refused_by_name(faults: str, store: Path) -> None:
    Path("job.py").write_text(
        "import gristmill as gm\n"
        "job = gm.Job(gm.items([1]), map=lambda n: [(n, n)], output=gm.kv('made'))\n"
    )
    for command in (
        ("teragen", "1k", url(store / "made")),
        ("run", "job.py"),
        ("run", "job.py", "--explain"),
        ("explain", "terasort", url(store / "in"), "out"),
    ):
        error = run(*command, status=2, GRISTMILL_OBJECTS_FAULTS=faults).stderr
        assert "cannot read the options: " in error
        assert "(variable GRISTMILL_OBJECTS_FAULTS)" in error
    assert list(store.iterdir()) == []
