"""What `gristmill run` says of a chain: each job, then all of them."""

import json
import re
from pathlib import Path

from tests.cli.harness import run

CHAIN = """
import time
import gristmill as gm

def slow(line):
    time.sleep(0.05)
    return [(line, 1)]

first = gm.Job(gm.text("in.txt"), map=slow, reduce=gm.sum(), name="first one")
job = gm.Job(first, map=lambda pair: [(pair[1], 1)], reduce=gm.sum(), output=gm.kv("out"),
             name="second")
"""


def test_a_line_for_each_job_and_one_for_all(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a\nb\n" * 8)
    (tmp_path / "chain.py").write_text(CHAIN)
    done = run("run", "chain.py", "--workers", "1", cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert lines[0].endswith("in 1 file of out")
    assert lines[1].startswith("job 1, first one: ")
    assert lines[2].startswith("job 2, second: ")
    times = [re.search(r": ([\d.]+) s: ", line) for line in lines[1:3]]
    whole = re.fullmatch(r"in all ([\d.]+) s, [\d.]+ CPU seconds", lines[3])
    assert whole is not None
    each = [float(found[1]) for found in times if found]
    assert len(each) == 2
    assert each[0] > 0.8
    assert abs(sum(each) - float(whole[1])) < 0.02


def test_the_json_has_the_reports_of_all_jobs(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a\nb\n")
    (tmp_path / "chain.py").write_text(CHAIN)
    found = json.loads(run("run", "chain.py", "--json", cwd=tmp_path).stdout)
    assert [(one["name"], one["records"]) for one in found["chain"]] == [
        ("first one", 2),
        ("second", 1),
    ]
    assert found["job_id"] == found["chain"][1]["job_id"]
    assert found["chain"][0]["phases"][0]["cause"]


def test_an_error_says_which_job_of_a_chain_failed(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a\nb\n")
    (tmp_path / "chain.py").write_text(CHAIN.replace("(pair[1], 1)", "(pair[9], 1)"))
    done = run("run", "chain.py", "--json", cwd=tmp_path, status=1)
    error = json.loads(done.stdout)["error"]
    assert error["context"]["job of the chain"] == "2 of 2, second"
    assert "It was job 2 of 2, second, of the chain." in done.stderr
