"""The commands where all goes well: help, options, golden values, reports, output, exit codes."""

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from gristmill import __version__
from gristmill.options import Command, Option, commands

from .harness import (
    GRISTMILL,
    content,
    end,
    failure,
    names,
    parts,
    records_of,
    report,
    run,
    start,
)

OPTIONS = [
    pytest.param(command.name, option, id=f"{command.name}-{option.name}")
    for command in commands().values()
    for option in command.options
]

# Sums of the CRCs of records 0 to 999 (FACTS.md, section 1): computed by the programs of the time.
GOLDEN = [
    ("hadoop", False, "1f9ffe645ec"),
    ("ascii", False, "1f5dfb3631a"),
    ("gensort", False, "1ea6370b955"),
    ("gensort", True, "1e96301166b"),
    ("ascii", True, "1eef17d1cac"),
]

# Of every command's --json (issue 2).
REPORT_FIELDS = {
    *("job_id", "status", "wall_s", "user_s", "sys_s", "peak_anon_bytes", "peak_mapped_bytes"),
    *("input_bytes", "output_bytes", "records", "checksum", "phases", "counters"),
}


def words(text: str) -> str:
    """Text without its line breaks, which may come behind a hyphen."""
    return re.sub(r"(?<=\w)- ", "-", " ".join(text.split()))


# --- help ---


@cache
def help_of(command: str) -> str:
    return run(command, "--help").stdout


@pytest.mark.parametrize("command", commands().values(), ids=lambda command: command.name)
def test_help_of_a_command(command: Command) -> None:
    shown = help_of(command.name)
    assert f"\n  {command.example}\n" in shown
    assert words(command.help) in words(shown)
    assert "--json" in shown


@pytest.mark.parametrize(("command", "option"), OPTIONS)
def test_help_of_an_option(command: str, option: Option) -> None:
    shown = words(help_of(command))
    assert words(option.help) in shown
    if not option.positional:
        assert f"--{option.name.replace('_', '-')}" in shown
        environment = f" [env: {option.environment}]" if option.environment else ""
        default = f"default: {option.default}" if option.default else "must be given"
        assert f"[{default}]{environment}" in shown


def test_help_of_the_demo() -> None:
    shown = run("demo", "--help").stdout
    assert "gristmill demo --rows" in shown


def test_help_of_all() -> None:
    shown = run("--help").stdout
    for name in [*commands(), "demo"]:
        assert re.search(rf"^(?:[A-Z][a-zS ]+|) +(?:\w+ )*{name} .*\S", shown, re.MULTILINE), name


def test_version() -> None:
    assert run("--version").stdout == f"gristmill {__version__}\n"


def test_what_was_built() -> None:
    built = json.loads(run("--version", "--json").stdout)
    assert built["version"] == __version__
    assert built["profile"] in ("release", "debug")
    assert built["commit"] is None or re.fullmatch(r"[0-9a-f]{40}(\+changes)?", built["commit"])
    assert built["features"] == ["az", "gs", "hdfs", "http", "objects", "s3"]
    assert json.loads(run("--json", "--version").stdout) == built


def test_json_alone_is_refused() -> None:
    assert "put --json after the command" in run("--json", "sort", status=2).stderr


def test_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gristmill", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"gristmill {__version__}\n"


# --- wrong command lines ---


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["terasort", "a", "b", "--wings"], "--wings"),
        (["terasort", "a"], "INPUT..."),
        (["terasort"], "missing argument"),
        (["teragen", "10"], "OUTPUT"),
        (["teragen", "10", "a", "b"], "unexpected extra argument"),
        (["terasort", "a", "b", "--workers"], "requires an argument"),
        (["terasort", "a", "b", "--workers", "0"], "'0' is not a whole number"),
        (["terasort", "a", "b", "--workers", "1.5"], "'1.5' is not a whole number"),
        (["terasort", "a", "b", "--workers", "99999"], "from 1 to 1024"),
        (["terasort", "a", "b", "--partitions", "two"], "'two' is not a whole number"),
        (["terasort", "a", "b", "--memory", "8 parsecs"], '"8 parsecs" is not a size'),
        (["teragen", "ten", "a"], '"ten" is not a number of rows'),
        (["teragen", "10", "a", "--start", "1.5k"], '"1.5k" is not a number of rows'),
        (["teragen", "10", "a", "--layout", "wings"], "'wings' is not one of"),
        (["teragen", "999999999t", "a"], "more than a disk holds"),
    ],
)
def test_a_wrong_command_line(arguments: list[str], says: str, tmp_path: Path) -> None:
    assert says in failure(*arguments, status=2, cwd=tmp_path)
    assert names(tmp_path) == []


def test_an_unknown_command() -> None:
    done = run("wings", status=2)
    assert done.stderr == "gristmill: no such command 'wings'. What to do: see gristmill --help.\n"


