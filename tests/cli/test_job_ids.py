"""Names of jobs: no two have the same one, and they sort by time."""

import json
import os
import re
import subprocess
import time
from pathlib import Path

from tests.cli.harness import GRISTMILL, clean_environment, run
from tests.optional import missing

from gristmill.job import new_job_id

_NAME = re.compile(r"job_(\d{14})_(\d{20})(?:_(\d+))?")


def test_a_name_has_64_random_bits_of_its_process() -> None:
    """So names of a chain's jobs are known again, and a fork has its own."""
    here = [_parts(new_job_id()) for _ in range(3)]
    assert len({process for _, process, _ in here}) == 1
    numbers = [int(number or 1) for _, _, number in here]
    assert numbers == list(range(numbers[0], numbers[0] + 3))
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.write(write, new_job_id().encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert _parts(os.read(read, 200).decode())[1] != here[0][1]


def _parts(name: str) -> tuple[str, str, str | None]:
    found = _NAME.fullmatch(name)
    assert found, name
    return found[1], found[2], found[3]


def test_two_containers_with_one_process_number_run_in_one_second(tmp_path: Path) -> None:
    """Each is process 1 of its own, as in two containers that share home and spill directory."""
    container = ["unshare", "-p", "-f", "--mount-proc"]
    if subprocess.run([*container, "true"], capture_output=True, check=False).returncode:
        missing("NOT TESTED: names of jobs in two containers", "unshare -p takes root")
    (tmp_path / "in").write_text("b\na\n")
    (tmp_path / "sp").mkdir()
    home = tmp_path / "home"
    for turn in range(3):
        time.sleep(1.05 - time.time() % 1)  # both in this second
        outs = [tmp_path / f"out{turn}{n}" for n in (1, 2)]
        jobs = [_sort_in(container, out, home) for out in outs]
        said = [job.communicate(timeout=120)[1] for job in jobs]
        assert ([job.returncode for job in jobs], said) == ([0, 0], ["", ""]), said
        assert [out.read_text() for out in outs] == ["a\nb\n"] * 2
    listed = json.loads(run("jobs", "--json", GRISTMILL_HOME=str(home)).stdout)
    names = [found["job_id"] for found in listed]
    assert len(set(names)) == 6
    begun = [_parts(name)[0] for name in names]
    assert begun in (sorted(begun), sorted(begun, reverse=True))


def _sort_in(container: list[str], out: Path, home: Path) -> subprocess.Popen[str]:
    words = ["sort", out.parent / "in", "--spill-dir", out.parent / "sp", "-o", out, "--history"]
    return subprocess.Popen(
        [*container, GRISTMILL, *words],
        env=clean_environment(GRISTMILL_HOME=str(home)),
        stderr=subprocess.PIPE,
        text=True,
    )
