"""The command around the jobs: help, explanations, our own options."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import Run, Yard


@pytest.fixture
def job(yard: Yard, tmp_path: Path) -> list[str]:
    return [
        "-input",
        str(yard.inputs / "words.txt"),
        "-output",
        str(tmp_path / "out"),
        "-mapper",
        "cat",
        "-reducer",
        "cat",
    ]


def output(tmp_path: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (tmp_path / "out").glob("part-*")}


def test_explain_says_what_each_option_means(
    streaming: Run, job: list[str], tmp_path: Path
) -> None:
    done = streaming(
        "-D",
        "mapreduce.job.reduces=3",
        "-D",
        "mapreduce.job.reduce.slowstart.completedmaps=1",
        "-D",
        "stream.num.map.output.key.fields=2",
        *job,
        "-cmdenv",
        "A=b",
        "--explain",
    )
    assert done.returncode == 0
    for part in (
        "mapper       cat; reads text (values alone), writes text, the key up to the 2nd",
        "partitions   3",
        "variable     A=b",
        "mapreduce.job.reduce.slowstart.completedmaps has no effect",
        "property     mapreduce.job.reduces=3",
    ):
        assert part in done.stdout
    assert not (tmp_path / "out").exists()


def test_verbose_says_what_was_understood(streaming: Run, job: list[str]) -> None:
    done = streaming(*job, "-verbose")
    assert done.returncode == 0
    assert "map tasks    2" in done.stderr


def test_help_is_hadoops_and_ours(streaming: Run) -> None:
    for word in ("-help", "-info", "--help"):
        done = streaming(word)
        assert done.returncode == 0
        assert "-inputreader SPEC" in done.stdout
        assert "--only-split N" in done.stdout
    assert streaming().returncode == 2


def test_a_wrong_command_line_is_exit_code_2(streaming: Run, job: list[str]) -> None:
    done = streaming(*job, "-libjars", "x.jar")
    assert done.returncode == 2
    assert "-libjars is not supported" in done.stderr


def test_a_job_in_the_background_ends_by_itself(
    streaming: Run, job: list[str], tmp_path: Path
) -> None:
    done = streaming(*job, "-background")
    assert done.returncode == 0
    deadline = time.monotonic() + 60
    while not (tmp_path / "out/_SUCCESS").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (tmp_path / "out/part-00000").exists()


def test_what_is_wrong_at_once_is_said_before_a_job_goes_to_the_background(
    streaming: Run, job: list[str], tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    done = streaming(*job, "-background")
    assert (done.returncode, "already exists" in done.stderr) == (5, True)
    done = streaming(*job, "-input", str(tmp_path / "not-there"), "-background")
    assert (done.returncode, "does not exist" in done.stderr) == (5, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-D", b"stream.map.output.field.separator=\xff"], r"`\xff` is not UTF-8"),
        (["--workers", "²"], "--workers ² is not a number of workers"),
        (["--workers", "99999999999999999999"], "is not a number of workers"),
        (["--only-split", "²"], "numbered from 0 to 1"),
    ],
)
def test_odd_words_are_refused_and_are_no_defect(
    job: list[str], words: list[str | bytes], said: str
) -> None:
    command = [sys.executable, "-m", "gristmill", "streaming", *job, *words]
    done = subprocess.run(command, capture_output=True, check=False, timeout=100)
    assert (done.returncode, said in done.stderr.decode()) == (2, True), done.stderr


def test_names_of_files_may_be_any_bytes(streaming: Run, job: list[str], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / os.fsdecode(b"_\xff")).write_text("hidden\n")
    (tmp_path / "in" / "a").write_text("a\n")
    job[1] = str(tmp_path / "in")
    assert streaming(*job).returncode == 0
    (tmp_path / "in" / os.fsdecode(b"\xff")).write_text("read\n")
    assert streaming(*job, "--overwrite").returncode == 0
    assert b"read" in b"".join(output(tmp_path).values())


def test_an_output_is_replaced_only_when_asked(
    streaming: Run, job: list[str], tmp_path: Path
) -> None:
    assert streaming(*job).returncode == 0
    before = output(tmp_path)
    assert streaming(*job).returncode == 5
    assert output(tmp_path) == before
    assert streaming(*job, "--overwrite", "-numReduceTasks", "2").returncode == 0
    assert len(output(tmp_path)) == 2


def test_json_is_the_report(streaming: Run, job: list[str]) -> None:
    done = streaming(*job, "--json", "--no-sync", "--history")
    report = json.loads(done.stdout)
    assert (report["command"], report["status"], report["counters"]["MAP_INPUT_RECORDS"]) == (
        "streaming",
        "succeeded",
        300,
    )


def test_little_memory_gives_the_same_output(streaming: Run, tmp_path: Path) -> None:
    text = "".join(f"{number * 7919 % 100_003:06}\t{number}\n" for number in range(400_000))
    (tmp_path / "in").write_text(text)
    (tmp_path / "spill").mkdir()
    made = []
    for more in ([], ["--memory", "24M", "--workers", "1", "--spill-dir", str(tmp_path / "spill")]):
        words = [
            "-input",
            str(tmp_path / "in"),
            "-output",
            str(tmp_path / "out"),
            "-mapper",
            "cat",
            "-reducer",
            "cat",
            "-combiner",
            "cat",
            "-numReduceTasks",
            "3",
            "--overwrite",
            "--json",
        ]
        done = streaming(*words, *more)
        assert done.returncode == 0, done.stderr
        made.append((output(tmp_path), json.loads(done.stdout)["counters"]["SPILLED_RUNS"]))
    (plenty, few), (little, many) = made
    assert plenty == little
    assert many > few
    lines = b"".join(plenty.values()).splitlines()
    assert sorted(lines) == sorted(text.encode().splitlines())


def test_compressed_runs_give_the_same_output(streaming: Run, tmp_path: Path) -> None:
    text = "".join(f"{number * 7919 % 10_007:06}\t{number}\n" for number in range(100_000))
    (tmp_path / "in").write_text(text)
    job = ["-input", str(tmp_path / "in"), "-output", str(tmp_path / "out"), "-mapper", "cat"]
    job += ["-reducer", "cat", "-numReduceTasks", "3", "--overwrite", "--json"]
    made = []
    cases: list[tuple[list[str], list[str]]] = [
        ([], []),
        ([], ["--compress-runs", "lz4"]),
        (["-D", "mapreduce.map.output.compress=true"], []),
        ([], ["--compress-runs", "zstd", "--runner", "processes", "--memory", "64M"]),
    ]
    for properties, more in cases:
        done = streaming(*properties, *job, *more)
        assert done.returncode == 0, done.stderr
        counters = json.loads(done.stdout)["counters"]
        made.append((output(tmp_path), counters["MAP_OUTPUT_MATERIALIZED_BYTES"]))
    (plain, bytes_of_runs), *packed = made
    assert all(parts == plain for parts, _ in packed)
    assert all(0 < stored < bytes_of_runs * 0.8 for _, stored in packed), made
    lines = b"".join(plain.values()).splitlines()
    assert sorted(lines) == sorted(text.encode().splitlines())


def test_worker_processes_give_the_same_output(
    streaming: Run, job: list[str], tmp_path: Path
) -> None:
    made = []
    for runner in ("threads", "processes"):
        done = streaming(*job, "--runner", runner, "--overwrite", "--json")
        assert done.returncode == 0, done.stderr
        made.append((output(tmp_path), json.loads(done.stdout)["counters"]["MAP_INPUT_RECORDS"]))
    assert made[0] == made[1]
    assert made[0][0]


def test_memory_of_scripts_counts(streaming: Run, yard: Yard, tmp_path: Path) -> None:
    hoard = "import sys, time; sys.stdin.read(); held = b'x' * 150_000_000; time.sleep(2)"
    done = streaming(
        "-input",
        str(yard.inputs / "words.txt"),
        "-output",
        str(tmp_path / "out"),
        "-mapper",
        f'python3 -c "{hoard}"',
        "-reducer",
        "NONE",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["peak_anon_bytes"] > 150_000_000


@pytest.mark.parametrize("scheme", ["hdfs://", "hdfs:"])
def test_hdfs_without_a_name_node_is_the_folder_of_hadoop_fs(
    streaming: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.setenv("GRISTMILL_HOME", str(tmp_path))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    words = ["-input", f"{scheme}/user/me/in", "-output", f"{scheme}/user/me/out"]
    done = streaming(*words, "-mapper", "cat")
    assert done.returncode == 5
    assert (
        f"hdfs:/// is the directory {tmp_path}/hdfs here. What to do: name hdfs://" in done.stderr
    )
    (tmp_path / "hdfs/user/me/in").mkdir(parents=True)
    (tmp_path / "hdfs/user/me/in/a").write_text("b\na\n")
    assert streaming(*words, "-mapper", "cat").returncode == 0
    assert (tmp_path / "hdfs/user/me/out/part-00000").read_text() == "a\t\nb\t\n"


def test_a_location_that_no_store_has_is_no_defect(streaming: Run, tmp_path: Path) -> None:
    done = streaming("-input", "hdfs://:80/x", "-output", str(tmp_path / "out"), "-mapper", "cat")
    assert done.returncode == 2
    assert "defect" not in done.stderr
    assert done.stderr.count("What to do:") == 1
