"""`gristmill resume`: jobs killed with -9 at any moment, again and again, make the same bytes."""

import json
import os
import random
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .harness import GRISTMILL, clean_environment, end, names, report, run
from .resuming import (
    RUNS,
    Tree,
    events_of,
    kill_when,
    killed_again_and_again,
    merged,
    spilled,
    tree,
    wait_for_history,
)


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


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--memory", "400M"), id="memory"),
        pytest.param((*RUNS, "--partitions", "3"), id="runs"),
        pytest.param(("--memory", "14M", "--workers", "1"), id="passes"),
        pytest.param(("--memory", "14M", "--workers", "1", "--rounds", "2,3,4"), id="rounds"),
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
    shutil.rmtree(home, ignore_errors=True)  # of a run that took long
    before = tree(wanted)
    shutil.rmtree(wanted)
    out = tmp_path / "out"
    killed = killed_again_and_again(["terasort", records, out, *given], home, took_s=took_s)
    assert tree(out) == before
    assert names(tmp_path) == ["home", "out", "spill"]
    assert names(spill) == []
    run("teravalidate", out, "--against", records)
    assert killed >= 1, "the job was over before it could be killed"


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="lines"),
        pytest.param(("-u",), id="unique"),
        pytest.param(("-r", "-s"), id="reverse"),
        pytest.param(("--memory", "400M"), id="memory"),
        pytest.param(("-k1.2",), id="keys"),
        pytest.param(("-k1.2", "--rounds", "2,2,4"), id="rounds"),
        pytest.param(("--csv", "--key", "1:desc"), id="table"),
    ],
)
def test_sort_killed_at_any_moment(
    options: tuple[str, ...], lines: Path, home: Path, tmp_path: Path
) -> None:
    wanted, out = tmp_path / "wanted", tmp_path / "out"
    given = ["--memory", "16M", "--workers", "2", *options]
    began_s = time.monotonic()
    run("sort", lines, "-o", wanted, *given)
    took_s = time.monotonic() - began_s
    shutil.rmtree(home, ignore_errors=True)  # of a run that took long
    out.write_text("what was there before")
    killed = killed_again_and_again(["sort", lines, "-o", out, *given], home, took_s=took_s)
    assert out.read_bytes() == wanted.read_bytes()
    assert names(tmp_path) == ["home", "out", "wanted"]
    assert killed >= 1, "the job was over before it could be killed"


def test_a_sort_in_place_is_resumed(lines: Path, home: Path, tmp_path: Path) -> None:
    wanted, out = tmp_path / "wanted", tmp_path / "out"
    run("sort", lines, "-o", wanted)
    shutil.rmtree(home, ignore_errors=True)  # of a run that took long
    shutil.copy(lines, out)
    arguments: list[str | Path] = ["sort", out, "-o", out, "--memory", "16M"]
    killed_again_and_again(arguments, home, took_s=0.6)
    assert out.read_bytes() == wanted.read_bytes()
    assert names(tmp_path) == ["home", "out", "wanted"]


def test_teragen_killed_at_any_moment(home: Path, tmp_path: Path) -> None:
    wanted, out = tmp_path / "wanted", tmp_path / "out"
    arguments: list[str | Path] = ["teragen", "2m", out, "--files", "5", "--layout", "ascii"]
    run("teragen", "2m", wanted, *arguments[3:])
    shutil.rmtree(home, ignore_errors=True)  # of a run that took long
    killed = killed_again_and_again(arguments, home, took_s=0.4)
    assert tree(out) == tree(wanted)
    assert names(tmp_path) == ["home", "out", "wanted"]
    assert killed >= 1, "the job was over before it could be killed"


# --- what is kept ---


JOBS: dict[str, tuple[str, ...]] = {
    "records": ("terasort", "records", "OUT"),
    "lines": ("sort", "lines", "-o", "OUT"),
    "keys": ("sort", "lines", "-o", "OUT", "-k1.2"),
    "table": ("sort", "lines", "-o", "OUT", "--csv", "--key", "1"),
    "unique rows": ("sort", "lines", "-o", "OUT", "--csv", "--key", "1", "-u"),
}


