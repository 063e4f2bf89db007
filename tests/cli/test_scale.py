"""`gristmill scale`: fits of files, runs of jobs, and what is said where there is no law."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from gristmill.cli.scale.shared import Wanted, check_targets
from gristmill.installing import install_extra

from .harness import end, names, report, run, start

RUNS = """p,seconds
1,100.0
1,101.4
2,52.3
2,51.9
4,28.1
4,28.4
8,16.3
8,16.1
16,10.4
16,10.2
32,7.9
32,7.8
"""


def failure(*words: str | Path, **environment: str) -> str:
    """Run what must fail; returns its paragraph."""
    said = run("scale", *words, status=1, **environment).stderr.splitlines()[-1]
    command = f"gristmill scale {words[0]}: "
    assert said.startswith(command)
    return said.removeprefix(command)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text(RUNS)
    return path


# --- fit ---


def test_json_has_the_figures_and_the_verdict(runs: Path) -> None:
    found = report("scale", "fit", runs)
    for name in ("sigma", "kappa", "gamma", "peak_p", "peak_speedup"):
        figure = found[name]
        assert figure["low"] < figure["value"] < figure["high"]
        assert figure["stderr"] > 0
    assert found["crossover_p"] == dict.fromkeys(("value", "stderr", "low", "high")) | {
        "bootstrap": [None, None]
    }
    assert found["verdict"] == "coherency"
    assert found["runs"] == 12
    assert found["scaling"] == "strong"


def test_text(runs: Path) -> None:
    shown = run("scale", "fit", runs, "--bootstraps", "0").stdout
    assert shown.startswith("12 runs, p = 1 to 32, seconds, strong scaling; ")
    for part in ("\nsigma (contention)", "\npeak p", "\nVerdict: coherency\n", "\nChecks\n"):
        assert part in shown


def test_several_files_are_one(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("p,seconds\n64,8.0\n64,8.1\n")
    found = report("scale", "fit", runs, tmp_path / "more.csv", "--level", "0.9")
    assert (found["runs"], found["level"]) == (14, 0.9)


def test_weak_scaling(tmp_path: Path) -> None:
    rows = "".join(f"{p},{10 * (1 + 0.02 * (p - 1))}\n" for p in (1, 2, 4, 8, 16))
    (tmp_path / "seconds.csv").write_text(f"p,seconds\n{rows}")
    found = report("scale", "fit", "--weak", tmp_path / "seconds.csv")
    assert found["scaling"] == "weak"
    assert found["sigma"]["value"] == pytest.approx(0.02)
    rows = "".join(f"{p},{p / 10 / (1 + 0.02 * (p - 1))}\n" for p in (1, 2, 4, 8, 16))
    (tmp_path / "rate.csv").write_text(f"p,throughput\n{rows}")
    again = report("scale", "fit", "--weak", tmp_path / "rate.csv")
    assert again["sigma"]["value"] == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("p,seconds\n1,5\n", "there is one run, with p = 1"),
        ("p,seconds\n2,5\n2,6\n2,7\n2,7\n", "all 4 runs have the same p = 2"),
        ("p,seconds\n1,5\n2,-6\n", "seconds is '-6', not a number above 0"),
        ("p,seconds\n1,5\n2,six\n", "seconds is 'six', not a number above 0"),
        ("", "the file is empty"),
    ],
)
def test_files_that_carry_no_law(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text(text)
    assert says in failure("fit", tmp_path / "runs.csv")


def test_a_refusal_is_json_too(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("p,seconds\n1,5\n")
    found = report("scale", "fit", tmp_path / "runs.csv", status=1)
    assert found["verdict"] == "refused"
    assert "one run" in found["reason"]
    assert found["sigma"] is None


def test_files_that_are_not_there_or_do_not_fit_together(runs: Path, tmp_path: Path) -> None:
    assert "no such file or directory" in failure("fit", tmp_path / "no.csv")
    assert "it has no events.jsonl" in failure("fit", tmp_path)
    (tmp_path / "rate.csv").write_text("p,throughput\n1,5\n")
    assert "others throughput" in failure("fit", runs, tmp_path / "rate.csv")


def test_a_name_that_is_empty(tmp_path: Path) -> None:
    assert "a FILE or JOB is empty" in run("scale", "fit", "", status=2, cwd=tmp_path).stderr


def test_without_the_extra_it_says_what_is_missing(runs: Path, tmp_path: Path) -> None:
    """A module that is `None` cannot be found, as in an environment without scipy."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['scipy'] = None\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    says = failure("fit", runs, PYTHONPATH=path)
    assert "scipy is not installed" in says
    assert install_extra("analysis") in says


