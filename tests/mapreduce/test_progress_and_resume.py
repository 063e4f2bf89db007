"""How far a compressed input is read, and what is said of a job that is over."""

import gzip
import json
import random
from pathlib import Path

from tests.mapreduce.harness import gristmill

import gristmill as gm


def test_progress_in_a_compressed_file_counts_the_bytes_that_are_read(tmp_path: Path) -> None:
    draw = random.Random(3)
    lines = 60_000
    text = b"".join(b"%0100x\n" % draw.getrandbits(400) for _ in range(lines))
    data = gzip.compress(text, 1)
    (tmp_path / "a.txt.gz").write_bytes(data)
    source = gm.text(tmp_path / "a.txt.gz")
    (split,) = source.plan(0, 1 << 40).splits
    reader = source.open(split.what)
    seen = []
    for number, _ in enumerate(reader):
        if number % (lines // 4) == 0:
            seen.append(reader.bytes_read())
    assert seen == sorted(seen)
    assert 0 < seen[1] < seen[3] <= len(data) == reader.bytes_read()


def test_a_job_that_failed_is_not_resumed_but_run_again(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a\n")
    (tmp_path / "job.py").write_text(
        "import gristmill as gm\n"
        "job = gm.Job(gm.text('in.txt'), map=lambda line: [line[9]], output=gm.text('out'))\n"
    )
    home = {"GRISTMILL_HOME": str(tmp_path / "home")}
    done = gristmill("run", "job.py", "--json", "--history", cwd=tmp_path, status=1, **home)
    job_id = json.loads(done.stdout)["job_id"]
    said = gristmill("resume", job_id, cwd=tmp_path, status=1, **home).stderr
    assert f"run it again: `gristmill jobs show {job_id}` has its command." in said
