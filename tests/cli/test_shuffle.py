"""`--shuffle` and `--rounds`: every plan makes the same bytes, by the rounds that it names."""

import json
import random
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from gristmill.history import find_job, load
from gristmill.history.shuffle import shuffle_cost
from gristmill.units import show_bytes

from .harness import failure, names, report, run
from .resuming import RUNS, killed_again_and_again, tree

PLANS = {
    "immediate": ("--shuffle", "immediate"),
    "two-level": ("--shuffle", "two-level"),
    "iterative": ("--shuffle", "iterative"),
    "plasma": ("--rounds", "4,5,4"),
    "many": ("--rounds", "2,2,2,2,2"),
    "passes": ("--rounds", "1,1,3"),
}

#: With so much memory one merge takes all runs.
FEW = ("--memory", "40M", "--workers", "2")

#: An own job whose pairs of one key keep their order, which a merge in a wrong order would show.
OWN = """
import gristmill as gm

def words(line):
    for place, word in enumerate(line.split()):
        yield word, (len(line), place)

def reduce(word, values):
    yield word, list(values)[:50]

job = gm.Job(gm.text("lines"), map=words, reduce=reduce, output=gm.tsv("OUT"), parts=9)
"""


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines of many lengths, many of whose words are equal: 8 MB."""
    path = tmp_path_factory.mktemp("lines") / "lines"
    numbers = random.Random(11)
    words = [b"%x" % numbers.getrandbits(numbers.choice((8, 20, 200))) for _ in range(30_000)]
    with path.open("wb") as file:
        for _ in range(150_000):
            file.write(b" ".join(numbers.choices(words, k=numbers.randrange(1, 7))) + b"\n")
    return path


def job_of(kind: str, records: Path, lines: Path, out: Path) -> list[str | Path]:
    """A job of this kind that shuffles by runs into several tasks."""
    of_lines = ["--memory", "26M", "--workers", "2", "-o", out]
    jobs: dict[str, list[str | Path]] = {
        "records": ["terasort", records, out, *RUNS, "--partitions", "80"],
        "processes": ["terasort", records, out, "--memory", "30M", "--runner", "processes"],
        "lines": ["sort", lines, *of_lines],
        "keys": ["sort", lines, "-k2,2", "-s", *of_lines],
        "parts": ["sort", lines, "-r", "--parts", "30", "--compress-runs", "lz4", *of_lines],
        "unique": ["sort", lines, "-u", *of_lines],
        "counts": ["wordcount", lines, out, "--memory", "40M"],
        "distinct": ["distinct", lines, *of_lines],
    }
    return jobs[kind]


def bytes_of(out: Path) -> dict[str, bytes]:
    """What a job made."""
    if out.is_file():
        return {"": out.read_bytes()}
    return {file.name: file.read_bytes() for file in out.iterdir() if file.name != "_SUCCESS"}


@pytest.mark.parametrize(
    "kind", ["records", "processes", "lines", "keys", "parts", "unique", "counts", "distinct"]
)
def test_every_plan_makes_the_same_bytes(
    kind: str, records: Path, lines: Path, tmp_path: Path
) -> None:
    wanted = tmp_path / "wanted"
    run(*job_of(kind, records, lines, wanted))
    for plan, options in PLANS.items():
        out = tmp_path / plan
        run(*job_of(kind, records, lines, out), *options)
        assert bytes_of(out) == bytes_of(wanted), plan
        shutil.rmtree(out) if out.is_dir() else out.unlink()
    assert names(tmp_path) == ["wanted"]


def counters(*job: str | Path) -> dict[str, Any]:
    return dict(report(*job)["counters"])


def test_the_rounds_are_those_that_were_named(records: Path, tmp_path: Path) -> None:
    job = ["terasort", records, tmp_path / "out", "--overwrite", *FEW, "--partitions", "80"]
    rounds = {
        plan: counters(*job, *options)["MERGE_PASSES"]
        for plan, options in PLANS.items()
        if plan != "passes"
    }
    usual = counters(*job)
    assert rounds["immediate"] == usual["MERGE_PASSES"] == 0
    assert (rounds["two-level"], rounds["iterative"], rounds["plasma"]) == (1, 2, 2)
    spilled = counters(*job, *PLANS["two-level"])["SPILLED_RECORDS"]
    assert spilled == 2 * usual["SPILLED_RECORDS"], "a round writes every record once more"


def test_what_would_fit_in_memory_goes_by_rounds_if_they_are_named(
    records: Path, lines: Path, tmp_path: Path
) -> None:
    sort = counters("sort", lines, "-o", tmp_path / "lines", "--shuffle", "two-level")
    assert sort["MERGE_PASSES"] <= 1
    assert (tmp_path / "lines").read_bytes() == b"".join(
        sorted(lines.read_bytes().splitlines(keepends=True))
    )
    tera = counters("terasort", records, tmp_path / "out", "--split-size", "8M", *PLANS["plasma"])
    assert tera["SPILLED_RECORDS"] > 0


def test_functions_of_users_and_scripts(lines: Path, tmp_path: Path) -> None:
    code = OWN.replace('"lines"', repr(str(lines)))
    for name in ("wanted", "two-level", "plasma"):
        (tmp_path / f"{name}.py").write_text(code.replace("OUT", str(tmp_path / name)))
        options = PLANS.get(name, ())
        run("run", tmp_path / f"{name}.py", "--memory", "64M", "--workers", "2", *options)
        assert bytes_of(tmp_path / name) == bytes_of(tmp_path / "wanted"), name
        script = ["streaming", "-input", lines, "-output", tmp_path / f"s-{name}", "-mapper", "cat"]
        script += ["-reducer", "uniq -c", "-numReduceTasks", "6"]
        run(*script, "--memory", "40M", "--workers", "2", *options)
        assert bytes_of(tmp_path / f"s-{name}") == bytes_of(tmp_path / "s-wanted"), name


@pytest.mark.parametrize("plan", ["two-level", "plasma"])
def test_killed_at_any_moment(plan: str, records: Path, home: Path, tmp_path: Path) -> None:
    of_job = ["--memory", "16M", "--workers", "2", "--partitions", "80"]
    wanted, out = tmp_path / "wanted", tmp_path / "out"
    run("terasort", records, wanted, *of_job)
    before = tree(wanted)
    shutil.rmtree(wanted)
    began_s = time.monotonic()
    run("terasort", records, wanted, *of_job, *PLANS[plan])
    took_s = time.monotonic() - began_s
    shutil.rmtree(wanted)
    shutil.rmtree(home, ignore_errors=True)  # of a run that took long
    job: list[str | Path] = ["terasort", records, out, *of_job, *PLANS[plan]]
    killed = killed_again_and_again(job, home, took_s=took_s)
    assert tree(out) == before
    assert names(tmp_path) == ["home", "out"]
    assert killed >= 1, "the job was over before it could be killed"


def test_explain_shows_all_plans_and_the_one_that_is_gone_by(records: Path, tmp_path: Path) -> None:
    job = ["explain", "terasort", records, tmp_path / "out", *FEW, "--partitions", "80"]
    plan = json.loads(run(*job, "--json").stdout)
    ways = {way["plan"]: way for way in plan["shuffles"]}
    assert list(ways) == ["immediate", "two-level", "iterative"]
    assert [way["chosen"] for way in ways.values()] == [True, False, False]
    assert ways["two-level"]["device_bytes"] == 2 * ways["immediate"]["device_bytes"]
    named = json.loads(run(*job, "--json", *PLANS["plasma"]).stdout)
    (chosen,) = [way for way in named["shuffles"] if way["chosen"]]
    assert (chosen["plan"], chosen["fan_outs"]) == ("rounds", [4, 5, 4])
    done = report("terasort", records, tmp_path / "out", *job[4:], *PLANS["plasma"])
    assert done["counters"]["MERGE_PASSES"] == len(chosen["merges"])
    written = 60_000_000 + done["counters"]["FILE_BYTES_WRITTEN"]
    assert abs(chosen["device_bytes"] - (written - 60_000_000) * 2 + 120_000_000) < 0.25 * written
    assert "this one" in run(*job, "--shuffle", "two-level").stdout
    memory = json.loads(run("explain", "terasort", records, tmp_path / "new", "--json").stdout)
    assert memory["shuffles"] == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--shuffle", "fast"), "'fast' is not one of"),
        (("--rounds", "4,x"), "such as 4,5,4"),
        (("--rounds", "0,4"), "from 1 to 100000"),
        (("--rounds", "4,,4"), "such as 4,5,4"),
        (("--rounds", ",".join(["2"] * 17)), "at most 16 numbers"),
        (("--shuffle", "two-level", "--rounds", "4,4"), "two-level was given"),
    ],
)
def test_what_makes_no_sense_is_refused(
    options: tuple[str, ...], said: str, records: Path, tmp_path: Path
) -> None:
    message = failure("terasort", records, tmp_path / "out", *options, status=2)
    assert said in message
    assert names(tmp_path) == []


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("plan", ["immediate", "two-level", "iterative"])
def test_what_was_planned_is_what_was_moved(
    plan: str, records: Path, lines: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own.py"
    own.write_text(OWN.replace('"lines"', repr(str(lines))).replace("OUT", str(tmp_path / "own")))
    jobs: list[list[str | Path]] = [
        ["terasort", records, tmp_path / "out", *RUNS, "--partitions", "80"],
        ["run", own, "--memory", "64M", "--workers", "2"],
    ]
    for job in jobs:
        run(*job, "--shuffle", plan, "--history")
        history = load(find_job("last"))
        (chosen,) = [one for one in history.plan["shuffles"] if one["chosen"]]
        cost = shuffle_cost(history)
        assert cost is not None
        left_by_maps = history.report["counters"]["MAP_OUTPUT_MATERIALIZED_BYTES"]
        often = chosen["device_bytes"] / history.plan["input_bytes"]
        assert 0.75 < cost.device_bytes / left_by_maps / often < 1.25, (job, chosen)
        assert cost.link_bytes == chosen["link_bytes"] == 0
        said = run("jobs", "show", "last").stdout.splitlines()
        at = next(at for at, line in enumerate(said) if line.endswith("this one"))
        assert said[at].split()[0] == plan
        measured = next(line for line in said if line.startswith("  measured "))
        assert show_bytes(cost.device_bytes) in measured
