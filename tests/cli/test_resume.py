"""`gristmill resume`: jobs killed with -9 at any moment, again and again, end with the same bytes.

And what must not be resumed is refused, in one paragraph, with nothing touched.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .harness import Done, end, failure, names, report, run, start

KILLS = 10

Tree = dict[str, bytes]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home of the test's own."""
    folder = tmp_path / "home"
    monkeypatch.setenv("GRISTMILL_HOME", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """600,000 records, keys skewed: 60 MB."""
    folder = tmp_path_factory.mktemp("records") / "in"
    run("teragen", "600k", folder, "--files", "3", "--skew", "--no-sync")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Lines of many lengths, many of them equal: 60 MB."""
    path = tmp_path_factory.mktemp("lines") / "in"
    numbers = random.Random(7)
    with path.open("wb") as file:
        for _ in range(60):
            block = [
                b"%x" % numbers.getrandbits(numbers.choice((8, 40, 400, 2000)))
                for _ in range(6_400)
            ]
            file.write(b"\n".join(block) + b"\n")
    yield path
    path.unlink()


def tree(path: Path) -> Tree:
    """All bytes of an output, but for its proof, which names the job."""
    if path.is_file():
        return {"": path.read_bytes()}
    return {part.name: part.read_bytes() for part in path.iterdir() if part.name != "_SUCCESS"}


def events_of(home: Path) -> list[dict[str, Any]]:
    """The history of the only job, as far as its lines are whole."""
    (path,) = home.glob("jobs/*/events.jsonl")
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def wait_for_history(home: Path, process: subprocess.Popen[str]) -> None:
    deadline_s = time.monotonic() + 20
    while not list(home.glob("jobs/*/events.jsonl")) and process.poll() is None:
        assert time.monotonic() < deadline_s, "no history"
        time.sleep(0.001)


def kill_after(process: subprocess.Popen[str], seconds: float) -> Done:
    time.sleep(seconds)
    process.kill()
    return end(process)


def kill_when(
    arguments: list[str | Path], home: Path, is_time: Callable[[list[dict[str, Any]]], bool]
) -> None:
    """Start a job, and kill it as soon as its history says that it is time."""
    process = start(*arguments, "--history")
    wait_for_history(home, process)
    while process.poll() is None and not is_time(events_of(home)):
        time.sleep(0.002)
    process.kill()
    assert end(process).status == -signal.SIGKILL, "the job was over before it could be killed"


def kept(events: list[dict[str, Any]], what: str) -> int:
    """How many tasks of a kind are over."""
    return sum(what in event.get("kept", {}) for event in events if "kept" in event and
               event["event"] == "attempt_finished")


def spilled(events: list[dict[str, Any]]) -> bool:
    return kept(events, "spill") >= 4


def merged(events: list[dict[str, Any]]) -> bool:
    return kept(events, "merge") >= 1


def killed_again_and_again(arguments: list[str | Path], home: Path, *, longest_s: float) -> int:
    """Run a job, killing it and those that go on with it; returns how many were killed."""
    process = start(*arguments, "--history")
    wait_for_history(home, process)
    killed = 0
    for _ in range(KILLS):
        done = kill_after(process, random.uniform(0, longest_s))
        if done.status != -signal.SIGKILL:
            assert done.status == 0, done
            return killed
        killed += 1
        process = start("resume", "last")
    done = end(process)
    assert done.status == 0, done
    return killed


RUNS = ("--memory", "22M", "--workers", "2")


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--memory", "400M"), id="memory"),
        pytest.param((*RUNS, "--partitions", "3"), id="runs"),
        pytest.param(("--memory", "12M", "--workers", "1"), id="passes"),
        pytest.param((*RUNS, "--spill-dir", "SPILL", "--no-sync"), id="elsewhere"),
    ],
)
def test_terasort_killed_at_any_moment(
    options: tuple[str, ...], records: Path, home: Path, tmp_path: Path
) -> None:
    spill = tmp_path / "spill"
    spill.mkdir()
    given = [str(spill) if option == "SPILL" else option for option in options]
    wanted = tmp_path / "wanted"
    began_s = time.monotonic()
    run("terasort", records, wanted, *given)
    took_s = time.monotonic() - began_s
    before = tree(wanted)
    shutil.rmtree(wanted)
    killed = 0
    for _ in range(2):
        out = tmp_path / "out"
        arguments: list[str | Path] = ["terasort", records, out, *given]
        killed += killed_again_and_again(arguments, home, longest_s=took_s * 0.7)
        assert tree(out) == before
        assert names(tmp_path) == ["home", "out", "spill"]
        assert names(spill) == []
        run("teravalidate", out, "--against", records)
        shutil.rmtree(out)
        shutil.rmtree(home)
    assert killed >= 3, "the jobs were over before they could be killed"


@pytest.mark.parametrize("options", [(), ("-u",), ("-r", "-s")], ids=["lines", "unique", "reverse"])
def test_sort_killed_at_any_moment(
    options: tuple[str, ...], lines: Path, home: Path, tmp_path: Path
) -> None:
    wanted, out = tmp_path / "wanted", tmp_path / "out"
    given = [*options, "--memory", "16M", "--workers", "2"]
    began_s = time.monotonic()
    run("sort", lines, "-o", wanted, *given)
    took_s = time.monotonic() - began_s
    out.write_text("what was there before")
    killed = killed_again_and_again(["sort", lines, "-o", out, *given], home, longest_s=took_s)
    assert out.read_bytes() == wanted.read_bytes()
    assert names(tmp_path) == ["home", "out", "wanted"]
    assert killed >= 1, "the job was over before it could be killed"


def test_a_sort_in_place_is_resumed(lines: Path, home: Path, tmp_path: Path) -> None:
    wanted, out = tmp_path / "wanted", tmp_path / "out"
    run("sort", lines, "-o", wanted)
    shutil.copy(lines, out)
    arguments: list[str | Path] = ["sort", out, "-o", out, "--memory", "16M"]
    killed_again_and_again(arguments, home, longest_s=1.0)
    assert out.read_bytes() == wanted.read_bytes()
    assert names(tmp_path) == ["home", "out", "wanted"]


def test_teragen_killed_at_any_moment(home: Path, tmp_path: Path) -> None:
    wanted, out = tmp_path / "wanted", tmp_path / "out"
    arguments: list[str | Path] = ["teragen", "2m", out, "--files", "5", "--layout", "ascii"]
    run("teragen", "2m", wanted, *arguments[3:])
    killed = killed_again_and_again(arguments, home, longest_s=0.4)
    assert tree(out) == tree(wanted)
    assert names(tmp_path) == ["home", "out", "wanted"]
    assert killed >= 1, "the job was over before it could be killed"


# --- what is kept ---


@pytest.fixture
def wanted(records: Path, tmp_path: Path) -> Tree:
    """What a terasort that nobody disturbs makes."""
    run("terasort", records, tmp_path / "wanted", *RUNS)
    found = tree(tmp_path / "wanted")
    shutil.rmtree(tmp_path / "wanted")
    return found


def test_what_is_proved_is_not_done_again(
    records: Path, wanted: Tree, home: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    kill_when(["terasort", records, out, *RUNS], home, spilled)
    (job,) = json.loads(run("jobs", "--json").stdout)
    assert (job["state"], job["resumable"]) == ("dead", True)
    assert f"gristmill resume {job['job_id']}" in run("jobs").stderr
    assert f"gristmill resume {job['job_id']} goes on" in run("jobs", "show", "last").stdout
    done = report("resume", job["job_id"][4:])
    assert done["job_id"] == job["job_id"]
    assert done["counters"]["KEPT_TASKS"] >= 4
    assert tree(out) == wanted
    shown = json.loads(run("jobs", "show", "last", "--json").stdout)
    assert shown["state"] == "succeeded"
    assert len(shown["resumed_ms"]) == 1
    assert "not done again" in run("jobs", "show", "last").stdout
    run("report", "last", "-o", tmp_path / "page.html")


def test_from_another_directory(records: Path, wanted: Tree, home: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    command = f'cd "{there}" && exec "$0" "$@"'
    from .harness import GRISTMILL, clean_environment

    shutil.copytree(records, there / "in")
    process = subprocess.Popen(
        ["sh", "-c", command, GRISTMILL, "terasort", "in", "out", *RUNS, "--history"],
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    wait_for_history(home, process)
    while not merged(events_of(home)):
        time.sleep(0.002)
    process.kill()
    end(process)
    done = run("resume", "last")
    assert str(there) not in done.stderr
    assert "600,000 records" in done.stdout
    assert tree(there / "out") == wanted
    assert names(there) == ["in", "out"]


@pytest.mark.parametrize("when", [spilled, merged])
@pytest.mark.parametrize("harm", ["truncate", "remove", "header", "foreign"])
def test_a_damaged_run_is_made_again(
    harm: str,
    when: Callable[[list[dict[str, Any]]], bool],
    records: Path,
    wanted: Tree,
    home: Path,
    tmp_path: Path,
) -> None:
    """Once merging has begun its neighbours may have holes: then the job may also say that it cannot go on."""
    out = tmp_path / "out"
    kill_when(["terasort", records, out, *RUNS], home, when)
    runs = sorted(tmp_path.glob(".out.gristmill-*/spill/run-*"))
    run_file, other = runs[0], runs[1]
    if harm == "truncate":
        os.truncate(run_file, run_file.stat().st_size // 2)
    elif harm == "remove":
        run_file.unlink()
    elif harm == "header":
        with run_file.open("r+b") as file:
            file.write(b"nonsense")
    else:
        shutil.copy(other, run_file)
    assert run("resume", "last").status == 0
    assert tree(out) == wanted
    assert names(tmp_path) == ["home", "out"]


def test_a_flipped_bit_in_a_run_is_named(records: Path, home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kill_when(["terasort", records, out, *RUNS], home, spilled)
    last_run = sorted(tmp_path.glob(".out.gristmill-*/spill/run-*"))[0]
    with last_run.open("r+b") as file:
        file.seek(4096 + 70_000)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 4]))
    assert "block" in failure("resume", "last")
    assert names(tmp_path) == ["home"]


@pytest.mark.parametrize("harm", ["truncate", "flip", "remove"])
def test_a_damaged_part_is_made_again(
    harm: str, records: Path, wanted: Tree, home: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    kill_when(["terasort", records, out, *RUNS], home, merged)
    (part,) = tmp_path.glob(".out.gristmill-*/output/part-r-00000")
    if harm == "truncate":
        os.truncate(part, 1000)
    elif harm == "remove":
        part.unlink()
    else:
        data = bytearray(part.read_bytes())
        for at in range(50, len(data), 1000):
            data[at] ^= 1
        part.write_bytes(data)
    run("resume", "last")
    assert tree(out) == wanted
    assert names(tmp_path) == ["home", "out"]


def test_a_torn_last_line_is_cut_off(
    records: Path, wanted: Tree, home: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    kill_when(["terasort", records, out, *RUNS], home, spilled)
    (history,) = home.glob("jobs/*/events.jsonl")
    with history.open("ab") as file:
        file.write(b'{"t_ms":99999,"event":"attempt_fini')
    run("resume", "last")
    assert tree(out) == wanted
    assert json.loads(run("jobs", "--json").stdout)[0]["state"] == "succeeded"


def test_killed_after_the_output_has_its_name(records: Path, home: Path, tmp_path: Path) -> None:
    """Nothing is left to do but to clear away what the job left, and to say so."""
    out = tmp_path / "out"
    made = report("terasort", records, out, "--history")
    (history,) = home.glob("jobs/*/events.jsonl")
    whole = history.read_bytes().splitlines(keepends=True)
    history.write_bytes(b"".join(line for line in whole if b"job_finished" not in line))
    left = tmp_path / f".out.gristmill-{made['job_id']}"
    (left / "output").mkdir(parents=True)
    before = tree(out)
    again = report("resume", "last")
    for field in ("records", "checksum", "output_bytes", "parts", "duplicate_keys"):
        assert again[field] == made[field]
    assert tree(out) == before
    assert names(tmp_path) == ["home", "out"]


# --- what is refused ---


def left_in(folder: Path) -> dict[str, tuple[int, int]]:
    """All that is in a folder, with sizes and times."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("change", ["longer", "touched", "replaced", "gone", "more"])
def test_a_changed_input_is_refused_until_it_is_back(
    change: str, records: Path, wanted: Tree, home: Path, tmp_path: Path
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    shutil.copytree(records, folder)
    kill_when(["terasort", folder, out, *RUNS], home, spilled)
    part, saved = folder / "part-m-00001", tmp_path / "saved"
    times = (part.stat().st_atime_ns, part.stat().st_mtime_ns)
    if change == "longer":
        with part.open("ab") as file:
            file.write(bytes(100))
    elif change == "touched":
        os.utime(part)
    elif change == "replaced":
        part.rename(saved)
        shutil.copy2(saved, part)
    elif change == "gone":
        part.rename(saved)
    else:
        (folder / "part-m-00009").write_bytes(bytes(100))
    before = left_in(tmp_path)
    assert "input" in failure("resume", "last")
    assert left_in(tmp_path) == before
    if change == "longer":
        os.truncate(part, part.stat().st_size - 100)
    elif saved.exists():
        saved.rename(part)
    elif change == "more":
        (folder / "part-m-00009").unlink()
    os.utime(part, ns=times)
    run("resume", "last")
    assert tree(out) == wanted


def test_a_job_that_is_over_or_alive_or_not_there_is_refused(
    records: Path, home: Path, tmp_path: Path
) -> None:
    assert "no job 'nothing'" in failure("resume", "nothing").replace('"', "'")
    assert "leave no history" in failure("resume", "last")
    run("terasort", records, tmp_path / "one", "--history")
    assert "it is over: succeeded" in failure("resume", "last")
    failure("terasort", records, tmp_path / "one", "--history")
    assert "it is over: failed" in failure("resume", "last")
    reading, writing = os.pipe()
    waiting = start("sort", f"/dev/fd/{reading}", "-o", tmp_path / "two", "--history")
    os.close(reading)
    end(waiting)
    alive = start("terasort", records, tmp_path / "out", *RUNS, "--history")
    while len(list(home.glob("jobs/*/events.jsonl"))) < 4 and alive.poll() is None:
        time.sleep(0.002)
    refused = failure("resume", "last")
    assert "it is alive" in refused or alive.poll() is not None
    assert end(alive).status == 0
    os.close(writing)


def test_two_at_once_are_one_and_a_refusal(
    records: Path, wanted: Tree, home: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    kill_when(["terasort", records, out, *RUNS], home, spilled)
    both = [end(process) for process in [start("resume", "last"), start("resume", "last")]]
    assert sorted(done.status for done in both) == [0, 1]
    (refused,) = (done.stderr for done in both if done.status)
    assert "it is alive" in refused or "it is over" in refused
    assert tree(out) == wanted


def test_what_read_a_pipe_or_wrote_one_is_refused(home: Path, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    for arguments in (["sort", "-o", tmp_path / "out"], ["sort", "-"]):
        process = subprocess.Popen(
            [*_program(), *map(str, arguments), "--history"],
            stdin=reading,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        wait_for_history(home, process)
        process.kill()
        end(process)
        assert "pipe is gone" in failure("resume", "last")
        (job,) = json.loads(run("jobs", "--json").stdout)
        assert not job["resumable"]
        shutil.rmtree(home)
    os.close(reading)
    os.close(writing)


def _program() -> list[str]:
    from .harness import GRISTMILL

    return [str(GRISTMILL)]


def test_an_output_that_someone_else_made_meanwhile(
    records: Path, home: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    kill_when(["terasort", records, out, *RUNS], home, spilled)
    out.mkdir()
    before = left_in(tmp_path)
    assert "the output exists" in failure("resume", "last")
    assert left_in(tmp_path) == before
    out.rmdir()
    run("resume", "last")


# --- hostile histories ---


def rewrite(home: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change every event of the only history."""
    (path,) = home.glob("jobs/*/events.jsonl")
    events = events_of(home)
    for event in events:
        change(event)
    path.write_text("".join(json.dumps(event) + "\n" for event in events))


@pytest.mark.parametrize("name", ["../../precious/run-1", "ABSOLUTE", "..", "lock", "", "run-/../x"])
def test_names_that_lead_elsewhere_are_refused(
    name: str, records: Path, home: Path, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "run-1").write_text("mine")
    out = tmp_path / "out"
    kill_when(["terasort", records, out, *RUNS], home, spilled)
    evil = str(precious / "run-1") if name == "ABSOLUTE" else name

    def change(event: dict[str, Any]) -> None:
        for of_run in event.get("kept", {}).get("spill", []) if isinstance(
            event.get("kept"), dict
        ) else []:
            of_run["name"] = evil

    rewrite(home, change)
    before = left_in(tmp_path)
    assert "none of the job's" in failure("resume", "last")
    assert left_in(tmp_path) == before


def test_ranges_of_other_files_are_refused(records: Path, home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kill_when(["terasort", records, out, *RUNS], home, merged)

    def change(event: dict[str, Any]) -> None:
        if event["event"] == "attempt_finished":
            for written in event.get("kept", {}).get("merge", []):
                written["file"] = "../../../etc/passwd"

    rewrite(home, change)
    assert "none of the job's" in failure("resume", "last")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("job_id", "../../other", "none that a job of this folder wrote"),
        ("program", "0.0.1", "began it"),
        ("command", "teragen", "none that a job of this folder wrote"),
        ("cwd", "relative", "none that a job of this folder wrote"),
        ("spec", {"terasort": {"inputs": ["in"]}}, "cannot read the options"),
        ("version", 9, "version"),
    ],
)
def test_a_history_of_another_job_is_refused(
    field: str, value: object, words: str, records: Path, home: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    kill_when(["terasort", records, out, *RUNS], home, spilled)

    def change(event: dict[str, Any]) -> None:
        if event["event"] == "job_submitted":
            event[field] = value

    rewrite(home, change)
    before = left_in(tmp_path)
    status = 2 if field == "spec" else 1
    assert words in failure("resume", "last", status=status)
    assert left_in(tmp_path) == before


def test_links_are_not_followed(records: Path, home: Path, tmp_path: Path) -> None:
    out, precious = tmp_path / "out", tmp_path / "precious"
    precious.write_text("mine")
    kill_when(["terasort", records, out, *RUNS], home, spilled)
    (spill,) = tmp_path.glob(".out.gristmill-*/spill")
    (spill / "run-1").symlink_to(precious)
    assert "a link in it" in failure("resume", "last")
    (spill / "run-1").unlink()
    (history,) = home.glob("jobs/*/events.jsonl")
    history.rename(tmp_path / "elsewhere")
    history.symlink_to(tmp_path / "elsewhere")
    assert "symbolic link" in failure("resume", "last")
    assert precious.read_text() == "mine"
