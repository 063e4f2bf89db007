"""`bench run` with few rows: each suite, resuming, and what it refuses."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.harness import GRISTMILL, clean_environment, run

from gristmill import _core
from gristmill.analysis.bench.bench_request import BenchRequest
from gristmill.analysis.bench.cache import bring_about
from gristmill.analysis.bench.launching import launch
from gristmill.analysis.bench.results import Measured, read_results
from gristmill.analysis.bench.session import Session
from gristmill.installing import install_extra

JOB = """
import gristmill as gm
def job(times="1"):
    def words(line):
        for word in line.split():
            yield word, int(times)
    return gm.Job(gm.text("in.txt"), map=words, reduce=gm.sum(), output=gm.tsv("out/"))
"""


def bench(*arguments: str | Path, cwd: Path, status: int = 0) -> dict[str, Any]:
    """Run a benchmark once; its figures."""
    once = ("--repeat", "1", "--warm-up", "0", "--json")
    done = run("bench", "run", *arguments, *once, cwd=cwd, status=status)
    return json.loads(done.stdout) if status == 0 else {"stderr": done.stderr}


def steps(said: dict[str, Any]) -> list[tuple[str, dict[str, str]]]:
    return [(one["step"], one["config"]) for one in said["figures"]]


def left(folder: Path) -> list[str]:
    """What is in a folder, data of a benchmark above all."""
    return sorted(path.name for path in folder.iterdir())


def test_sort(tmp_path: Path) -> None:
    said = bench("sort", "--rows", "1k", "--vary", "no-sync=on,off", "--workers", "1", cwd=tmp_path)
    names = ("teragen", "terasort", "teravalidate")
    assert steps(said) == [(step, {"no-sync": one}) for one in ("on", "off") for step in names]
    found = read_results(tmp_path / "bench-sort")
    assert {run.report["workers"] for run in found.runs} == {1}
    assert [run.report["durable"] for run in found.runs if run.step == "terasort"] == [False, True]
    assert {run.report["records"] for run in found.runs} == {1000}
    assert {run.report["checksum"] for run in found.runs} == {"1f9ffe645ec"}
    assert str(tmp_path) not in (tmp_path / "bench-sort/runs.jsonl").read_text()
    assert left(tmp_path / "bench-sort") == ["machine.json", "runs.jsonl"]
    assert said["figures"][0]["bytes"] == 100_000
    table = run("bench", "run", "sort", "--rows", "1k", "--repeat", "1", "--warm-up", "0",
                "--vary", "no-sync=on,off", "--workers", "1", cwd=tmp_path).stdout  # fmt: skip
    assert "6 runs are in bench-sort already" in table
    assert "no-sync=off" in table


def test_io(tmp_path: Path) -> None:
    data = tmp_path / "data"
    said = bench("io", "--rows", "10k", "--size", "100k,300k", "--dir", data, cwd=tmp_path)
    sizes = ("100000", "300000")
    names = ("write-durable", "write-lazy", "read", "grep")
    assert steps(said) == [(step, {"size": size}) for size in sizes for step in names]
    found = read_results(tmp_path / "bench-io")
    assert [run.report["parts"] for run in found.runs] == [10] * 4 + [3] * 4
    assert [run.report["records"] for run in found.runs] == ([10_000] * 3 + [0] + [9000] * 3 + [0])
    assert [run.report["input_bytes"] for run in found.runs if run.step == "grep"] == [
        1_000_000,
        900_000,
    ]
    assert [run.report["durable"] for run in found.runs[:3]] == [True, False, None]
    assert left(data) == []


def test_wordcount_and_cold(tmp_path: Path) -> None:
    said = bench("wordcount", "--rows", "2k", "--cache", "cold", cwd=tmp_path)
    assert steps(said) == [("wordcount", {})]
    (found,) = read_results(tmp_path / "bench-wordcount").runs
    assert found.report["counters"]["COMBINE_INPUT_RECORDS"] == 20_000


def test_shuffle(tmp_path: Path) -> None:
    said = bench("shuffle", "--rows", "2k", "--workers", "2", cwd=tmp_path)
    assert steps(said) == [("native", {}), ("plasma", {})]
    native, plasma = read_results(tmp_path / "bench-shuffle").runs
    assert (native.report["parts"], plasma.report["parts"]) == (80, 80)
    assert plasma.report["counters"]["REDUCE_INPUT_RECORDS"] == 2000
    assert native.report["counters"]["MAP_INPUT_RECORDS"] == 2000


def test_split_size(tmp_path: Path) -> None:
    said = bench("split-size", "--rows", "1k", "--vary", "split-size=1M,2M", cwd=tmp_path)
    assert steps(said) == [("terasort", {"split-size": size}) for size in ("1M", "2M")]


def test_a_job_file(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "more.txt").write_text("to be or not to be\n")
    given = ("job.py", "--input", "more.txt", "--set", "times=3", "--vary", "workers=1,2")
    said = bench(*given, cwd=tmp_path)
    assert steps(said) == [("job", {"workers": "1"}), ("job", {"workers": "2"})]
    assert left(tmp_path / "bench-job") == ["machine.json", "runs.jsonl"]


def test_what_failed_in_a_job_is_told(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB.replace("int(times)", "{}[word]"))
    (tmp_path / "in.txt").write_text("to be\n")
    said = bench("job.py", cwd=tmp_path, status=1)["stderr"]
    assert "gristmill run: cannot map a record: map words: KeyError: 'to'" in said
    assert "What to do: " in said
    assert len(said.splitlines()) == 1


def test_it_resumes_what_was_broken_off(tmp_path: Path) -> None:
    given = ("bench", "run", "sort", "--rows", "1k", "--repeat", "2", "--warm-up", "1")
    run(*given, cwd=tmp_path)
    file = tmp_path / "bench-sort/runs.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    assert len(lines) == 9
    file.write_text(
        "".join(lines[:4]) + lines[4][:30]
    )  # a turn that was broken off in its second step
    done = run(*given, cwd=tmp_path)
    assert "4 runs are in bench-sort already" in done.stdout
    assert file.read_text().startswith("".join(lines[:4]))
    runs = read_results(tmp_path / "bench-sort").runs
    names = ["teragen", "terasort", "teravalidate"]
    assert [(one.round, one.step) for one in runs] == [(n, s) for n in range(3) for s in names]
    assert [one.warm_up for one in runs] == [True] * 3 + [False] * 6
    run(*given[:-3], "3", "--warm-up", "1", cwd=tmp_path)
    assert len(read_results(tmp_path / "bench-sort").runs) == 12


def test_the_data_of_a_session_that_was_killed_are_removed(tmp_path: Path) -> None:
    bench("wordcount", "--rows", "10", cwd=tmp_path)
    for name in ("gristmill-bench-0123abcd", "gristmill-bench-of-mine"):
        (tmp_path / "bench-wordcount" / name / "text").mkdir(parents=True)
    bench("wordcount", "--rows", "10", cwd=tmp_path)
    assert left(tmp_path / "bench-wordcount") == [
        "gristmill-bench-of-mine",
        "machine.json",
        "runs.jsonl",
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_no_data(number: signal.Signals, tmp_path: Path) -> None:
    command = [GRISTMILL, "bench", "run", "sort", "--rows", "1k", "--repeat", "100000"]
    said = tmp_path / "stderr"
    with (
        said.open("w") as stderr,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            cwd=tmp_path,
            env=clean_environment(),
        ) as bench,
    ):
        assert bench.stdout is not None
        for line in bench.stdout:
            if "round 1: terasort" in line:
                break
        bench.send_signal(number)
        bench.stdout.close()
        assert bench.wait(60) == 128 + number
    assert left(tmp_path / "bench-sort") == ["machine.json", "runs.jsonl"]
    assert len(read_results(tmp_path / "bench-sort").runs) >= 5
    assert "the runs that are over are in bench-sort. What to do: run the same" in said.read_text()


@pytest.mark.parametrize(
    ("given", "expected", "status"),
    [
        (["sort", "--vary", "colour=1"], "--vary colour: no command of the suite has", 2),
        (["sort", "--vary", "workers"], "--vary is 'workers', which is not a name with", 2),
        (["sort", "--vary", "workers=1,1"], "which is not a name with different values", 2),
        (["sort", "--vary", "no-sync=maybe"], "no-sync is on or off", 2),
        (["sort", "--rows", "0"], "--rows is '0', which is not a number of rows", 2),
        (["sort", "--rows", "many"], "--rows is 'many', which is not a number of rows", 2),
        (["io", "--vary", "size=4k,8k"], "--vary size: no command of the suite has", 2),
        (["io", "--size", "1k"], "--size is '1k', which is not from 4k to 10G", 2),
        (["io", "--size", "x"], "--size is 'x', which is not a size", 2),
        (["sort", "--store-option", "colour=1"], 'store_option: there is no "colour"', 2),
        (["none"], "there is no suite 'none'", 2),
        (["none.py"], "none.py: no such file", 2),
        (["sort", "--prices", "none.toml"], "none.toml: no such file", 1),
        (
            ["sort", "--rows", "1k", "--memory", "1k"],
            "gristmill teragen --memory 1k 1000 bench-sort/gristmill-bench-",
            1,
        ),
    ],
)
def test_what_it_refuses(given: list[str], expected: str, status: int, tmp_path: Path) -> None:
    done = run("bench", "run", *given, cwd=tmp_path, status=status)
    assert expected in done.stderr
    assert "What to do: " in done.stderr
    assert done.stdout == ""


def test_results_of_other_work_are_not_added_to(tmp_path: Path) -> None:
    bench("wordcount", "--rows", "10", cwd=tmp_path)
    said = bench("wordcount", "--rows", "20", cwd=tmp_path, status=2)
    assert "asked for: rows was 10, is 20" in said["stderr"]
    file = tmp_path / "bench-wordcount/machine.json"
    file.write_text(file.read_text().replace('"processors": ', '"processors": 1'))
    said = bench("wordcount", "--rows", "10", cwd=tmp_path, status=2)
    assert "on the machine: processors was 1" in said["stderr"]


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    for name, command in (
        ("scipy", ["run", "sort"]),
        ("numpy", ["compare", "a", "b"]),
        ("matplotlib", ["report", "a"]),
    ):
        code = (
            f"import sys; sys.modules[{name!r}] = None\n"
            "from gristmill.cli.main import main\n"
            f"sys.exit(main({['bench', *command]!r}))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=clean_environment(),
        )
        assert done.returncode == 1
        says = f"cannot use {name}: it is not installed. What to do: {install_extra('analysis')}."
        assert says in done.stderr
    assert left(tmp_path) == []


def test_the_help_imports_no_numbers() -> None:
    code = (
        "import sys; from gristmill.cli.main import main; main(['bench', '--help'])\n"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'scipy', 'matplotlib')))"
    )
    env = clean_environment()
    assert subprocess.run([sys.executable, "-c", code], check=False, env=env).returncode == 0


def test_it_sleeps_while_a_run_is_measured() -> None:
    """Its own CPU time is under 1 % of the run's, and is there to be read in each run."""
    ended = launch(["sleep", "2"])
    assert ended.status == 0
    assert ended.wall_s >= 2
    assert ended.own_cpu_s < 0.02


