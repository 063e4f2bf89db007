"""What `gristmill resume` refuses of people's own code: with nothing run and nothing touched."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.optional import missing

from .harness import clean_environment, failure, run
from .own_code import Bench
from .resuming import events_of, kill_when, tree
from .test_resume_own_code import mapped
from .test_resume_refused import left_in, rewrite


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("words")
    yield Bench.made(folder)
    shutil.rmtree(folder)


@pytest.fixture
def bench(made: Bench, tmp_path: Path) -> Bench:
    """One that a test may change."""
    folder = tmp_path / "bench"
    shutil.copytree(made.folder, folder)
    return Bench(folder)


def refused(tmp_path: Path, words: str) -> None:
    before = left_in(tmp_path)
    assert words in failure("resume", "last")
    assert left_in(tmp_path) == before


@pytest.mark.parametrize(
    ("job", "file", "words"),
    [
        ("function", "in.txt", "input changed"),
        ("function", "job.py", "code changed"),
        ("function", "helper.py", "code changed"),
        ("combiner", "few.txt", "input changed"),
        ("combiner", "reducer.py", "code changed"),
    ],
)
def test_what_changed_is_refused_until_it_is_back(
    job: str, file: str, words: str, bench: Bench, home: Path, tmp_path: Path
) -> None:
    out, wanted = tmp_path / "out", tmp_path / "wanted"
    run(*bench.command(job, wanted))
    shutil.rmtree(home, ignore_errors=True)
    kill_when(bench.command(job, out), home, mapped)
    path = bench.folder / file
    times, size = (path.stat().st_atime_ns, path.stat().st_mtime_ns), path.stat().st_size
    with path.open("a") as more:
        more.write("# more\n")
    refused(tmp_path, words)
    os.truncate(path, size)
    os.utime(path, ns=times)
    path.rename(tmp_path / "aside")
    refused(tmp_path, "file")
    (tmp_path / "aside").rename(path)
    run("resume", "last")
    assert tree(out) == tree(wanted)


@pytest.mark.parametrize(
    ("job", "files"), [("function", ["job.py", "helper.py"]), ("combiner", ["reducer.py"])]
)
def test_code_is_known_by_its_content(
    job: str, files: list[str], bench: Bench, home: Path, tmp_path: Path
) -> None:
    out, wanted = tmp_path / "out", tmp_path / "wanted"
    run(*bench.command(job, wanted))
    shutil.rmtree(home, ignore_errors=True)
    kill_when(bench.command(job, out), home, mapped)
    for name in files:
        path = bench.folder / name
        mode, data = path.stat().st_mode, path.read_bytes()
        path.unlink()
        path.write_bytes(data[:-2] + b"#\n")  # as long as it was
        path.chmod(mode)
        refused(tmp_path, "code changed")
        path.write_bytes(data)
    run("resume", "last")
    assert tree(out) == tree(wanted)


def test_a_job_whose_code_is_gone_is_not_offered(bench: Bench, home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kill_when(bench.command("function", out), home, mapped)
    (job,) = (path.name for path in (home / "jobs").iterdir())
    assert f"gristmill resume {job}" in run("jobs").stderr
    (beside,) = tmp_path.glob(f".*{job}")
    beside.rename(tmp_path / "aside")
    assert run("jobs").stderr == ""
    (listed,) = json.loads(run("jobs", "--json").stdout)
    assert (listed["state"], listed["resumable"]) == ("dead", False)
    shown = run("jobs", "show", job).stdout
    assert "resumes it" not in shown
    assert "what is needed to resume it is gone" in shown
    for name in (job, "last"):
        said = failure("resume", name)
        assert "its directory beside the output is gone" in said
        assert f"job {job}" in said
    assert run("jobs", "prune", "--json").stdout.count(job) == 0  # it may be back
    (tmp_path / "aside").rename(beside)
    run("resume", "last")
    assert out.is_dir()


def test_a_side_file_is_known_by_its_content(bench: Bench, home: Path, tmp_path: Path) -> None:
    side, out = tmp_path / "side", tmp_path / "out"
    side.write_text("one")
    job = bench.folder / "with_side.py"
    job.write_text(
        "import gristmill as gm\n\n\n"
        "def with_side(line, context):\n"
        '    yield context.file("side").read_text() + line\n\n\n'
        f"job = gm.Job(gm.text('x'), map=with_side, output=gm.text('y'), files=[{str(side)!r}],"
        ' split_max="400K")\n'
    )
    kill_when(["run", job, "--input", bench.folder / "in.txt", "--output", out], home, mapped)
    side.write_text("two")
    refused(tmp_path, "a side file changed")
    side.unlink()
    refused(tmp_path, "a side file is gone")
    side.write_text("one")
    run("resume", "last")
    lines = (bench.folder / "in.txt").read_text().splitlines()
    made = "".join(part.read_text() for part in sorted(out.glob("part-*")))
    assert made.splitlines() == ["one" + line for line in lines]


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        ("missing", "its directory beside the output is gone"),
        ("changed", "has changed since the job began"),
        ("open to others", "others may read the file"),
        ("a link", "symbolic link"),
        ("of nobody", "does not belong to this user"),
        ("folder of nobody", "does not belong to this user"),
    ],
)
def test_a_definition_that_is_not_ours_is_never_run(
    harm: str, words: str, bench: Bench, home: Path, tmp_path: Path
) -> None:
    kill_when(bench.command("function", tmp_path / "out"), home, mapped)
    (definition,) = tmp_path.glob(".out.gristmill-*/definition")
    if "nobody" in harm and os.geteuid() != 0:
        missing("NOT TESTED: FILES OF OTHERS", "only root can give files away")
    match harm:
        case "missing":
            definition.unlink()
        case "changed":
            data = bytearray(definition.read_bytes())
            data[-1] ^= 1
            definition.write_bytes(data)
        case "open to others":
            definition.chmod(0o644)
        case "a link":
            definition.rename(tmp_path / "elsewhere")
            definition.symlink_to(tmp_path / "elsewhere")
        case "of nobody":
            os.chown(definition, 65534, -1)
        case _:
            os.chown(definition.parent, 65534, -1)
    refused(tmp_path, words)


def test_the_definition_of_another_job_is_never_run(
    bench: Bench, home: Path, tmp_path: Path
) -> None:
    """Also where the history has its hash: whoever wrote that may have nothing else of ours."""
    kill_when(bench.command("aggregate", tmp_path / "one"), home, mapped)
    (one,) = tmp_path.glob(".one.gristmill-*/definition")
    hash_of_one = next(e["definition"] for e in events_of(home) if e["event"] == "job_began")
    shutil.move(home, tmp_path / "before")
    kill_when(bench.command("function", tmp_path / "out"), home, mapped)
    (definition,) = tmp_path.glob(".out.gristmill-*/definition")
    shutil.copy2(one, definition)

    def change(event: dict[str, Any]) -> None:
        if event["event"] == "job_began":
            event["definition"] = hash_of_one

    rewrite(home, change)
    refused(tmp_path, "belongs to another job")


@pytest.mark.parametrize(
    ("field", "name"),
    [("files", "../../precious"), ("files", ".hidden"), ("folder", "../.."), ("folder", "")],
)
def test_names_that_lead_elsewhere_are_refused(
    field: str, name: str, bench: Bench, home: Path, tmp_path: Path
) -> None:
    kill_when(bench.command("map_only", tmp_path / "out"), home, mapped)

    def change(event: dict[str, Any]) -> None:
        made = event.get("kept", {}) if event["event"] == "attempt_finished" else {}
        if "work" in made and field == "folder":
            made["work"]["folder"] = name
        elif "work" in made:
            for file in made["work"]["files"]:
                file["name"] = name

    rewrite(home, change)
    before = left_in(tmp_path)
    assert "name" in failure("resume", "last")
    assert left_in(tmp_path) == before


def test_another_python_is_refused(bench: Bench, home: Path, tmp_path: Path) -> None:
    """One of the same version at another place is another one."""
    kill_when(bench.command("function", tmp_path / "out"), home, mapped)
    other = tmp_path / "python"
    other.symlink_to(sys.executable)
    paths = os.pathsep.join(path for path in sys.path if path)
    before = left_in(tmp_path)
    done = subprocess.run(
        [other, "-m", "gristmill", "resume", "last"],
        env=clean_environment(PYTHONPATH=paths),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 1
    assert "began it, and this is Python" in done.stderr
    assert done.stderr.count("\n") == 1
    assert left_in(tmp_path) == before
    run("resume", "last")


def test_a_job_that_had_not_begun_is_refused(bench: Bench, home: Path, tmp_path: Path) -> None:
    kill_when(bench.command("function", tmp_path / "out"), home, mapped)

    def until(events: list[dict[str, Any]], is_over: Callable[[dict[str, Any]], bool]) -> str:
        kept = events[: next(at for at, event in enumerate(events) if is_over(event))]
        return "".join(json.dumps(event) + "\n" for event in kept)

    (history,) = home.glob("jobs/*/events.jsonl")
    history.write_text(until(events_of(home), lambda event: event["event"] == "job_began"))
    refused(tmp_path, "before it began")


def test_a_failure_of_ones_own_code_is_told_with_its_place(
    bench: Bench, home: Path, tmp_path: Path
) -> None:
    job, flag = bench.folder / "fails.py", tmp_path / "flag"
    job.write_text(
        "import os\nimport gristmill as gm\n\n\n"
        "def fails(line):\n"
        f"    if os.path.exists({str(flag)!r}):\n"
        '        raise ValueError("as it was told")\n'
        "    return [line]\n\n\n"
        'job = gm.Job(gm.text("x"), map=fails, output=gm.text("y"), split_max="400K")\n'
    )
    text = bench.folder / "in.txt"
    kill_when(["run", job, "--input", text, "--output", tmp_path / "out"], home, mapped)
    flag.touch()
    done = subprocess.run(
        [sys.executable, "-m", "gristmill", "resume", "last"],
        env=clean_environment(),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 1
    assert "as it was told" in done.stderr
    assert "In your code:" in done.stderr
    assert not list(tmp_path.glob(".out.*"))
