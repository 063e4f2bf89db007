"""The pictures of the documentation: real jobs, their pages, a browser.

    a job ──▶ history ──▶ page ──▶ picture       `make pictures` writes docs/*.png; jobs are bigger

Without that the jobs are small, the pictures go to the tests' folder, and are looked at: what is
drawn has many colours, and reaches to where the page should have something.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from tests.cli.harness import run

from .harness import Browser

DOCS = Path(__file__).parent.parent.parent / "docs"
UPDATE = bool(os.environ.get("UPDATE_PICTURES"))


@dataclass(frozen=True)
class Desk:
    """A folder with records in it, and a home for histories."""

    folder: Path

    def run(self, *words: str | Path) -> None:
        run(*words, cwd=self.folder, GRISTMILL_HOME=str(self.folder / "home"))

    def sort(self, *words: str | Path) -> None:
        memory = "400M" if UPDATE else "20M"
        self.run("terasort", "in", "out", "--memory", memory, "--history", "--overwrite", *words)


def one_job(desk: Desk, page: Path) -> None:
    desk.sort()
    desk.run("report", "last", "-o", page)


def two_jobs(desk: Desk, page: Path) -> None:
    desk.sort("--workers", "1")
    desk.sort("--workers", "2")
    ids = sorted(folder.name for folder in (desk.folder / "home" / "jobs").iterdir())
    desk.run("report", *ids[-2:], "-o", page)


def bench(desk: Desk, page: Path) -> None:
    rows = "2m" if UPDATE else "20k"
    often = ["--repeat", "5", "--warm-up", "0", "--vary", "workers=1,2"]
    desk.run("bench", "run", "sort", "--rows", rows, *often, "-o", "results")
    desk.run("bench", "report", "results", "-o", page)


@dataclass(frozen=True)
class Picture:
    make: Callable[[Desk, Path], None]
    height: int
    """Of 1,000 pixels in width."""


PICTURES = {
    "report.png": Picture(one_job, 1720),
    "guide/two-jobs.png": Picture(two_jobs, 1400),
    "guide/bench.png": Picture(bench, 1400),
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("desk")
    if UPDATE:  # the pages say where the job ran
        folder = Path(tempfile.gettempdir(), "data")
        folder.mkdir()
    made = Desk(folder)
    made.run("teragen", "10m" if UPDATE else "100k", "in")
    yield made
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_a_page(name: str, desk: Desk, browser: Browser, tmp_path: Path) -> None:
    picture = PICTURES[name]
    picture.make(desk, tmp_path / "page.html")
    png = DOCS / name if UPDATE else tmp_path / "page.png"
    browser.picture(tmp_path / "page.html", png, width=1000, height=picture.height)
    pixels = imread(png)[:, :, :3]
    assert pixels.shape == (picture.height, 1000, 3)
    quarters = np.array_split(pixels, 4)
    for number, quarter in enumerate(quarters):
        colours = np.unique(quarter.reshape(-1, 3), axis=0)
        assert len(colours) > 20, f"quarter {number + 1} of the page has hardly anything in it"


def test_every_picture_of_the_docs_is_made_here() -> None:
    """But those of docs/scaling, which benchmarks/scaling.py draws."""
    there = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.png")}
    assert {name for name in there if not name.startswith("scaling/")} == set(PICTURES)