# --- run ---


def lines_of(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]


def test_two_values_carry_no_law_and_the_runs_are_done(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    words = ("scale", "run", "--rows", "2k", "--dir", folder, "--workers", "1,2")
    done = run(*words, "--repeat", "2")
    assert "there are 2 different p (1, 2)" in " ".join(done.stdout.split())
    assert "\np  runs  seconds" in done.stdout
    assert "the runs are done" in done.stderr
    header, *found = lines_of(folder)
    assert header["command"] == ["terasort", "{data}", "{out}"]
    assert [one["round"] for one in found] == [0, 0, 1, 1, 2, 2]
    assert {one["p"] for one in found} == {1, 2}
    assert all("map" in one["phases"] for one in found)
    assert names(folder) == ["runs.jsonl"]


def test_runs_are_continued_by_more_rounds_and_values(tmp_path: Path) -> None:
    words = ("scale", "run", "--rows", "1k", "--dir", tmp_path / "kept", "--warm-up", "0")
    run(*words, "--workers", "1,2", "--repeat", "1")
    before = lines_of(tmp_path / "kept")
    again = run(*words, "--workers", "1,2,3", "--repeat", "2", "--json")
    assert "2 runs of 6 are in" in again.stderr
    after = lines_of(tmp_path / "kept")
    assert after[: len(before)] == before
    assert sorted((one["round"], one["p"]) for one in after[1:]) == [
        *((1, 1), (1, 2), (1, 3)),
        *((2, 1), (2, 2), (2, 3)),
    ]
    found = json.loads(again.stdout)
    assert found["runs"] == 6
    assert found["verdict"] in ("linear", "contention", "coherency", "superlinear", "no law")
    run("scale", "fit", tmp_path / "kept/runs.jsonl")
    other = failure("run", "--workers", "1", "--rows", "2k", "--dir", tmp_path / "kept")
    assert "it is of another measurement (rows '1k')" in other


def test_places_for_pictures_are_checked_before_anything_runs(tmp_path: Path) -> None:
    words = ("run", "--dir", tmp_path / "kept", "--workers", "1,2")
    said = failure(*words, "--html", tmp_path / "none/page.html", "--", "true", "{p}")
    assert said.startswith("cannot write what --html asks for: there is no such directory")
    assert not (tmp_path / "kept").exists()


def test_places_for_pictures_that_are_none(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for wanted, says in (
        (Wanted(html=tmp_path / "none/page.html"), "there is no such directory"),
        (Wanted(html=tmp_path / "folder"), "it is a directory"),
        (Wanted(html=runs / "page.html"), "it is not a directory"),
        (Wanted(plots=runs / "pictures"), "it is not a directory"),
    ):
        with pytest.raises(ValueError, match=f"asks for: {says} .*What to do: name a "):
            check_targets(wanted)
    check_targets(Wanted(html=tmp_path / "page.html", plots=tmp_path / "new/pictures"))
    check_targets(Wanted())


def test_a_job_file_and_a_command(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("b\na\nb\n")
    (tmp_path / "job.py").write_text(
        "import gristmill as gm\n"
        "def words(line):\n    yield line, 1\n"
        f"text = gm.text({str(tmp_path / 'in.txt')!r})\n"
        "job = gm.Job(text, map=words, reduce=gm.sum(), output=gm.tsv('counts/'))\n"
    )
    folder = tmp_path / "kept"
    more = ("--workers", "1,2", "--repeat", "1", "--warm-up", "0")
    job = ("--", str(tmp_path / "job.py"), "--output", "{out}")
    run("scale", "run", "--dir", folder, *more, *job)
    assert len(lines_of(folder)) == 3
    command = ("--", "wordcount", str(tmp_path / "in.txt"), "{out}")
    run("scale", "run", "--dir", tmp_path / "other", *more, *command)
    assert len(lines_of(tmp_path / "other")) == 3


def test_the_example_of_the_help_works(tmp_path: Path) -> None:
    shown = run("scale", "run", "--help").stdout.split("Example:\n")[1].splitlines()[0]
    _, *options = shown.split()
    at = options.index("--")
    (tmp_path / "books").mkdir()
    (tmp_path / "books/one.txt").write_text("b a b\n")
    less = ("--workers", "1", "--repeat", "1", "--warm-up", "0")
    run(*options[:at], *less, *options[at:], cwd=tmp_path)
    assert len(lines_of(tmp_path / "scale-runs")) == 2


def test_another_program_is_timed_from_outside(tmp_path: Path) -> None:
    program = (sys.executable, "-c", "import sys; print(int(sys.argv[1]))", "{p}")
    words = ("--workers", "1,2", "--repeat", "1", "--warm-up", "0", "--dir", tmp_path / "kept")
    run("scale", "run", *words, "--", *program)
    assert all(one["seconds"] > 0 for one in lines_of(tmp_path / "kept")[1:])


def test_a_run_that_fails_ends_it_and_keeps_the_others(tmp_path: Path) -> None:
    code = "import sys; sys.exit('too many' if sys.argv[1] == '3' else 0)"
    words = ("--workers", "1,2,3", "--repeat", "1", "--warm-up", "0", "--dir", tmp_path / "kept")
    done = run("scale", "run", *words, "--", sys.executable, "-c", code, "{p}", status=1)
    assert "the run with p = 3 failed: exit code 1: too many" in done.stderr
    assert all(one["p"] != 3 for one in lines_of(tmp_path / "kept")[1:])


@pytest.mark.parametrize("command", [(), ("--", "true", "{p}")])
def test_files_that_the_folder_has_stay(command: tuple[str, ...], tmp_path: Path) -> None:
    mine = [tmp_path / name for name in ("data/raw.txt", "data.csv", "data-1", "out/thesis.txt")]
    for path in [*mine, tmp_path / "database.sqlite"]:
        path.parent.mkdir(exist_ok=True)
        path.write_text("years of work")
    words = ("--workers", "1,2", "--repeat", "1", "--warm-up", "0", "--rows", "1k")
    run("scale", "run", *words, "--dir", tmp_path, *command)
    assert all(path.read_text() == "years of work" for path in mine)
    assert names(tmp_path) == ["data", "data-1", "data.csv", "database.sqlite", "out", "runs.jsonl"]


def test_a_program_writes_below_the_folder_and_that_is_removed(tmp_path: Path) -> None:
    code = "import sys; open(sys.argv[2], 'x').write(sys.argv[1])"
    words = ("--workers", "1,2", "--repeat", "1", "--warm-up", "0", "--dir", tmp_path)
    run("scale", "run", *words, "--", sys.executable, "-c", code, "{p}", "{out}")
    assert names(tmp_path) == ["runs.jsonl"]


def test_kept_data_are_used_again(tmp_path: Path) -> None:
    words = ("scale", "run", "--rows", "1k", "--dir", tmp_path, "--warm-up", "0", "--repeat", "1")
    run(*words, "--workers", "1", "--keep-data")
    assert names(tmp_path) == ["gristmill-scale", "runs.jsonl"]
    assert names(tmp_path / "gristmill-scale") == ["data-1k"]
    (tmp_path / "runs.jsonl").unlink()
    run(*words, "--workers", "1", "--keep-data", "--rows", "2k")
    assert names(tmp_path / "gristmill-scale") == ["data-1k", "data-2k"]
    run(*words, "--workers", "1,2", "--rows", "2k")
    assert names(tmp_path) == ["runs.jsonl"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "give either --workers or --nodes"),
        (("--workers", "1,2", "--nodes", "1,2"), "give either --workers or --nodes"),
        (("--workers", "1,two"), "is not a list of whole numbers above 0"),
        (("--workers", f"1,{'9' * 5000}"), "is not a list of whole numbers above 0"),
        (("--workers", "0,1"), "is not a list of whole numbers above 0"),
        (("--workers", "1,1"), "has a number twice"),
        (("--workers", "1,2", "--", "cat", "x"), "no word of it has {p}"),
        (("--workers", "1,2", "--", "grep", "be", "x"), "'grep' is not a job of gristmill (sort, "),
        (("--workers", "1,2", "--weak", "--", "sort", "x"), "--weak makes the data"),
    ],
)
def test_command_lines_that_are_wrong(words: tuple[str, ...], says: str, tmp_path: Path) -> None:
    done = run("scale", "run", *words, status=2, cwd=tmp_path)
    assert says in done.stderr
    assert names(tmp_path) == []


def test_rows_that_are_none(tmp_path: Path) -> None:
    words = ("--workers", "1,2", "--weak", "--rows", "few", "--dir", tmp_path / "kept")
    assert "'few' is not a number of rows" in failure("run", *words)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_keeps_the_runs_and_the_data(signum: int, tmp_path: Path) -> None:
    code = "import sys, time; open(sys.argv[1], 'x'); time.sleep(600)"
    process = start(
        *("scale", "run", "--workers", "1,2", "--repeat", "1", "--warm-up", "0", "--rows", "1k"),
        *("--dir", tmp_path, "--", sys.executable, "-c", code, "{out}", "{p}", "{data}"),
    )
    deadline_s = time.monotonic() + 90
    made = tmp_path / "gristmill-scale"
    while not (made / "out").exists() and time.monotonic() < deadline_s:
        time.sleep(0.05)
    process.send_signal(signum)
    done = end(process)
    assert done.status == 128 + signum
    assert "the same command continues them" in done.stderr
    assert f"the generated data stay in {made} for the next time" in done.stderr
    assert lines_of(tmp_path)[0]["format"] == 1
    assert names(made) == ["data-1k"]


def test_after_a_failure_the_data_stay_and_the_output_does_not(tmp_path: Path) -> None:
    code = "import sys; open(sys.argv[1], 'x'); sys.exit(3)"
    words = ("--workers", "1,2", "--repeat", "1", "--rows", "1k", "--dir", tmp_path, "--")
    program = (sys.executable, "-c", code, "{out}", "{p}")
    done = run("scale", "run", *words, *program, "{data}", status=1)
    made = tmp_path / "gristmill-scale"
    assert f"the generated data stay in {made} for the next time" in done.stderr
    assert names(made) == ["data-1k"]
    words = (*words[:-2], tmp_path / "other", "--")
    done = run("scale", "run", *words, *program, status=1)
    assert "generated data" not in done.stderr
    assert names(tmp_path / "other") == ["runs.jsonl"]


# --- pictures ---


def test_pictures_and_a_page(runs: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    found = report("scale", "fit", runs, "--plots", tmp_path / "pictures", "--html", page)
    assert found["verdict"] == "coherency"
    shown = ("deviation", "efficiency", "residuals", "speedup", "times")
    expected = sorted(f"{name}.{kind}" for name in shown for kind in ("png", "svg"))
    assert names(tmp_path / "pictures") == expected
    assert page.read_text().startswith("<!doctype html>")


def test_matplotlib_says_nothing_of_its_caches(runs: Path, tmp_path: Path) -> None:
    nowhere = str(runs / "folder")  # below a file: matplotlib then takes a temporary folder
    page = tmp_path / "page.html"
    done = run("scale", "fit", runs, "--html", page, "--bootstraps", "0", MPLCONFIGDIR=nowhere)
    assert done.stderr == ""
    assert page.exists()


def test_wastes_give_a_cause(tmp_path: Path) -> None:
    rows = [
        f"{p},{100 / p + lost},{lost}"
        for at in (0, 1, 2)
        for p, lost in ((1, 60 + at), (2, 9 - at), (4, 0), (8, 0), (16, 0))
    ]
    (tmp_path / "runs.csv").write_text("\n".join(["p,seconds,waste:retries", *rows]))
    found = report("scale", "fit", tmp_path / "runs.csv")
    assert found["cause"]["cause"] == "retries"
    assert found["cause"]["outcome"] == "explained"


# --- histories ---


def test_jobs_are_runs_too(tmp_path: Path) -> None:
    home = {"GRISTMILL_HOME": str(tmp_path / "home")}
    run("teragen", "1k", tmp_path / "data", **home)
    for workers in ("1", "2", "3", "1"):
        job = ("terasort", tmp_path / "data", tmp_path / "out", "--overwrite", "--history")
        run(*job, "--workers", workers, **home)
    shown = run("scale", "fit", "--command", "terasort", "--json", **home)
    found = json.loads(shown.stdout)
    assert [(point["p"], point["runs"]) for point in found["points"]] == [(1, 2), (2, 1), (3, 1)]
    assert {phase["name"] for phase in found["phases"]} >= {"map", "reduce", "commit"}
    assert 0 < found["points"][0]["mean"] < 60  # seconds of a run, not of a byte
    assert "one run, with p = 1" in failure("fit", "last", **home)
    assert "no job 'other'" in failure("fit", "other", **home)
