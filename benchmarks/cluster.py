"""Jobs on a Ray cluster of two nodes, paired with the same jobs on this machine alone.

    python benchmarks/cluster.py sort --rows 50m --memory 2G --pairs 5
    python benchmarks/cluster.py small --pairs 5
    python benchmarks/cluster.py two --rows 10m --pairs 3
    python benchmarks/cluster.py link --rows 20m --pairs 3
    python benchmarks/cluster.py tasks --rows 30k --pairs 5

Both nodes are raylets on this machine, with its cores; the output is in a directory that they
share. Seconds are those of the job (`wall_s`): Ray's start, connecting and the start of agents are
apart, and stand beside them as `command_s`.

`sort` pairs TeraSort in threads with TeraSort on the cluster, with the same memory in all, once
with runs of the other node read as files, and once over HTTP. `small` sorts 1 MB. `two` runs two
jobs at once, and one after the other. `link` puts the nodes into network namespaces with links of 1
Gbit/s (root): how fast the runs cross them, while they do (`ratio`), between the first and the last
tenth (`middle_ratio`), and over the whole phase of merges (`phase_ratio`), is compared with what
iperf3 reaches there; without iperf3, with what plain sockets reach. `cpu_busy` is the share of the
machine's CPU time in use, by whoever, while they cross. `tasks` validates as many files as it is
given rows, each of one record: tasks a second, of tasks with nothing to do, on the cluster and in
threads; and maps as many lines, each a task, with a Python function that does nothing, in worker
processes. The tables go to benchmarks/results.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tables import Row, Span, keep, names, rows_of, span

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.cli.network import Network, network
from tests.cli.ray_cluster import RayCluster, in_network, serving

GRISTMILL = Path(sys.executable).parent / "gristmill"
BY_HTTP = {"GRISTMILL_SEGMENTS": "http"}

NOTHING = """
import gristmill as gm


def nothing(line):
    return None


def job(folder):
    return gm.Job(
        gm.text(f"{folder}/lines.txt"), map=nothing, reduce=gm.sum(), output=gm.tsv("out"), parts=1,
        split_min=100, split_max=100,
    )
"""
"""A job in which each line of 100 bytes is a task."""

Figures = dict[str, Any]

Sample = tuple[float, int]
"""Seconds, and bytes that had come by then."""

SAMPLE_S = 0.02


@dataclass(frozen=True)
class Bench:
    """Where data are, and the cluster."""

    folder: Path
    memory: str
    cluster: RayCluster
    network: Network | None = None

    @property
    def spill(self) -> Path:
        return self.cluster.of_head if self.network is not None else self.folder / "spill"

    def generate(self, rows: str) -> None:
        """Make the input."""
        subprocess.run([GRISTMILL, "teragen", rows, self.folder / "in"], check=True)
        (self.folder / "spill").mkdir()

    def generate_files(self, rows: str) -> None:
        """Make a file for each row, in order."""
        (self.folder / "in").mkdir()
        (self.folder / "spill").mkdir()
        records = [
            f"{number:010}".encode().ljust(98, b".") + b"\r\n" for number in range(amount(rows))
        ]
        for number, record in enumerate(records):
            (self.folder / "in" / f"part-{number:07}").write_bytes(record)
        (self.folder / "lines.txt").write_bytes(b"".join(records))
        (self.folder / "nothing.py").write_text(NOTHING)

    def validate(self, on: str) -> Figures:
        """Check that all files are in order: how many there were, and seconds of the phase."""
        return tasks_of(self._run(["teravalidate", self.folder / "in"], on), "validate")

    def map_nothing(self, on: str) -> Figures:
        """Map the same records, one in each task, with a Python function: as above."""
        settings = ["--set", f"folder={self.folder}", "--output", self.folder / "out"]
        report = self._run(["run", self.folder / "nothing.py", *settings], on)
        shutil.rmtree(self.folder / "out")
        return tasks_of(report, "map")

    def _run(
        self,
        command: list[str | Path],
        on: str,
        environment: dict[str, str] | None = None,
    ) -> Figures:
        """What the report of a command says, and how long the command took."""
        began = time.monotonic()
        done = subprocess.run(
            [str(word) for word in (GRISTMILL, *command, "--json", "--on", on)],
            env={**os.environ, **self.cluster.environment, **(environment or {})},
            check=True,
            capture_output=True,
            text=True,
        )
        command_s = time.monotonic() - began
        return {**json.loads(done.stdout), "command_s": command_s}

    def sort(
        self,
        *more: str,
        on: str = "ray",
        name: str = "out",
        environment: dict[str, str] | None = None,
    ) -> Figures:
        """Sort; what the job's report says, and how long the command took."""
        out = self.folder / name
        spill = self.spill if on == "ray" else self.folder
        options = ["--memory", self.memory, "--spill-dir", spill]
        command = ["terasort", self.folder / "in", out, *more, *options]
        report = self._run(command, on, environment)
        shutil.rmtree(out)
        os.sync()
        phases = {phase["name"]: phase["wall_s"] for phase in report["phases"]}
        runs_bytes = report["counters"].get("MAP_OUTPUT_MATERIALIZED_BYTES", 0)
        return {
            "wall_s": report["wall_s"],
            "command_s": report["command_s"],
            "cpu_s": report["user_s"] + report["sys_s"],
            "runs_bytes": runs_bytes,
            "phases": phases,
        }


