"""Ctrl-C while S3 does not answer: what waits ends at once, and what is left is found later."""

import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.optional import or_missing

from .harness import end, run, start
from .s3_server import Bucket, again
from .test_interruption import AT_ONCE_S
from .toxiproxy import Proxy, proxied

#: What cleans up has 3 s more: nobody answers that, either.
CLEANED_UP_S = 3.0

JOB = """\
import gristmill as gm
def first(line):
    yield line[:2], 1
source = gm.text("{source}", errors="replace")
job = gm.Job(source, map=first, reduce=gm.count(), output=gm.tsv("{target}"))
"""


@dataclass(frozen=True)
class Own:
    """A server of the test's own, and a bucket in it."""

    bucket: Bucket
    server: subprocess.Popen[bytes]
    network: Proxy

    def words(self, command: str) -> list[str]:
        """A command line with the places of its data."""
        places = {"IN": self.bucket.url("in"), "OUT": self.bucket.url("out")}
        return [places.get(word, word) for word in shlex.split(command)]


@pytest.fixture
def own(
    bucket: Bucket,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Own]:
    buckets = tmp_path / "buckets"
    (buckets / bucket.name).mkdir(parents=True)
    mine = Bucket(bucket.name, buckets / bucket.name)
    with again(buckets, "AK0", "secret") as (server, process):
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        run("teragen", "600k", mine.url("in"), "--files", "4")
        Path("job.py").write_text(JOB.format(source=mine.url("in"), target=mine.url("out")))
        log = tmp_path / "proxy.log"
        with or_missing("BAD NETWORKS"), proxied(server.endpoint, log) as network:
            monkeypatch.setenv("AWS_ENDPOINT_URL", network.endpoint)
            yield Own(mine, process, network)
            process.send_signal(signal.SIGCONT)


def interrupted(job: subprocess.Popen[str]) -> str:
    """Send Ctrl-C to a job; returns what it said at its end, which comes soon."""
    began_s = time.monotonic()
    job.send_signal(signal.SIGINT)
    done = end(job)
    assert done.status == 130, done
    assert time.monotonic() - began_s < AT_ONCE_S + CLEANED_UP_S
    return done.stderr


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
@pytest.mark.parametrize(
    "command",
    [
        "terasort IN OUT --partitions 3",
        "terasort IN OUT --partitions 3 --runner processes",
        "run job.py",
        "streaming -mapper cat -input IN -output OUT",
        "hadoop fs -get IN got",
    ],
)
def test_a_job_that_waits_for_a_store_ends(command: str, how: signal.Signals, own: Own) -> None:
    own.network.worsen("bandwidth", rate=3000)
    job = start(*own.words(command))
    time.sleep(1.5)
    own.server.send_signal(how)
    time.sleep(1.0)
    assert job.poll() is None, job.communicate()
    said = interrupted(job)
    assert "cancelled" in said or "hadoop" in command


@pytest.mark.parametrize(
    "command",
    [
        "terasort IN OUT",
        "explain terasort IN OUT",
        "run job.py",
        "run job.py --explain",
        "streaming -mapper cat -input IN -output OUT",
        "hadoop fs -ls IN",
        "hadoop fs -rm -r IN",
    ],
)
def test_a_command_that_plans_ends(command: str, own: Own) -> None:
    own.server.send_signal(signal.SIGSTOP)
    job = start(*own.words(command))
    time.sleep(1.5)
    assert job.poll() is None, job.communicate()
    interrupted(job)


PLAN = {
    "text": "_core.plan_text([place], 1, 1 << 20, True, False)",
    "streaming": "_core.plan_streaming(json.dumps(request))",
}


@pytest.mark.parametrize("kind", PLAN)
def test_splits_are_given_up(kind: str, own: Own) -> None:
    """The store falls silent after it has answered for all that comes before the splits."""
    place = f"{own.bucket.url('in')}/part-m-00000"
    text = {"text": {"delimiter": None}}
    request = {"files": [place], "format": text, "maps": 2, "min_bytes": 1, "block_bytes": 1 << 20}
    words = ["import json", "from gristmill import _core", f"place, request = {place!r}, {request}"]
    words += [PLAN[kind], "print('planned', flush=True)", "input()", PLAN[kind]]
    Path("plan.py").write_text("\n".join(words))
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "plan.py"]
    with subprocess.Popen(command, text=True, **pipes) as planning:
        assert planning.stdout is not None
        assert planning.stdout.readline() == "planned\n", planning.communicate()
        own.server.send_signal(signal.SIGSTOP)
        assert planning.stdin is not None
        planning.stdin.write("\n")
        planning.stdin.flush()
        time.sleep(1.0)
        assert planning.poll() is None, planning.communicate()
        began_s = time.monotonic()
        planning.send_signal(signal.SIGINT)
        _, errors = planning.communicate(timeout=60)
        assert time.monotonic() - began_s < AT_ONCE_S + CLEANED_UP_S
        assert errors.endswith("KeyboardInterrupt\n")


def test_what_is_left_is_gone_after_the_next_job(own: Own) -> None:
    own.network.worsen("bandwidth", rate=20_000)
    job = own.words("terasort IN OUT --partitions 3")
    process = start(*job)
    while process.poll() is None and not own.bucket.uploads():
        time.sleep(0.002)
    own.server.send_signal(signal.SIGSTOP)
    time.sleep(0.2)
    interrupted(process)
    own.server.send_signal(signal.SIGCONT)
    run(*job)
    assert own.bucket.uploads() == []
    run(*own.words("teravalidate OUT --against IN"))
