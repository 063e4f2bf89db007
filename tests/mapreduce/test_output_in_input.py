"""An output directory inside an input directory is refused: the next job would read it."""

import subprocess
from pathlib import Path

import pytest

import gristmill as gm
from gristmill.mapreduce.submit.parents import with_parents

from ..cli.harness import GRISTMILL, clean_environment

WORDS = r"the output directory lies in an input directory, and the next job would read it"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ind").mkdir()
    (tmp_path / "ind" / "a").write_text("a b\n")
    (tmp_path / "link").symlink_to("ind")
    return tmp_path


def wordcount(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [GRISTMILL, "wordcount", *words],
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stderr if done.returncode else ""


@pytest.mark.parametrize(
    ("given", "output"),
    [("ind", "ind/out"), ("ind/", "./ind/x/out"), ("link", "ind/out"), ("ind", "link/out")],
)
def test_it_is_refused_before_anything_is_done(given: str, output: str, folder: Path) -> None:
    assert WORDS in wordcount(folder, given, output)
    assert sorted(path.name for path in (folder / "ind").iterdir()) == ["a"]

    job = gm.Job(
        gm.text(folder / given), map=lambda line: [(line, 1)], output=gm.tsv(folder / output)
    )
    with pytest.raises(ValueError, match=WORDS):
        job.run()
    assert sorted(path.name for path in (folder / "ind").iterdir()) == ["a"]


@pytest.mark.parametrize(
    ("given", "output"),
    [
        ("ind", "ind/_out"),  # such names are passed over
        ("ind/a", "ind/out"),
        ("ind", "index"),
    ],
)
def test_what_the_next_job_does_not_read_is_allowed(given: str, output: str, folder: Path) -> None:
    for _ in range(2):
        assert not wordcount(folder, given, output, "--overwrite")
    job = gm.Job(
        gm.text(folder / given), map=lambda line: [(line, 1)], output=gm.tsv(folder / output)
    )
    for _ in range(2):
        job.run(overwrite=True)


def test_a_pattern_that_matches_the_directory(folder: Path) -> None:
    job = gm.Job(
        gm.text(folder / "in*"), map=lambda line: [(line, 1)], output=gm.tsv(folder / "ind/out")
    )
    with pytest.raises(ValueError, match=WORDS):
        job.run()
    files = gm.Job(
        gm.text(folder / "ind" / "[a]"),
        map=lambda line: [(line, 1)],
        output=gm.tsv(folder / "ind/out"),
    )
    files.run()


def test_directories_of_a_chain_go_if_a_later_job_is_refused(folder: Path) -> None:
    first = gm.Job(gm.items([("a", 1)]), map=lambda pair: [pair], output=gm.kv(folder / "x/y/out"))
    source = gm.text(folder / "ind")
    second = gm.Job(source, map=lambda line: [(line, 1)], output=gm.kv(folder / "ind/z/out"))
    with pytest.raises(ValueError, match=WORDS), with_parents([first, second]):
        pass
    assert not (folder / "x").exists()
    assert not (folder / "ind/z").exists()