def tasks_of(report: Figures, phase: str) -> Figures:
    """How many tasks a phase had in a second."""
    found = next(known for known in report["phases"] if known["name"] == phase)
    cpu_s = report["user_s"] + report["sys_s"]
    return {"wall_s": found["wall_s"], "cpu_s": cpu_s, "tasks": found["tasks"]}


def sort_pair(bench: Bench, number: int) -> Figures:
    """Threads, the cluster by files, the cluster by HTTP: in turns."""
    runs: list[tuple[str, Callable[[], Figures]]] = [
        ("threads", lambda: bench.sort(on="local")),
        ("files", bench.sort),
        ("http", lambda: bench.sort(environment=BY_HTTP)),
    ]
    order = runs[number % 3 :] + runs[: number % 3]
    return {name: run() for name, run in order}


def small(bench: Bench, _: int) -> Figures:
    """A job of 1 MB."""
    return {"files": bench.sort()}


def two(bench: Bench, number: int) -> Figures:
    """Two jobs at once, each with half of the CPUs, and one after the other."""
    half = ("--workers", "2")

    def at_once() -> float:
        began = time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(bench.sort, *half, name=f"out-{job}") for job in range(2)]
            for job in jobs:
                job.result()
        return time.monotonic() - began

    def in_turn() -> float:
        began = time.monotonic()
        for _ in range(2):
            bench.sort(*half)
        return time.monotonic() - began

    order = [at_once, in_turn] if number % 2 == 0 else [in_turn, at_once]
    return {run.__name__: {"wall_s": run()} for run in order}


def tasks(bench: Bench, number: int) -> Figures:
    """Tasks with nothing to do, on the cluster and in threads."""
    order = ["ray", "local"] if number % 2 == 0 else ["local", "ray"]
    found: Figures = {on: bench.validate(on) for on in order}
    return found | {f"{on}_python": bench.map_nothing(on) for on in order}


SENDS = """
import socket, sys, threading, time
here, there, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
listener = socket.create_server((here, 7103))
def send():
    while True:
        try:
            link = socket.create_connection((there, 7103))
            break
        except OSError:
            time.sleep(0.05)
    end, block = time.monotonic() + seconds, bytes(1 << 18)
    while time.monotonic() < end:
        link.sendall(block)
    link.close()
sender = threading.Thread(target=send)
sender.start()
link = listener.accept()[0]
began, got, buffer = time.monotonic(), 0, bytearray(1 << 20)
while count := link.recv_into(buffer):
    got += count
print(got / (time.monotonic() - began))
sender.join()
"""
"""Sends to another machine as long as that is said, and tells what came from it."""


