"""`--on ray`: the same bytes as on one machine, whatever happens to agents; and what is refused.

That undisturbed jobs make the same is tried in tests/places, of all kinds.
"""

import asyncio
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from .agents import agents_of, one_agent, wait_for_agents, wait_until_ended, wait_until_gone
from .harness import GRISTMILL, clean_environment, end, failure, only_object, report, run, start
from .own_code import Bench
from .resuming import RUNS, Tree, events_of, tree, wait_for_history
from .s3_server import Server

#: A silent agent is lost after ten seconds.
SILENCE_S = 10

#: How often a job is begun that has to be met at a certain time.
TRIES = 5

Event = dict[str, Any]


def begun(phase: str) -> Callable[[list[Event]], bool]:
    """Whether a phase has begun."""
    return lambda events: any(
        event["event"] == "phase_started" and event["name"] == phase for event in events
    )


def disturbed(
    arguments: list[str | Path],
    home: Path,
    spill: Path,
    is_time: Callable[[list[Event]], bool],
    disturb: Callable[[dict[int, Path]], None],
) -> "subprocess.Popen[str]":
    """Start a job, and disturb its agents when its history says that it is time."""
    process = start(*arguments, "--spill-dir", spill, "--history", "--json")
    wait_for_history(home, process)
    while process.poll() is None and not is_time(events_of(home)):
        time.sleep(0.002)
    found = agents_of(spill)
    if process.poll() is None and found:
        disturb(found)
    return process


@pytest.mark.parametrize("collect", [(), ("--collect",)], ids=["shared", "collected"])
def test_a_task_with_many_parts(
    collect: tuple[str, ...], on_ray: tuple[str, ...], records: Path, spill: Path, tmp_path: Path
) -> None:
    of_job = ["--memory", "44M", "--workers", "2", "--partitions", "300"]
    run("terasort", records, tmp_path / "wanted", *of_job)
    words = ["terasort", records, tmp_path / "out", *of_job, *on_ray, *collect]
    run(*words, "--spill-dir", spill)
    assert tree(tmp_path / "out") == tree(tmp_path / "wanted")
    assert len(tree(tmp_path / "out")) == 300


def kill_one(agents: dict[int, Path]) -> None:
    """Kill some agent."""
    os.kill(random.choice(list(agents)), signal.SIGKILL)


@pytest.mark.parametrize("phase", ["sample", "spill", "merge"])
def test_an_agent_that_is_killed_changes_nothing(
    phase: str,
    on_ray: tuple[str, ...],
    records: Path,
    wanted: Tree,
    home: Path,
    spill: Path,
    tmp_path: Path,
) -> None:
    job = ["terasort", records, tmp_path / "out", *RUNS, *on_ray]
    done = end(disturbed(job, home, spill, begun(phase), kill_one))
    assert done.status == 0, done.stderr
    assert tree(tmp_path / "out") == wanted
    wait_until_gone(spill, killed=1)
    assert not list(tmp_path.glob("out/.*"))


@pytest.mark.parametrize("phase", ["map", "reduce"])
def test_an_agent_with_functions_of_users_that_is_killed_changes_nothing(
    phase: str, on_ray: tuple[str, ...], words: Path, home: Path, spill: Path, tmp_path: Path
) -> None:
    bench, usual = Bench(words), ("--memory", "64M", "--workers", "2")
    run(*bench.command("function", tmp_path / "wanted"), *usual)
    job = [*bench.command("function", tmp_path / "out"), *usual, *on_ray]
    home_of_wanted = home / "jobs"
    shutil.rmtree(home_of_wanted, ignore_errors=True)
    done = end(disturbed(job, home, spill, begun(phase), kill_one))
    assert done.status == 0, done.stderr
    assert tree(tmp_path / "out") == tree(tmp_path / "wanted")
    wait_until_gone(spill, killed=1)


def test_an_agent_that_stands_still_is_lost_and_does_no_harm(
    on_ray: tuple[str, ...],
    records: Path,
    wanted: Tree,
    home: Path,
    spill: Path,
    tmp_path: Path,
) -> None:
    stopped: list[int] = []

    def stop_one(agents: dict[int, Path]) -> None:
        stopped.append(random.choice(list(agents)))
        os.kill(stopped[0], signal.SIGSTOP)

    job = ["terasort", records, tmp_path / "out", *RUNS, *on_ray]
    began_s = time.monotonic()
    process = disturbed(job, home, spill, begun("spill"), stop_one)
    done = end(process)
    took_s = time.monotonic() - began_s
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    assert done.status == 0, done.stderr
    assert not stopped or took_s >= SILENCE_S
    assert tree(tmp_path / "out") == wanted
    wait_until_gone(spill)


