"""The limit of open files (`ulimit -n`) is raised; beyond it merges go in passes: same bytes."""

import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from .harness import content, failure, run

FILES = 400


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small files: each is a map task, and a run."""
    folder = tmp_path_factory.mktemp("many") / "in"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"f{number:04}").write_text(f"k{number} {number % 7}\nk{number // 2} x\n")
    return folder


def limited(soft: int, hard: int | None = None) -> Callable[[], None]:
    """What sets the limit in a child."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard or soft))

    return limit


def streamed(many: Path, out: Path, *more: str, preexec: Callable[[], None] | None = None) -> bytes:
    command = ["streaming", "-input", many, "-output", out, "-mapper", "cat", "-reducer", "cat"]
    run(*command, "-numReduceTasks", "16", *more, preexec=preexec)
    return content(out)


@pytest.mark.parametrize(
    ("limit", "workers"),
    [
        pytest.param(limited(64), "2", id="64"),
        pytest.param(limited(64), "16", id="64, and 16 workers"),
        pytest.param(limited(256), "16", id="256, and 16 workers"),
        pytest.param(limited(64, 4096), "16", id="64, raised"),
    ],
)
def test_streaming(limit: Callable[[], None], workers: str, many: Path, tmp_path: Path) -> None:
    plain = streamed(many, tmp_path / "plain")
    assert plain.count(b"\n") == 2 * FILES
    few = streamed(many, tmp_path / "few", "--workers", workers, preexec=limit)
    assert few == plain


@pytest.mark.parametrize("workers", ["2", "16"])
def test_a_job_of_python_functions(workers: str, tmp_path: Path) -> None:
    def job(name: str) -> Path:
        path = tmp_path / f"{name}.py"
        path.write_text(
            "import gristmill as gm\n"
            "job = gm.Job(gm.items(list(range(300))), reduce=gm.sum(), split_max=1, parts=16,"
            " map=lambda n: [(n // 3 * 10 + i, 1) for i in range(20)],"
            f" output=gm.tsv({str(tmp_path / name)!r}))\n"
        )
        return path

    run("run", job("plain"), "--workers", "2")
    run("run", job("few"), "--workers", workers, preexec=limited(64))
    assert content(tmp_path / "few") == content(tmp_path / "plain")


@pytest.mark.parametrize("runner", ["threads", "processes"])
def test_sorts_and_counts(runner: str, many: Path, data: Path, tmp_path: Path) -> None:
    limit = limited(64)
    run("wordcount", many, tmp_path / "words", "--workers", "16", preexec=limit)
    counts = dict(line.split(b"\t") for line in content(tmp_path / "words").splitlines())
    assert sum(map(int, counts.values())) == 4 * FILES
    small = ["--memory", "40M", "--split-size", "110K", "--runner", runner]
    run("terasort", data, tmp_path / "sorted", "--workers", "2", *small, preexec=limit)
    run("teravalidate", tmp_path / "sorted", preexec=limit)


@pytest.mark.parametrize("memory", ["40M", "1G"])
def test_many_more_parts_than_files_may_be_open(memory: str, data: Path, tmp_path: Path) -> None:
    """Most parts are empty, or have a few records."""
    job = ["terasort", data, "--partitions", "3000", "--memory", memory, "--workers", "2"]
    job += ["--split-size", "110K"]
    run(*job[:2], tmp_path / "few", *job[2:], preexec=limited(64))
    run(*job[:2], tmp_path / "plain", *job[2:], "--no-sync")
    assert len(list((tmp_path / "few").glob("part-*"))) == 3000
    assert content(tmp_path / "few") == content(tmp_path / "plain")
    run("teravalidate", tmp_path / "few", preexec=limited(64))


def test_scripts_have_the_limit_that_was_given(tmp_path: Path) -> None:
    one = tmp_path / "one"
    one.write_text("x\n")
    command = ["streaming", "-input", one, "-output", tmp_path / "out", "-reducer", "NONE"]
    limit = limited(100, 5000)
    shell = "sh -c 'ulimit -Sn; ulimit -Hn; cat >/dev/null'"
    run(*command, "-mapper", shell, preexec=limit)
    assert set(content(tmp_path / "out").split()) == {b"100", b"5000"}


def test_fewer_workers_are_named(many: Path, tmp_path: Path) -> None:
    done = run("wordcount", many, tmp_path / "out", "--workers", "16", preexec=limited(64))
    assert "2 of 16 workers are used" in done.stdout + done.stderr
    assert "ulimit -n" in done.stdout + done.stderr


def test_not_even_two_runs(many: Path, tmp_path: Path) -> None:
    says = failure("wordcount", many, tmp_path / "out", preexec=limited(39))
    assert "the process may have 39 files open" in says
    assert "raise the limit: `ulimit -n 40` or more" in says
    run("wordcount", many, tmp_path / "out", preexec=limited(40))
