"""`gristmill explain`: the plan that the job then follows; nothing is written."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gristmill.cli.render.bottlenecks import bottleneck_lines
from gristmill.options import commands
from gristmill.report import JobReport, Phase

from .harness import names, report, run


def test_the_plan_is_what_the_job_does(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sort = ("terasort", data, out, "--workers", "1")
    plan = report("explain", *sort)
    assert names(tmp_path) == []
    done = report(*sort)
    assert (plan["mode"], done["counters"]["SPILLED_RECORDS"]) == ("memory", 0)
    assert (plan["parts"], plan["input_bytes"]) == (done["parts"], done["input_bytes"])
    assert plan["records"] == done["records"]
    assert sum(part["bytes"] for part in plan["reservations"]) > 0


def test_runs_and_passes_are_foretold(much_data: Path, tmp_path: Path) -> None:
    sort = ("terasort", much_data, tmp_path / "out", "--memory", "20M", "--workers", "2")
    plan, done = report("explain", *sort), report(*sort)
    assert plan["mode"] == "runs"
    assert plan["passes"] == done["counters"]["MERGE_PASSES"]
    assert plan["runs"] <= done["counters"]["SPILLED_RUNS"] * 2
    spilled = sum(stage["writes"] for stage in plan["stages"]) - plan["input_bytes"]
    assert spilled == done["counters"]["SPILLED_RECORDS"] * 100


def test_a_page_for_people(data: Path, tmp_path: Path) -> None:
    page = run("explain", "terasort", data, tmp_path / "out", cwd=tmp_path).stdout
    for words in ["terasort in memory", "input", "budget", "tasks", "at most", "disk for"]:
        assert words in page
    text = tmp_path / "text"
    text.write_text("b\na\n")
    page = run("explain", "sort", text, "-o", tmp_path / "o", "--memory", "64M").stdout
    assert "sort in memory" in page
    assert re.search(r"(?m)^  memory, out of the budget of 64\.0 MB +at most$", page)
    assert names(tmp_path) == ["text"]


@pytest.mark.parametrize("output", [(), ("-o", "-"), ("-o", "/dev/null")])
def test_a_stream_is_on_no_disk(output: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "text").write_text("b\na\n" * 100_000)
    sort = ("sort", "text", *output)
    page = run("explain", *sort, cwd=tmp_path).stdout
    assert "disk for" not in page
    assert "No time is predicted: the output is a stream" in page
    plan = report("explain", *sort, "--runner", "processes", cwd=tmp_path)
    assert [disk["purpose"] for disk in plan["disks"]] == ["runs, given back as the output grows"]
    assert plan["floor_s"] is None


def test_each_kind_that_says_so_is_explained(tmp_path: Path) -> None:
    listed = run("explain", "--help").stdout.partition("Commands:")[2].split()
    kinds = [command.name for command in commands().values() if command.explained]
    assert [name for name in kinds if name not in listed] == []
    text = tmp_path / "text"
    text.write_text("b a\n" * 1000)
    job = (text, tmp_path / "counts", "--parts", "3", "--memory", "64M", "--workers", "2")
    plan, page = report("explain", "wordcount", *job), run("explain", "wordcount", *job).stdout
    assert names(tmp_path) == ["text"]
    assert [stage["name"] for stage in plan["stages"]] == ["map", "reduce"]
    assert (plan["parts"], plan["input_bytes"]) == (3, 4000)
    assert {disk["path"] for disk in plan["disks"]} == {str(tmp_path)}
    for words in ("wordcount in runs on disk", "the program itself", "runs, given back", "?"):
        assert words in page
    assert report("wordcount", *job)["parts"] == 3


def test_what_the_process_holds_is_listed(data: Path, tmp_path: Path) -> None:
    for job in (("sort", data, "-o", tmp_path / "o"), ("terasort", data, tmp_path / "o")):
        plan = report("explain", *job)
        held = [one["bytes"] for one in plan["reservations"] if "program" in one["name"]]
        assert 5_000_000 < held[0] < plan["memory_bytes"]


def test_what_cannot_be_explained(tmp_path: Path) -> None:
    says = run("explain", "sort", tmp_path / "missing", status=1).stderr
    assert says.startswith("gristmill explain sort: cannot find the input: no such file")
    assert "--help" in run("explain", "teragen", status=2).stderr
    (tmp_path / "in").write_text("x")
    says = run("explain", "terasort", tmp_path / "in", tmp_path / "out", status=1).stderr
    assert "not a multiple of the record length" in says
    assert run("explain", "sort", "--format", "odd", tmp_path / "in", status=2).stderr


def test_what_held_a_job_back(tmp_path: Path) -> None:
    machine = {"user_s": 0.3, "iowait_s": 2.6, "idle_s": 0.1}
    busy = Phase(name="map", tasks=1, wall_s=3.0, user_s=2.5, sys_s=0.3, own_s=2.8, running_s=3.0)
    idle = Phase(
        name="merge",
        tasks=1,
        wall_s=3.0,
        user_s=0.2,
        sys_s=0.1,
        own_s=0.3,
        running_s=3.0,
        write_bytes=10**9,
        machine=machine,
    )
    made = JobReport(
        job_id="j",
        command="sort",
        status="succeeded",
        wall_s=6.0,
        workers=1,
        memory_bytes=64_000_000,
        phases=(busy, idle),
        counters={
            "DEVICE_BYTES_READ": 1000,
            "FILE_BYTES_READ": 2000,
            "FILE_BYTES_WRITTEN": 1000,
        },
    )
    small = bottleneck_lines(replace(made, memory_bytes=20_000_000), tmp_path)
    floor, *limits = bottleneck_lines(made, tmp_path)
    assert "of the floor" in floor
    assert small == limits  # the try of the device would not stay within the budget
    share = "(the job used {} % of the processors)"
    assert limits == [
        f"map 3.00 s: held back by the processors, with Gristmill's own work {share.format(93)}",
        f"merge 3.00 s: held back by the device: writes {share.format(10)}",
    ]
    assert names(tmp_path) == []