def test_without_agents_a_job_ends_by_name(
    on_ray: tuple[str, ...], records: Path, home: Path, spill: Path, tmp_path: Path
) -> None:
    def kill_all(agents: dict[int, Path]) -> None:
        for pid in agents:
            os.kill(pid, signal.SIGKILL)

    job = ["terasort", records, tmp_path / "out", *RUNS, *on_ray]
    done = end(disturbed(job, home, spill, begun("spill"), kill_all))
    assert done.status == 1
    assert "all its agents are lost" in done.stderr
    assert "ray status" in done.stderr
    assert not (tmp_path / "out").exists()
    # The folders of killed agents go with the next job there.
    run("terasort", records, tmp_path / "out", *RUNS, *on_ray, "--spill-dir", spill)
    wait_until_gone(spill)


def test_a_job_that_is_cancelled_leaves_nothing(
    on_ray: tuple[str, ...], records: Path, home: Path, spill: Path, tmp_path: Path
) -> None:
    job = ["terasort", records, tmp_path / "out", *RUNS, *on_ray]
    began = start(*job, "--spill-dir", spill, "--history", "--json")
    wait_for_history(home, began)
    began_s = time.monotonic()
    began.send_signal(signal.SIGINT)
    done = end(began)
    assert done.status == 128 + signal.SIGINT, done.stderr
    assert time.monotonic() - began_s < 8
    wait_until_gone(spill)
    assert not (tmp_path / "out").exists()


def test_agents_end_with_a_driver_that_is_killed(
    on_ray: tuple[str, ...], records: Path, data: Path, spill: Path, tmp_path: Path
) -> None:
    spilling = (*RUNS, *on_ray, "--spill-dir", spill)
    began = start("terasort", records, tmp_path / "out", *spilling)
    wait_for_agents(spill, 2)
    began.kill()
    end(began)
    wait_until_ended(spill)
    # Runs stay for who resumes the job, until another one spills there.
    run("terasort", data, tmp_path / "other", *spilling)
    wait_until_gone(spill)


def test_a_run_that_is_damaged_or_gone_is_made_again(
    on_ray: tuple[str, ...],
    records: Path,
    wanted: Tree,
    home: Path,
    spill: Path,
    tmp_path: Path,
) -> None:
    damaged: list[Path] = []

    def damage(agents: dict[int, Path]) -> None:
        for folder in agents.values():
            for path, is_first in zip(sorted(folder.glob("run-*")), (True, False), strict=False):
                with suppress(FileNotFoundError):  # the job was faster, and has ended
                    if is_first:
                        path.write_bytes(b"damaged" * 1000)
                    else:
                        path.unlink()
                    damaged.append(path)

    for number in range(TRIES):
        out = tmp_path / f"out-{number}"
        shutil.rmtree(home, ignore_errors=True)
        damaged.clear()
        job = ["terasort", records, out, *RUNS, *on_ray]
        done = end(disturbed(job, home, spill, begun("merge"), damage))
        assert done.status == 0, done.stderr
        assert tree(out) == wanted
        if len(damaged) >= 2:
            return
    pytest.fail("each job was over before its runs could be damaged")


def test_runs_over_the_network_are_the_same(
    on_ray: tuple[str, ...],
    records: Path,
    wanted: Tree,
    tmp_path: Path,
) -> None:
    job = ("terasort", records, tmp_path / "out", *RUNS, *on_ray, "--json")
    done = only_object(run(*job, GRISTMILL_SEGMENTS="http").stdout)
    assert done["counters"]["SPILLED_RUNS"] > 2
    assert done["counters"]["SHUFFLE_BYTES_RECEIVED"] > 0
    assert tree(tmp_path / "out") == wanted


