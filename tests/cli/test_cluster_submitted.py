"""`--on http://HOST:8265`: the command runs on the head of a cluster, and is followed from here.

The head is another machine as far as that can be had here: it has Ray and no Gristmill, and sees
nothing of the folder in which the user works. Its dashboard asks for a token.
"""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.optional import or_missing

from gristmill.cluster.submission.dashboard import Dashboard

from .agents import wait_until_gone
from .harness import (
    GRISTMILL,
    Done,
    clean_environment,
    content,
    end,
    only_object,
    run,
)
from .ray_cluster import CONNECT, RayCluster, with_dashboard

TOKEN = "0123456789abcdef0123456789abcdef"

#: A command that runs on the head waits for Ray to begin a process for it, and a second one.
LONG_S = 110

JOB = """
from pathlib import Path

import gristmill as gm
from helper import split

STOP = set((Path(__file__).parent / "stop.txt").read_text().split())


def pairs(line, context):
    more = set(context.file("more.txt").read_text().split())
    for word in split(line):
        if word not in STOP | more:
            yield word, 1


def job(output="counts", text="missing"):
    return gm.Job(
        gm.text(text), map=pairs, reduce=gm.sum(), parts=2, output=gm.tsv(output),
        files=["data/more.txt", "stop.txt"],
    )
"""

HELPER = "def split(line):\n    return line.lower().split()\n"

SLOW = """
import time
from pathlib import Path

import gristmill as gm


def job(begun, output="slowed"):
    def slow(number):
        Path(begun).touch()
        time.sleep(0.2)
        yield number % 7, 1

    return gm.Job(gm.items(range(900)), map=slow, reduce=gm.sum(), output=gm.tsv(output))
"""

BROKEN = """
import gristmill as gm


def broken(number):
    raise KeyError(f"no {number}")


job = gm.Job(gm.items([1]), map=broken, output=gm.tsv("broken"))
"""


SECRET = """
import os

import gristmill as gm


def told(_):
    yield os.environ["AWS_SECRET_ACCESS_KEY"][::-1], os.environ["AWS_REGION"]


job = gm.Job(gm.items([1]), map=told, output=gm.tsv("secret"))
"""


