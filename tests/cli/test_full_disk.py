"""Jobs of people's own code and scripts on a disk that becomes full: what is said, what is left."""

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Mount
from .harness import only_object, run

JOB = """
import gristmill as gm, os


def large(n, context):
    for i in range(1000):
        if {named}:
            context.output("more").write(os.urandom(500).hex())
        elif {own}:
            with open({disk!r} + "/mine", "a") as file:
                file.write("x" * 100_000)
        else:
            yield f"{{n}}-{{i}}", os.urandom(500).hex()


def same(key, values):
    for value in values:
        yield key, value


reduce = same if {reduces} else None
outputs = {{"more": gm.text()}} if {named} else {{}}
job = gm.Job(
    gm.items(range(30)), map=large, reduce=reduce, outputs=outputs, output=gm.{form}({output!r})
)
"""

ADVICE = "What to do: free some space there, or write to another file system."


def failed(folder: Path, *words: str | Path) -> dict[str, Any]:
    done = run(*words, "--json", "--history", status=1, cwd=folder)
    return only_object(done.stdout)


def check(report: dict[str, Any], disk: Path, *, tries: int = 1) -> str:
    """One try, the path, what to do; nothing left; the history says the same."""
    error = report["error"]
    assert error["kind"] == "disk_full", error
    assert "no space left on device" in error["message"].lower()
    assert f"{disk}/" in error["message"]
    assert report["counters"].get("FAILED_TASK_ATTEMPTS", 0) <= tries
    assert [path.name for path in disk.iterdir()] == []
    events = (Path(report["history"]) / "events.jsonl").read_text().splitlines()
    last = json.loads(events[-1])
    assert (last["event"], last["status"]) == ("job_finished", "failed")
    assert last["report"]["error"]["message"] == error["message"]
    shown = run("jobs", "show", report["job_id"]).stdout
    assert "no space left on device" in " ".join(shown.lower().split())
    return error["message"]


@pytest.mark.parametrize("form", ["kv", "jsonl", "tsv", "text", "csv", "parquet"])
@pytest.mark.parametrize("reduces", [False, True])
def test_an_output(tmp_path: Path, mount: Mount, form: str, reduces: bool) -> None:
    disk = mount("size=8m")
    (tmp_path / "spill").mkdir()
    settings = {"form": form, "reduces": reduces, "named": False, "own": False, "disk": str(disk)}
    (tmp_path / "job.py").write_text(JOB.format(output=str(disk / "out"), **settings))
    words = ["run", "job.py", "--spill-dir", tmp_path / "spill", "--workers", "1"]
    said = check(failed(tmp_path, *words), disk)
    assert said.endswith(ADVICE)
    assert list((tmp_path / "spill").iterdir()) == []


def test_a_named_output(tmp_path: Path, mount: Mount) -> None:
    disk = mount("size=8m")
    settings = {"form": "kv", "reduces": False, "named": True, "own": False, "disk": str(disk)}
    (tmp_path / "job.py").write_text(JOB.format(output=str(disk / "out"), **settings))
    said = check(failed(tmp_path, "run", "job.py", "--workers", "1"), disk)
    assert said.endswith(ADVICE)


def test_runs(tmp_path: Path, mount: Mount) -> None:
    disk = mount("size=8m")
    settings = {"form": "kv", "reduces": True, "named": False, "own": False, "disk": str(disk)}
    (tmp_path / "job.py").write_text(JOB.format(output=str(disk / "out"), **settings))
    said = check(failed(tmp_path, "run", "job.py", "--workers", "1"), disk)
    assert "add a --spill-dir on another file system." in said
    assert "cannot run a map task: reserve space for a run: no space left" in said


def test_a_file_that_a_function_writes(tmp_path: Path, mount: Mount) -> None:
    """Another try would find the same disk; what is the user's stays."""
    disk = mount("size=8m")
    settings = {"form": "kv", "reduces": False, "named": False, "own": True, "disk": str(disk)}
    (tmp_path / "job.py").write_text(JOB.format(output=str(tmp_path / "out"), **settings))
    report = failed(tmp_path, "run", "job.py", "--workers", "1")
    assert report["error"]["kind"] == "disk_full"
    assert "OSError: [Errno 28]" in report["error"]["message"]
    assert report["error"]["message"].endswith(ADVICE)
    assert report["counters"]["FAILED_TASK_ATTEMPTS"] == 1
    assert [path.name for path in disk.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("reducer", "advice"),
    [("NONE", ADVICE), ("cat", "add a --spill-dir on another file system.")],
)
def test_scripts(tmp_path: Path, mount: Mount, reducer: str, advice: str) -> None:
    disk = mount("size=8m")
    (tmp_path / "in.txt").write_text("".join(f"{n:0999}\n" for n in range(20_000)))
    words = ["-input", tmp_path / "in.txt", "-output", disk / "out", "-mapper", "cat"]
    report = failed(tmp_path, "streaming", *words, "-reducer", reducer)
    assert check(report, disk, tries=2).endswith(advice)  # two tasks may be at it