def test_no_command_at_all() -> None:
    done = run(status=2)
    assert "Usage: gristmill" in done.stderr
    assert done.stdout == ""


def test_a_wrong_option_that_only_the_engine_knows_is_an_object_too(tmp_path: Path) -> None:
    refused = report("teragen", "ten", "out", status=2, cwd=tmp_path)
    assert refused["status"] == "failed"
    assert refused["error"]["kind"] == "bad_option"
    assert refused["error"]["message"].startswith("cannot ")
    assert refused.keys() >= REPORT_FIELDS


# --- options ---


def test_options_stand_anywhere(data: Path, tmp_path: Path) -> None:
    run("terasort", data, tmp_path / "a", "--partitions", "3", "--no-sync")
    run("terasort", "--partitions", "3", data, "--no-sync", tmp_path / "b", "--workers", "1")
    assert names(tmp_path / "a") == names(tmp_path / "b")
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_the_environment_gives_what_the_command_line_does_not(data: Path, tmp_path: Path) -> None:
    done = run("terasort", data, tmp_path / "a", GRISTMILL_WORKERS="3")
    assert "with 3 workers" in done.stdout
    done = run("terasort", data, tmp_path / "b", "--workers", "2", GRISTMILL_WORKERS="3")
    assert "with 2 workers" in done.stdout
    # What belongs to a job rather than to a machine is not taken from there.
    run("terasort", data, tmp_path / "c", GRISTMILL_PARTITIONS="3")
    assert len(parts(tmp_path / "c")) == 1
    assert "GRISTMILL_WORKERS" in failure(
        "terasort", data, tmp_path / "d", status=2, GRISTMILL_WORKERS="two"
    )


# --- teragen ---