def reached_bytes_per_s(machines: Network) -> float:
    """What is sent from each of two machines to the other at once, a direction's mean."""
    if shutil.which("iperf3") is not None:
        return iperf_bytes_per_s(machines)
    one, other = (machine.host for machine in machines.machines)
    ends = [
        subprocess.Popen(
            [*here.before, sys.executable, "-c", SENDS, here.address, there.address, "4"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for here, there in ((one, other), (other, one))
    ]
    return statistics.mean(float(end.communicate()[0]) for end in ends)


def iperf_bytes_per_s(machines: Network) -> float:
    """The same of iperf3."""
    one, other = (machine.host for machine in machines.machines)
    server = subprocess.Popen([*one.before, "iperf3", "-s", "-1"], stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    client = [*other.before, "iperf3", "-c", one.address, "-t", "4", "--bidir", "--json"]
    done = subprocess.run(client, capture_output=True, text=True, check=True)
    server.wait()
    end = json.loads(done.stdout)["end"]
    ends = (end["sum_received"], end["sum_received_bidir_reverse"])
    return statistics.mean(found["bits_per_second"] for found in ends) / 8


Watched = tuple[list[list[Sample]], list[tuple[float, int, int]]]
"""Of each machine what had come by when; and the CPU time that was used by when, and all of it."""


@contextmanager
def watched(machines: Network) -> Generator[Watched]:
    """What has come to each machine at which time, from now to the end of the block."""
    found: list[list[Sample]] = [[] for _ in machines.machines]
    ticks: list[tuple[float, int, int]] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(SAMPLE_S):
            ticks.append((time.monotonic(), *cpu_ticks()))
            for samples, machine in zip(found, machines.machines, strict=True):
                samples.append((time.monotonic(), machine.link_bytes()[0]))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found, ticks
    finally:
        over.set()
        thread.join()


def cpu_ticks() -> tuple[int, int]:
    """Return the CPU time that this machine has used since it began, and all that it had."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    user, nice, system, idle, iowait, irq, softirq, stolen = map(int, words[1:9])
    used = user + nice + system + irq + softirq + stolen
    return used, used + idle + iowait


def moving(samples: list[Sample], edge: float = 0.01) -> tuple[Sample, Sample]:
    """Return the samples between which all but the first and the last part of all bytes came.

    Example:
        >>> moving([(0.0, 5), (1.0, 5), (2.0, 105), (3.0, 205), (9.0, 205)])
        ((2.0, 105), (3.0, 205))
    """
    first, last = samples[0][1], samples[-1][1]
    edge *= last - first
    began = next(sample for sample in samples if sample[1] > first + edge)
    ended = next(sample for sample in samples if sample[1] >= last - edge)
    return began, ended


def rate(ends: tuple[Sample, Sample]) -> float:
    """Return bytes a second from one sample to another."""
    (began, first), (ended, last) = ends
    return (last - first) / (ended - began)


def link(bench: Bench, _: int) -> Figures:
    """A sort whose runs cross slow links: how fast, while they do, and over the whole merge."""
    assert bench.network is not None
    reached = reached_bytes_per_s(bench.network)
    with watched(bench.network) as (samples, ticks):
        found = bench.sort()
    crossed = [of_one[-1][1] - of_one[0][1] for of_one in samples]
    whole = [moving(of_one) for of_one in samples]
    middle = [rate(moving(of_one, 0.1)) for of_one in samples]
    began, ended = min(at for (at, _), _ in whole), max(at for _, (at, _) in whole)
    during = [(used, had) for at, used, had in ticks if began <= at <= ended]
    used, had = (then - before for before, then in zip(during[0], during[-1], strict=True))
    link = {
        **found,
        "crossed_bytes": crossed,
        "reached_bytes_per_s": reached,
        "reached_by": "iperf3" if shutil.which("iperf3") else "sockets",
        "moving_bytes_per_s": [rate(ends) for ends in whole],
        "moving_s": [then - at for (at, _), (then, _) in whole],
        "middle_bytes_per_s": middle,
        "cpu_busy": used / had,
        "ratio": statistics.mean(rate(ends) for ends in whole) / reached,
        "middle_ratio": statistics.mean(middle) / reached,
        "phase_ratio": max(crossed) / found["phases"]["merge"] / reached,
    }
    return {"http": link}


def amount(text: str) -> int:
    """Return a number of rows that is given as `10k` or `20m`.

    Example:
        >>> amount("30k"), amount("7")
        (30000, 7)
    """
    factors = {"k": 1_000, "m": 1_000_000}
    return int(text.rstrip("km")) * factors.get(text[-1], 1)


KINDS: dict[str, Callable[[Bench, int], Figures]] = {
    "sort": sort_pair,
    "small": small,
    "two": two,
    "link": link,
    "tasks": tasks,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Jobs on a Ray cluster.")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--rows", help="records of 100 bytes (10m); of tasks: their files (30k)")
    parser.add_argument("--memory", default="1G", help="of the job in all")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--gbit", type=float, default=1, help="of links, in Gbit/s")
    parser.add_argument("--folder", type=Path, help="where all files are")
    options = parser.parse_args()
    rows = options.rows or {"small": "10k", "tasks": "30k"}.get(options.kind, "10m")
    rounds: list[Figures] = []

    def measure(bench: Bench) -> None:
        # Gristmill goes to the nodes with the first job.
        if options.kind == "tasks":
            bench.generate_files(rows)
            bench.validate("ray")
        else:
            bench.generate(rows)
            bench.sort()
        for number in range(options.pairs):
            rounds.append(KINDS[options.kind](bench, number))
            print(json.dumps(rounds[-1]), flush=True)

    with tempfile.TemporaryDirectory(dir=options.folder) as made:
        if options.kind == "link":
            with network(2, gbit=options.gbit) as machines, in_network(machines) as cluster:
                measure(Bench(Path(made), options.memory, cluster, machines))
        else:
            with serving() as cluster:
                measure(Bench(Path(made), options.memory, cluster))
    known = {"what": options.kind, "rows": rows, "memory": options.memory}
    known |= {"gbit": options.gbit} if options.kind == "link" else {}
    found = rows_of(rounds, **known)
    for name, figure in told(found).items():
        print(f"{name}: {figure.shown('.2f')}")
    keep(f"cluster-{options.kind}", found)


def told(rows: list[Row]) -> dict[str, Span]:
    """What is printed at the end: times, tasks a second, shares of what a link can carry."""
    found: dict[str, Span] = {}
    for program in names(rows, "program"):
        wall = span(rows, program=program)
        found[f"{program}, seconds"] = wall
        if "tasks" in rows[0]:
            found[f"{program}, tasks a second"] = span(rows, "tasks", program=program) / wall
    for ratio in ("ratio", "middle_ratio", "phase_ratio"):
        if ratio in rows[0]:
            found[ratio] = span(rows, ratio)
    return found


if __name__ == "__main__":
    main()