@pytest.mark.parametrize("command", JOBS.values(), ids=JOBS)
def test_what_is_proved_is_not_done_again(
    command: tuple[str, ...], records: Path, lines: Path, home: Path, tmp_path: Path
) -> None:
    out, wanted = tmp_path / "out", tmp_path / "wanted"
    given = {"records": records, "lines": lines, "OUT": out}
    arguments = [*(given.get(word, word) for word in command), *RUNS]
    run(*(wanted if word == out else word for word in arguments))
    shutil.rmtree(home, ignore_errors=True)  # of a run that took long
    kill_when(arguments, home, spilled)
    (job,) = json.loads(run("jobs", "--json").stdout)
    assert (job["state"], job["resumable"]) == ("dead", True)
    assert f"gristmill resume {job['job_id']}" in run("jobs").stderr
    assert f"gristmill resume {job['job_id']} resumes it" in run("jobs", "show", "last").stdout
    done = report("resume", job["job_id"][4:])
    assert done["job_id"] == job["job_id"]
    assert done["counters"]["KEPT_TASKS"] >= 4
    assert tree(out) == tree(wanted)
    shown = json.loads(run("jobs", "show", "last", "--json").stdout)
    assert shown["state"] == "succeeded"
    assert len(shown["resumed_ms"]) == 1
    assert "not done again" in run("jobs", "show", "last").stdout
    run("report", "last", "-o", tmp_path / "page.html")


def test_a_newer_file_is_not_replaced(lines: Path, home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kill_when(["sort", lines, "-o", out, "--memory", "16M"], home, spilled)
    run("sort", "-r", lines, "-o", out)
    newer = out.read_bytes()
    told = run("resume", "last", status=1).stderr
    assert "the output was written after the job began, and would be replaced" in told
    assert str(out) in told
    assert "move it away" in told
    assert out.read_bytes() == newer
    out.rename(tmp_path / "newer")
    told = run("resume", "last").stderr
    assert re.search(rf"resumed job_\w+ \(sort\): \d+ tasks? .* already; {out} is written", told)
    assert out.read_bytes() == b"".join(reversed(newer.splitlines(keepends=True)))


def test_a_newer_directory_is_not_replaced(records: Path, home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kill_when(["terasort", records, out, *RUNS, "--overwrite"], home, spilled)
    run("terasort", records, out, "--overwrite", "--partitions", "3")
    newer = tree(out)
    told = run("resume", "last", status=1).stderr
    assert "the output was written after the job began, and would be replaced" in told
    assert tree(out) == newer


def test_a_proof_that_cannot_be_read_is_no_obstacle(records: Path, tmp_path: Path) -> None:
    """Root may read any file, but nobody a directory as one."""
    out = tmp_path / "out"
    (out / "_SUCCESS").mkdir(parents=True)
    run("terasort", records, out, "--overwrite", "--history")
    assert (out / "_SUCCESS").is_file()


def test_from_another_directory(records: Path, wanted: Tree, home: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    shutil.copytree(records, there / "in")
    process = subprocess.Popen(
        [GRISTMILL, "terasort", "in", "out", *RUNS, "--history"],
        cwd=there,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    wait_for_history(home, process)
    while process.poll() is None and not merged(events_of(home)):
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
    """Also once merging has begun: its neighbours have holes only where the output is proved."""
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


@pytest.mark.parametrize("when", [spilled, merged])
@pytest.mark.parametrize("harm", ["flip", "zeros"])
def test_after_a_damaged_block_of_a_run_the_job_is_done_anew(
    harm: str,
    when: Callable[[list[dict[str, Any]]], bool],
    records: Path,
    wanted: Tree,
    home: Path,
    tmp_path: Path,
) -> None:
    """Zeros are what a power failure leaves of blocks that had not reached the disk."""
    out = tmp_path / "out"
    kill_when(["terasort", records, out, *RUNS], home, when)
    (run_file, *_) = sorted(tmp_path.glob(".out.gristmill-*/spill/run-*"))
    # The last whole block: nobody has merged it.
    at = (run_file.stat().st_size // 65_536 - 1) * 65_536
    with run_file.open("r+b") as file:
        file.seek(at)
        block = file.read(4096)
        file.seek(at)
        file.write(bytes(4096) if harm == "zeros" else bytes([block[0] ^ 4]))
    found = report("resume", "last")
    assert tree(out) == wanted
    assert names(tmp_path) == ["home", "out"]
    (warning,) = found["warnings"]
    assert run_file.name in warning
    assert "block" in warning
    assert warning.endswith("The job was done anew.")
    assert found["counters"]["KEPT_TASKS"] == 0
    assert json.loads(run("jobs", "--json").stdout)[0]["state"] == "succeeded"


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