@pytest.mark.parametrize(("layout", "skew", "checksum"), GOLDEN)
def test_golden_checksums(layout: str, skew: bool, checksum: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    flags = ["--skew"] if skew else []
    assert report("teragen", "1000", out, "--layout", layout, *flags)["checksum"] == checksum
    assert json.loads((out / "_SUCCESS").read_text())["checksum"] == checksum


def test_golden_start(tmp_path: Path) -> None:
    made = report("teragen", "10", tmp_path / "out", "--layout", "gensort", "--start", "1m")
    assert made["checksum"] == "54582d61d"


def test_the_first_record(tmp_path: Path) -> None:
    run("teragen", "1", tmp_path / "out")
    expected = (
        b"JimGrayRIP\x00\x11" + b"0" * 32 + b"\x88\x99\xaa\xbb"
        b"222200002222000022220000222200002222000000001111\xcc\xdd\xee\xff"
    )
    assert content(tmp_path / "out") == expected


@pytest.mark.parametrize(("rows", "records"), [("0", 0), ("7", 7), ("2k", 2000), ("2K", 2000)])
def test_suffixes(rows: str, records: int, tmp_path: Path) -> None:
    assert report("teragen", rows, tmp_path / "out")["records"] == records
    assert len(content(tmp_path / "out")) == 100 * records


def test_files_tile_the_rows(tmp_path: Path) -> None:
    run("teragen", "1000", tmp_path / "one")
    run("teragen", "1000", tmp_path / "three", "--files", "3", "--workers", "1")
    assert names(tmp_path / "three") == ["_SUCCESS", *(f"part-m-0000{i}" for i in range(3))]
    assert content(tmp_path / "three") == content(tmp_path / "one")


# --- terasort ---


def test_the_output_is_the_input_in_order(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = report("terasort", data, out, "--partitions", "3")
    assert done.keys() >= REPORT_FIELDS
    assert (done["status"], done["records"], done["parts"]) == ("succeeded", 10_000, 3)
    assert re.fullmatch(r"job_\d{14}_\d{20}", done["job_id"])
    assert [phase["name"] for phase in done["phases"]] == ["sample", "map", "reduce", "commit"]
    assert done["counters"]["REDUCE_OUTPUT_RECORDS"] == 10_000
    assert names(out) == ["_SUCCESS", *(f"part-r-0000{i}" for i in range(3))]
    assert records_of(content(out)) == sorted(records_of(content(data)), key=lambda r: r[:10])
    success = json.loads((out / "_SUCCESS").read_text())
    assert (success["records"], success["checksum"]) == (10_000, done["checksum"])
    for part, proof in zip(parts(out), success["parts"], strict=True):
        found = records_of(part.read_bytes())
        assert proof["records"] == len(found)
        assert (proof["first_key"], proof["last_key"]) == (
            found[0][:10].hex(),
            found[-1][:10].hex(),
        )


def test_several_inputs(data: Path, tmp_path: Path) -> None:
    one, two = parts(data)
    run("terasort", two, one, tmp_path / "out")
    expected = sorted(records_of(content(data)), key=lambda record: record[:10])
    assert records_of(content(tmp_path / "out")) == expected


def test_overwrite(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("terasort", data, out, "--partitions", "5")
    run("terasort", data, out, "--partitions", "2", "--overwrite")
    assert names(out) == ["_SUCCESS", "part-r-00000", "part-r-00001"]
    assert names(tmp_path) == ["out"]


def test_summaries(tmp_path: Path) -> None:
    made = run("teragen", "10k", tmp_path / "in")
    assert made.stdout.startswith("10,000 records, 1.00 MB, in 1 file of ")
    assert "checksum 139abefd74b2" in made.stdout
    sorted_ = run("terasort", tmp_path / "in", tmp_path / "out")
    assert "in order, checksum of input and output 139abefd74b2, 0 duplicate keys" in sorted_.stdout
    assert re.search(r"\d B?/s with \d+ worker|MB/s with \d+ worker", sorted_.stdout)
    assert "peak memory" in sorted_.stdout
    for done in (made, sorted_):
        assert done.stdout.count("\n") <= 5
        assert done.stderr == ""  # no progress bar in a pipe


# --- teravalidate ---


def test_validate_what_is_in_order(data: Path, tmp_path: Path) -> None:
    checksum = report("terasort", data, tmp_path / "out")["checksum"]
    done = run("teravalidate", tmp_path / "out", "--against", data)
    assert done.stdout == f"checksum\t{checksum}\n"
    verdict, took = done.stderr.splitlines()
    assert verdict == f"in order: 10,000 records, 0 duplicate keys, checksum {checksum}"
    assert re.match(r"[\d.]+ s: [\d.]+ [kMG]B/s with \d+ workers?, ", took)
    run("teravalidate", tmp_path / "out", "--against", checksum)


def test_validate_what_is_not_in_order(data: Path) -> None:
    done = run("teravalidate", data, status=1)
    assert re.match(r"checksum\t\w+\nerror\tmisorder in part-m-00000 between ", done.stdout)
    assert re.search(r"cannot call .*file .*part-m-00000, record \d+, offset \d+", done.stderr)
    found = report("teravalidate", data, status=1)
    assert (found["status"], found["error"]["kind"]) == ("failed", "disorder")
    assert found["misorders"] > 0


def test_validate_against_something_else(data: Path, tmp_path: Path) -> None:
    run("terasort", data, tmp_path / "out")
    says = failure("teravalidate", tmp_path / "out", "--against", "123abc")
    assert "123abc" in says
    says = failure("teravalidate", tmp_path / "out", "--against", parts(data)[0])
    assert "permutation" in says
    says = failure("teravalidate", tmp_path / "out", "--against", "no/such")
    assert "no/such" in says


# --- stdout that is gone ---


def test_a_reader_that_goes_away_changes_nothing(data: Path, tmp_path: Path) -> None:
    for arguments, status in [
        (["terasort", data, tmp_path / "out"], 0),
        (["terasort", data, tmp_path / "json", "--json"], 0),
        (["teravalidate", data], 1),
        (["terasort", "--help"], 0),
    ]:
        process = start(*arguments)
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        done = end(process)
        assert done.status == status, done
        assert "pipe" not in done.stderr.lower()
    assert (tmp_path / "out" / "_SUCCESS").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_stdout_is_said(data: Path, tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = end(start("terasort", data, tmp_path / "out", stdout=full))
    assert done.status == 1
    assert done.stderr == "gristmill: cannot write what there is to say: no space left on device.\n"


def test_no_stdout_at_all(data: Path, tmp_path: Path) -> None:
    command = f"exec {GRISTMILL} terasort {data} {tmp_path / 'out'} >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 0


@pytest.mark.parametrize("closed", ["2>&-", "<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("by", [GRISTMILL, sys.executable])
def test_user_code_runs_with_streams_that_are_closed(tmp_path: Path, by: str, closed: str) -> None:
    """A pipe that took the number of a standard stream was lost to the worker."""
    job = tmp_path / "job.py"
    job.write_text(
        "import gristmill as gm\n"
        "job = gm.Job(gm.items([('a', 1), ('a', 2)]), reduce=gm.sum(), output=gm.tsv('out'))\n"
        "if __name__ == '__main__':\n"
        "    job.run(no_sync=True)\n"
    )
    words = f"{by} run" if by == GRISTMILL else by
    command = f"exec {words} {job} {closed}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, check=False, stdout=-1)
    assert done.returncode == 0
    assert (tmp_path / "out/part-r-00000.tsv").read_text() == "a\t3\n"


def test_a_closed_stream_is_told_as_such(data: Path) -> None:
    for words, what in ((f"{data} >&-", "write the output"), ("- <&-", "read the input")):
        command = ["sh", "-c", f"exec {GRISTMILL} sort {words}"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 1
        assert f"cannot {what}: bad file descriptor" in done.stderr
