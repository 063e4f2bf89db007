"""The folders of jobs, and their order."""

import json
import shutil
from pathlib import Path

import pytest

from gristmill.history import job_folders


def test_jobs_are_in_the_order_in_which_they_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRISTMILL_HOME", str(tmp_path))
    process, another, third = "16387917272983235557", "06387917272983235557", "96387917272983235557"
    begun = {
        f"job_20261128031556_{third}": 900,
        f"job_20261128031557{third}_0001": 998,
        f"job_20261128031557_{process}": 999,
        f"job_20261128031557_{process}_7": 1000,
        f"job_20261128031557_{process}_10": 1000,
        f"job_20261128031557_{another}": 1001,
        f"job_20261128031558_{another}_2": 0,  # a history that cannot be read
    }
    for name, unix_ms in begun.items():
        folder = tmp_path / "jobs" / name
        folder.mkdir(parents=True)
        event = json.dumps({"event": "job_submitted", "unix_ms": unix_ms}) if unix_ms else "?"
        (folder / "events.jsonl").write_text(event + "\n")
    found = [path.name for path in job_folders()]
    shutil.rmtree(tmp_path / "jobs")  # the suite reads every history that a test leaves
    assert found == list(begun)