@dataclass(frozen=True)
class There:
    """A cluster with a dashboard, the folder that all machines see, and the user's own."""

    cluster: RayCluster
    shared: Path
    mine: Path

    def command(self, *words: str | Path) -> list[str]:
        """A command line that runs on the head."""
        return [str(GRISTMILL), *map(str, words), "--on", self.cluster.address]

    def run(self, *words: str | Path, status: int = 0, **more: str) -> Done:
        """Run a command on the head, from the user's folder."""
        done = subprocess.run(
            self.command(*words),
            cwd=self.mine,
            env=clean_environment(**{**self.cluster.tls, **more}),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=LONG_S,
            check=False,
        )
        assert done.returncode == status, done.stderr
        assert "Traceback" not in done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str | Path) -> "subprocess.Popen[str]":
        """Begin to run one."""
        return subprocess.Popen(
            self.command(*words),
            cwd=self.mine,
            env=clean_environment(**self.cluster.tls),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Generator[There]:
    """A cluster that is somewhere else."""
    shared, mine = (tmp_path_factory.mktemp(name) for name in ("shared", "mine"))
    with or_missing("Ray's dashboard"), with_dashboard(mine, TOKEN) as cluster:
        yield There(cluster, shared, mine)


@contextmanager
def answering(answer: bytes) -> Generator[str]:
    """A server that has the same answer to every question."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002, ARG002
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_token_is_asked_for_and_a_wrong_one_refused(there: There) -> None:
    job = ("teragen", "10", there.shared / "never")
    none = there.run(*job, status=1, RAY_AUTH_MODE="disabled").stderr
    assert "asks for a token" in none
    assert "RAY_AUTH_TOKEN" in none
    wrong = there.run(*job, status=1, RAY_AUTH_TOKEN="f" * 32).stderr
    assert "refuses the token" in wrong
    assert not (there.shared / "never").exists()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"<html>", "is not a dashboard of Ray"),
        (b'{"version": "4", "ray_version": "2.9.3"}', "has Ray 2.9.3, and jobs need 2.50"),
    ],
)
def test_what_is_no_dashboard_for_jobs(answer: bytes, says: str, tmp_path: Path) -> None:
    with answering(answer) as address:
        done = run("teragen", "10", tmp_path / "out", "--on", address, status=1)
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_token_goes_to_no_other_host() -> None:
    """Another host, to which the address points, would have it."""

    class Pointing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.headers.get("Authorization", ""))
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.server.server_address[1]}/other")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002, ARG002
            return

    asked: list[str] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Pointing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        first = Dashboard(
            f"http://127.0.0.1:{server.server_address[1]}",
            {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN},
        )
        with pytest.raises(OSError, match="answers 302 and points to localhost:"):
            first.check_version()
        server.shutdown()
        thread.join()
    assert asked == [f"Bearer {TOKEN}"]


def test_a_dashboard_that_is_not_there(tmp_path: Path) -> None:
    job = ("terasort", tmp_path, tmp_path / "out", "--on", "ray")
    done = run(*job, status=1, RAY_ADDRESS="http://127.0.0.1:1")
    assert "nothing answers at http://127.0.0.1:1 (Connection refused)" in done.stderr
    assert "ray start --head" in done.stderr


@contextmanager
def going_away() -> Generator[tuple[str, threading.Event, threading.Event]]:
    """A dashboard with a job that runs: its address, whether it was asked, whether it is silent."""
    asked, silent, over = threading.Event(), threading.Event(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if silent.is_set():
                over.wait()
                return
            answer = {"ray_version": "2.60.0", "submission_id": "raysubmit_1", "logs": ""}
            body = json.dumps(answer | {"status": "RUNNING"}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            if self.path.endswith("/logs"):
                asked.set()

        do_POST = do_GET

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002, ARG002
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", asked, silent
        finally:
            over.set()
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("how", ["silent", "refuses"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_command_although_the_head_is_gone(
    how: str, number: signal.Signals, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        address, asked, silent = stack.enter_context(going_away())
        words = [GRISTMILL, "teragen", "10", tmp_path / "out", "--on", address]
        began = subprocess.Popen(
            words,
            env=clean_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )
        assert asked.wait(LONG_S)
        if how == "silent":
            silent.set()
        else:
            stack.close()
        time.sleep(1.5)  # it has asked again
        began.send_signal(number)
        sent_s = time.monotonic()
        done = end(began, timeout_s=30)
        took_s = time.monotonic() - sent_s
    assert done.status == 128 + number, done.stderr
    assert took_s < 5
    assert "does not answer any more" in done.stderr
    assert f"ray job stop raysubmit_1 --address {address}" in done.stderr


def test_what_is_of_this_machine_is_refused(tmp_path: Path) -> None:
    there = ("--on", "http://127.0.0.1:1")
    (tmp_path / "job.py").write_text(SLOW)
    for words, says in (
        (["sort"], "standard input is of this machine"),
        (["sort", "-"], "standard input is of this machine"),
        (["sort", "a"], "standard output is of this machine"),
        (["terasort", "a"], "missing argument"),
        (["doctor"], "doctor does not run on the head"),
        (["run", tmp_path / "missing.py"], "does not exist"),
        (["run", tmp_path / "job.py", "--only", "a:0"], "--only"),
        (["streaming", "-input", "a"], "-output is missing"),
    ):
        done = run(*words, *there, status=2, cwd=tmp_path)
        assert says in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1, done.stderr


def test_a_sort_on_the_head_is_the_same_and_its_report_comes_here(there: There) -> None:
    run("teragen", "20k", there.shared / "data")
    run("terasort", there.shared / "data", there.shared / "wanted")
    data = Path("..", there.shared.name, "data")  # of the user's folder, which is not there
    done = there.run("terasort", data, there.shared / "out", "--json")
    report = only_object(done.stdout)
    assert report["status"] == "succeeded"
    assert report["records"] == 20_000
    assert content(there.shared / "out") == content(there.shared / "wanted")
    assert "runs on the head of" in done.stderr


def test_functions_with_their_modules_and_side_files(there: There) -> None:
    """The head sees nothing of the user's folder: neither the job's file nor what it imports."""
    mine = there.mine
    (mine / "data").mkdir()
    (mine / "job.py").write_text(JOB)
    (mine / "helper.py").write_text(HELPER)
    (mine / "stop.txt").write_text("the\n")
    (mine / "data/more.txt").write_text("fox\n")
    (there.shared / "text").write_text("The quick fox\nthe slow FOX the dog\n")
    job = ("run", "job.py", "--set", f"text={there.shared / 'text'}")
    done = there.run(*job, "--output", there.shared / "counts", "--history")
    lines = content(there.shared / "counts").decode().splitlines()
    assert sorted(lines) == ["dog\t1", "quick\t1", "slow\t1"]
    assert "its history stays on the head" in done.stderr
    listed = there.run("jobs", "--json", "--limit", "1").stdout
    assert json.loads(listed)[0]["state"] == "succeeded"


KEPT = """
from ray.experimental import internal_kv as store
secret = sys.stdin.read().encode()
for name in store._internal_kv_list(b""):
    print(name, secret in (store._internal_kv_get(name) or b"") or secret in name)
"""


def test_credentials_go_to_the_driver_and_nowhere_else(there: There) -> None:
    """The job reads an environment that has them; no file, no log and no store of Ray has."""
    secret = "correct-horse-battery-staple"
    (there.mine / "secret.py").write_text(SECRET)
    output = there.shared / "secrets"
    job = ("run", "secret.py", "--output", output)
    there.run(*job, AWS_SECRET_ACCESS_KEY=secret, AWS_REGION="moon-1")
    assert content(output).decode().split() == [secret[::-1], "moon-1"]
    for file in there.cluster.of_head.rglob("*"):
        if file.is_file():
            assert secret.encode() not in file.read_bytes(), file
    kept = subprocess.run(
        [sys.executable, "-c", CONNECT + KEPT],
        input=secret,
        env=clean_environment(**there.cluster.tls, RAY_ADDRESS=there.cluster.head),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout.splitlines()
    assert any("gcs://gristmill_" in line for line in kept)  # the package itself
    assert not [line for line in kept if line.endswith("True")]


def test_scripts_of_hadoop_streaming(there: There) -> None:
    script = there.mine / "upper.sh"
    script.write_text("tr a-z A-Z\n")
    (there.shared / "lines").write_text("b\na\nb\n")
    steps = ("-mapper", "sh upper.sh", "-reducer", "uniq -c", "-D", "mapreduce.job.reduces=1")
    data = ("-input", there.shared / "lines", "-output", there.shared / "upper")
    done = there.run("streaming", "-files", script, *data, *steps)
    assert content(there.shared / "upper").split() == [b"1", b"A", b"2", b"B"]
    assert "REDUCE_OUTPUT_RECORDS=2" in done.stderr


def test_what_fails_on_the_head_is_said_here(there: There) -> None:
    (there.mine / "broken.py").write_text(BROKEN)
    done = there.run("run", "broken.py", "--output", there.shared / "broken", status=1)
    assert "KeyError" in done.stderr
    assert "no 1" in done.stderr
    assert f'File "{there.mine / "broken.py"}", line 6' in done.stderr  # as it is called here
    assert not (there.shared / "broken").exists()


def test_ctrl_c_stops_the_job(there: There) -> None:
    (there.mine / "slow.py").write_text(SLOW)
    job = ("run", "slow.py", "--output", there.shared / "slowed", "--json")
    spill = there.shared / "spill"
    spill.mkdir()
    begun = there.shared / "begun"
    began = there.start(*job, "--set", f"begun={begun}", "--spill-dir", spill)
    deadline_s = time.monotonic() + LONG_S / 2
    while not begun.exists():
        assert began.poll() is None, end(began)
        assert time.monotonic() < deadline_s, "no record was mapped"
        time.sleep(0.05)
    began.send_signal(signal.SIGINT)
    done = end(began, timeout_s=LONG_S / 2)
    assert done.status == 128 + signal.SIGINT, done.stderr
    assert "is being stopped" in done.stderr
    assert "it was cancelled" in done.stderr
    assert only_object(done.stdout)["status"] == "cancelled"
    assert not (there.shared / "slowed").exists()
    wait_until_gone(spill)