def test_data_in_s3_are_read_and_written_by_agents(
    on_ray: tuple[str, ...], server: Server, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents have the keys of the job, though Ray was started without."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    (server.folder / "cluster").mkdir()
    there = "s3://cluster"
    run("hadoop", "fs", "-put", data, f"{there}/data")
    run("terasort", data, "wanted", *RUNS)
    enough = ("--memory", "64M", "--workers", "2")
    done = report("terasort", f"{there}/data", f"{there}/out", *enough, *on_ray)
    assert done["counters"]["STORE_IO_REQUEST"] > 2
    assert tree(server.folder / "cluster/out") == tree(Path("wanted"))


#: A job whose maps give other numbers each time: one a record, under fifty keys.
FICKLE = """
import random, time
import gristmill as gm

def chance(record):
    number = random.random()
    for key in range(50):
        yield key, (record, number)

def slow(key, values):
    time.sleep(0.05)
    yield key, sorted(values)

def job(output):
    data = gm.items(list(range(400)))
    return gm.Job(data, map=chance, reduce=slow, parts=8, output=gm.jsonl(output))
"""


def fickle(tmp_path: Path, on_ray: tuple[str, ...]) -> list[str | Path]:
    """The command that runs that job."""
    (tmp_path / "job.py").write_text(FICKLE)
    usual = ("--workers", "2", "--memory", "200M")
    return ["run", tmp_path / "job.py", "--output", tmp_path / "out", *usual, *on_ray]


def versions(output: Path) -> dict[int, set[float]]:
    """The numbers that the output has of each record."""
    found: dict[int, set[float]] = {}
    keys = 0
    for part in output.glob("part-*"):
        for line in part.read_text().splitlines():
            keys += 1
            for record, number in json.loads(line)["value"]:
                found.setdefault(record, set()).add(number)
    assert keys == 50
    return found


def test_no_output_is_made_of_two_versions_of_a_map(
    on_ray: tuple[str, ...], home: Path, spill: Path, tmp_path: Path
) -> None:
    """What had read maps of an agent that is killed is done again, as they give other numbers."""
    done = end(disturbed(fickle(tmp_path, on_ray), home, spill, begun("reduce"), kill_one))
    assert done.status == 0, done.stderr
    found = versions(tmp_path / "out")
    assert sorted(found) == list(range(400))
    assert all(len(numbers) == 1 for numbers in found.values())
    warnings = json.loads(done.stdout)["warnings"]
    assert any("gave something else when they were run again" in one for one in warnings)


def test_a_job_that_never_gives_the_same_ends_by_name(
    on_ray: tuple[str, ...], home: Path, spill: Path, tmp_path: Path
) -> None:
    """Each time that maps have been done again, their runs are damaged while reduces read them."""

    def damage(agents: dict[int, Path]) -> None:
        while agents_of(spill):
            for path in (path for folder in agents.values() for path in folder.glob("run-*")):
                with suppress(OSError):
                    path.write_bytes(b"damaged" * 1000)
            time.sleep(0.2)

    done = end(disturbed(fickle(tmp_path, on_ray), home, spill, begun("reduce"), damage))
    assert done.status == 1, done.stderr
    assert "gave a different output" in done.stderr
    assert "3 times already" in done.stderr
    assert "random" in done.stderr
    assert not (tmp_path / "out").exists()


def test_what_a_cluster_cannot_do_is_refused(
    on_ray: tuple[str, ...], data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    many = failure("terasort", data, out, *on_ray, "--workers", "100", status=2)
    assert "the cluster has 4 CPUs" in many
    both = run("terasort", data, out, *on_ray, "--runner", "processes", status=2).stderr
    assert "--runner" in both
    missing = tmp_path / "missing"
    nowhere = failure("terasort", data, out, *on_ray, "--spill-dir", missing)
    assert "missing" in nowhere
    assert "(on node " in nowhere
    done = subprocess.run(
        [GRISTMILL, "sort", *on_ray],
        input=b"b\na\n",
        capture_output=True,
        env=clean_environment(),
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert b"of this machine alone" in done.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("address", "status", "says"),
    [
        ("127.0.0.1:1", 1, "nothing answers at 127.0.0.1:1"),
        ("nowhere:1", 1, "nothing answers at nowhere:1"),
        ("127.0.0.1", 2, "RAY_ADDRESS is 127.0.0.1, which has no port. What to do: set it to HOST"),
        ("rubbish", 2, "RAY_ADDRESS is rubbish, which has no port"),
        ("host:port", 2, "RAY_ADDRESS is host:port, which has no port"),
        ("ray://127.0.0.1:10001", 2, "Ray's client"),
    ],
)
def test_a_cluster_that_is_not_there(
    address: str, status: int, says: str, data: Path, tmp_path: Path
) -> None:
    job = ("terasort", data, tmp_path / "out", "--on", "ray")
    said = failure(*job, status=status, RAY_ADDRESS=address)
    assert says in said
    assert "literal" not in said


def test_options_are_named_as_on_the_command_line(
    on_ray: tuple[str, ...], data: Path, tmp_path: Path
) -> None:
    """Also those that an agent on a node refuses; here and there by the same names."""
    job = ("terasort", data, tmp_path / "out")
    for places in ((), on_ray):
        said = failure(*job, *places, "--spill-dir", "/missing", status=1)
        assert said.startswith("cannot use a spill directory: it does not exist (file /missing).")
        assert "What to do: give --spill-dir a directory that exists" in said
        said = failure(*job, *places, "--split-size", "1", status=2)
        assert said.startswith("cannot read the options: --split-size must be 102400 bytes or")
    said = failure(*job, *on_ray, "--memory", "3x", status=2)
    assert said.startswith("cannot read the options: --memory")


def test_nothing_is_served_without_the_token(spill: Path) -> None:
    with one_agent(spill) as hello:
        _, folder = hello["place"]["folders"]
        Path(folder, "run-00000-0-0000").write_bytes(b"0123456789")
        Path(folder, "secret").write_bytes(b"secret")

        def ask(path: str, token: str | None, **headers: str) -> tuple[int, bytes]:
            connection = http.client.HTTPConnection(hello["place"]["address"], timeout=10)
            given = {} if token is None else {"authorization": f"Bearer {token}"}
            connection.request("GET", path, headers=given | headers)
            answer = connection.getresponse()
            try:
                return answer.status, answer.read()
            finally:
                connection.close()

        run = "/runs/1/run-00000-0-0000"
        for token in (None, "", "Secret", "secret2"):
            assert ask(run, token, range="bytes=0-3")[0] == 401
            assert ask("/events?after=0", token)[0] == 401
            assert ask("/orders", token)[0] == 401
        assert ask(run, "secret", range="bytes=2-3") == (206, b"23")
        assert ask(run, "secret", range="bytes=2-99") == (206, b"23456789")
        assert ask(run, "secret", range="bytes=20-99")[0] == 416
        for path in (
            *("1/secret", "1/lock", "1/..%2fsecret", "1/run-%2f..%2f..%2fsecret"),
            *("0/run-1", "0/..%2fsecret", "2/run-1"),
        ):
            assert ask(f"/runs/{path}", "secret", range="bytes=0-3")[0] == 404, path


def test_two_thousand_connect_at_once_and_none_is_refused(spill: Path) -> None:
    with one_agent(spill) as hello:
        _, folder = hello["place"]["folders"]
        Path(folder, "run-00000-0-0000").write_bytes(b"0123456789")
        host, _, port = hello["place"]["address"].rpartition(":")
        request = (
            "GET /runs/1/run-00000-0-0000 HTTP/1.1\r\nhost: agent\r\nrange: bytes=2-3\r\n"
            "authorization: Bearer secret\r\nconnection: close\r\n\r\n"
        )

        async def ask() -> bytes:
            reader, writer = await asyncio.open_connection(host, int(port))
            everybody.release()
            await all_connected.wait()
            writer.write(request.encode())
            answer = await reader.read()
            writer.close()
            return answer

        async def ask_all() -> list[bytes]:
            asked = [asyncio.create_task(ask()) for _ in range(2000)]
            for _ in asked:
                await everybody.acquire()
            all_connected.set()
            return await asyncio.gather(*asked)

        everybody, all_connected = asyncio.Semaphore(0), asyncio.Event()
        answers = asyncio.run(ask_all())
    assert all(one.startswith(b"HTTP/1.1 206 ") and one.endswith(b"23") for one in answers)


def test_hundreds_read_from_an_agent_at_once(spill: Path) -> None:
    with one_agent(spill) as hello:
        _, folder = hello["place"]["folders"]
        content = random.Random(7).randbytes(1_000_000)
        Path(folder, "run-00000-0-0000").write_bytes(content)

        def read(number: int) -> bool:
            connection = http.client.HTTPConnection(hello["place"]["address"], timeout=60)
            first = number * 1000
            headers = {"authorization": "Bearer secret", "range": f"bytes={first}-{first + 999}"}
            connection.request("GET", "/runs/1/run-00000-0-0000", headers=headers)
            answer = connection.getresponse().read()
            connection.close()
            return answer == content[first : first + 1000]

        with ThreadPoolExecutor(400) as pool:
            assert all(pool.map(read, range(400)))


@pytest.mark.usefixtures("on_ray")
def test_a_program_that_is_connected_runs_jobs(words: Path, tmp_path: Path) -> None:
    """As in a notebook, or inside a job of Ray: what is connected stays so."""
    program = (
        "import ray, sys, gristmill as gm\n"
        "ray.init(log_to_driver=False, logging_level='ERROR')\n"
        "job = gm.Job(gm.text(sys.argv[1]), reduce=gm.sum(), output=gm.tsv(sys.argv[2]), parts=2,\n"
        "             map=lambda line: [(word, 1) for word in line.split()])\n"
        "job.run(on='ray', workers=2, progress=False)\n"
        "gm.teragen('1k', sys.argv[3], on='ray')\n"
        "assert ray.is_initialized()\n"
    )
    arguments = [words / "in.txt", tmp_path / "out", tmp_path / "data"]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        env=clean_environment(),
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    parts = [part.read_text() for part in (tmp_path / "out").glob("part-*")]
    counted = dict(line.split("\t") for part in parts for line in part.splitlines())
    text = (words / "in.txt").read_text().split()
    assert sum(map(int, counted.values())) == len(text)
    assert run("teravalidate", tmp_path / "data", status=1).stderr