def test_a_run_that_fails_is_told_apart() -> None:
    assert launch(["sh", "-c", "kill -9 $$"]).status == -9
    ended = launch(["sh", "-c", "echo out; echo err >&2; exit 7"])
    assert (ended.status, ended.stdout, ended.stderr) == (7, "out\n", "err\n")


def test_the_device_is_tried_with_as_much_as_the_data_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real trial runs; how many bytes it was asked for is noted."""
    tried: list[int] = []
    real = _core.device_rates

    def noting(folder: str, size_bytes: int, streams: int) -> tuple[float, float, float]:
        tried.append(size_bytes)
        return real(folder, size_bytes, streams)

    monkeypatch.setattr(_core, "device_rates", noting)
    text = tmp_path / "in.txt"
    text.write_bytes((b" " * 999_998 + b"a\n") * 6)
    (tmp_path / "job.py").write_text(JOB)
    for name, inputs, rows in (("wordcount", (), 10), (str(tmp_path / "job.py"), (str(text),), 0)):
        asked = BenchRequest(suite=name, rows=rows, inputs=inputs, repeat=1, warm_up=0)
        folder = tmp_path / f"results-{rows}"
        Session(asked, str(folder), folder, lambda _line: None).run()
    assert tried == [4 << 20, 6_000_000 - 6_000_000 % 4096]


def test_cold_files_are_not_in_the_cache(tmp_path: Path) -> None:
    file = tmp_path / "in/file"
    file.parent.mkdir()
    file.write_bytes(os.urandom(1 << 20))
    for cache in ("warm", "cold"):
        bring_about(cache, [str(tmp_path / "in"), str(tmp_path / "*/file"), "s3://a/b", "none"])
    assert file.stat().st_size == 1 << 20


def test_a_run_has_what_happened_beside_it(tmp_path: Path) -> None:
    bench("wordcount", "--rows", "10", cwd=tmp_path)
    (found,) = read_results(tmp_path / "bench-wordcount").runs
    assert isinstance(found, Measured)
    assert {"before", "others_s", "steal_s"} == found.load.keys()
    assert found.device is None or found.device["write"] > 0
    assert found.user_s + found.sys_s > 0
    assert found.peak_bytes > 1 << 20
