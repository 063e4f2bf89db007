"""What a history says of the command line: no secret is in it."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.harness import GRISTMILL, clean_environment, run

import gristmill
from gristmill.history import find_job, load
from gristmill.history.origin import without_secrets


@pytest.mark.parametrize(
    "words",
    [
        ["--db-password", "hunter2"],
        ["--db-password=hunter2"],
        ["-D", "fs.s3a.secret.key=hunter2"],
        ["-D", "fs.azure.account.key.x.blob.core.windows.net=hunter2"],
        ["-Dapi_key=hunter2"],
        ["--set", "API-KEY=hunter2 and more hunter2"],
        ["-cmdenv", "HOME=hunter2"],
        ["-cmdenv", "AWS_SECRET_ACCESS_KEY=hunter2"],
        ["https://me:hunter2@host/path"],
        ["https://hunter2@host/path?x=1"],
        ["https://host/path?a=1&X-Amz-Signature=hunter2"],
        ["-mapper", "curl -H 'Authorization: Bearer hunter2'"],
        ["-mapper", "tool --auth-token hunter2 -x"],
        ["-mapper", "PGPASSWORD=hunter2 psql"],
        ["-mapper", 'tool {"password": "hunter2"}'],
    ],
)
def test_what_may_be_a_secret_is_not_kept(words: list[str]) -> None:
    told = " ".join(without_secrets(["gristmill", *words, "in"]))
    assert "hunter2" not in told
    assert "***" in told
    assert told.startswith("gristmill")
    assert told.endswith(" in")


@pytest.mark.parametrize("died", [False, True])
def test_no_error_brings_a_secret_back(tmp_path: Path, died: bool) -> None:
    """Errors quote the command line; also of a job that another process goes on with."""
    (tmp_path / "in").write_text("a\n" * 10)
    (tmp_path / "map.sh").write_text("#!/bin/sh\ncat > /dev/null\n[ -e go ] || sleep 9\nexit 3\n")
    if not died:
        (tmp_path / "go").touch()
    where = {"GRISTMILL_HOME": str(tmp_path / "home")}
    script = f"sh -c 'cd {tmp_path} && sh map.sh'"
    words = ["streaming", "-input", tmp_path / "in", "-output", tmp_path / "out", "--history"]
    words += ["-mapper", script, "-reducer", "cat", "-cmdenv", "PASS=hunter2 and 'hunter2'"]
    words += ["-D", "my.token=hunter2"]
    if died:
        with subprocess.Popen([GRISTMILL, *words], env=clean_environment(**where)) as job:
            while not list(tmp_path.glob(".out.*/definition")):
                time.sleep(0.02)
            while "attempt_started" not in _history(tmp_path):
                time.sleep(0.02)
            job.kill()
        (tmp_path / "go").touch()
        run("resume", "last", status=1, **where)
    else:
        told = run(*words, status=1, **where).stderr
        assert "PASS=hunter2" in told  # the command that is printed works as it is
    history = _history(tmp_path)
    assert "PASS=***" in history
    assert "hunter2" not in history
    assert '"job_finished"' in history


def _history(tmp_path: Path) -> str:
    return "".join(path.read_text() for path in tmp_path.glob("home/jobs/*/events.jsonl"))


def test_what_is_none_is_kept() -> None:
    words = ["sort", "a b", "-o", "out=1", "--memory", "2G", "-D", "map.output.key.fields=2"]
    assert without_secrets([*words, "--history", "https://host/a@b"]) == [
        *words,
        "--history",
        "https://host/a@b",
    ]


@pytest.mark.parametrize(
    ("argv", "kept"),
    [
        (["/usr/bin/gristmill", "sort", "--token", "x"], ["gristmill", "sort", "--token", "***"]),
        (["a b/job.py", "\udcff"], ["python", "a b/job.py", "\udcff"]),
        (["/site/gristmill/__main__.py", "sort"], ["gristmill", "sort"]),
        (["-c"], ["python", "-c"]),
        ([], ["python", ""]),
    ],
)
def test_a_job_says_how_it_was_begun(
    argv: list[str], kept: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRISTMILL_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "argv", argv)
    gristmill.teragen("1k", tmp_path / "out", history=True)
    history = load(find_job("last"))
    assert history.argv == kept
    assert history.host
    assert history.cwd == str(Path.cwd())
    assert history.output == str(tmp_path / "out")
    (attempt, *_) = history.attempts
    assert (attempt.input, attempt.records) == ("part-m-00000, records 0 to 1000", 1000)
    assert attempt.bytes == 100_000
