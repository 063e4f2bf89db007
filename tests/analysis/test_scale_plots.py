"""The pictures: all are made, none is blank, each shows what it should, also in grey."""

import io
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from gristmill.analysis.runs import Run
from gristmill.analysis.scale.fitting import fit_runs
from gristmill.analysis.scale.law import Law
from gristmill.analysis.scale.page import page
from gristmill.analysis.scale.plots import TITLES, figures, save
from gristmill.analysis.scale.reasons import explain
from gristmill.analysis.scale.result import Fit

LAW = Law(gamma=1e-3, sigma=-0.0288, kappa=0.000447)


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    generator = np.random.default_rng(3)
    found: list[Run] = []
    for _ in range(5):
        for p in (1, 2, 4, 8, 16, 32, 48, 64, 96):
            seconds = LAW.seconds(p) * (1 + 0.05 * generator.standard_normal())
            phases = {"map": 0.6 * seconds, "reduce": 0.3 * seconds}
            wastes = {"retries": 0.2 * seconds / p * generator.random()}
            found.append(Run(p=p, seconds=seconds, phases=phases, wastes=wastes))
    return found


@pytest.fixture(scope="module")
def fit(runs: list[Run]) -> Fit:
    return fit_runs(runs, bootstraps=50)


@pytest.fixture(scope="module")
def drawn(fit: Fit, runs: list[Run]) -> dict[str, Figure]:
    return figures(fit, runs, explain(runs))


def words_of(figure: Figure) -> str:
    """All text of a picture, as its SVG has it when letters stay letters."""
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg")
    return " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", buffer.getvalue()))


def test_all_are_made_and_none_is_blank(drawn: dict[str, Figure], tmp_path: Path) -> None:
    assert list(drawn) == list(TITLES)
    saved = save(drawn, tmp_path / "pictures")
    assert {path.name for path in saved} == {
        f"{name}.{kind}" for name in TITLES for kind in ("png", "svg")
    }
    for path in saved:
        if path.suffix == ".svg":
            assert "<svg" in path.read_text()
            continue
        grey = imread(path)[..., :3].mean(axis=-1)
        assert 0.01 < float((grey < 0.5).mean()) < 0.5, path  # ink, and paper
        rows = np.flatnonzero((grey < 0.5).any(axis=1))
        columns = np.flatnonzero((grey < 0.5).any(axis=0))
        assert np.ptp(rows) > 0.8 * grey.shape[0], path
        assert np.ptp(columns) > 0.8 * grey.shape[1], path


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("speedup", ("linear", "the law", "95% band", "peak", "crossover at p =", "payback")),
        ("efficiency", ("best at p =", "speedup / p")),
        ("deviation", ("sigma + kappa p = -0.0", "linear speedup")),
        ("residuals", ("off the curve, %", "means")),
        ("times", ("seconds", "± 2 s.e.")),
        ("phases", ("map", "reduce", "wall time")),
        ("causes", ("without wastes", "seconds lost: retries", "r =")),
    ],
)
def test_each_shows_what_it_should(
    name: str, parts: tuple[str, ...], drawn: dict[str, Figure]
) -> None:
    words = words_of(drawn[name])
    for part in parts:
        assert part in words


def test_the_ceiling_is_drawn_where_there_is_one() -> None:
    law = Law(gamma=1e-3, sigma=0.05, kappa=0.0)
    both = [(p, slower) for p in (1, 4, 16, 64) for slower in (1.0, 1.01)]
    runs = [Run(p=p, seconds=law.seconds(p) * slower) for p, slower in both]
    assert "ceiling" in words_of(figures(fit_runs(runs, bootstraps=0), runs)["speedup"])


def test_lines_differ_without_their_colour(drawn: dict[str, Figure]) -> None:
    for name in ("speedup", "efficiency", "deviation", "times"):
        lines = drawn[name].axes[0].get_lines()
        labelled = [
            (line.get_linestyle(), line.get_marker())
            for line in lines
            if not str(line.get_label()).startswith("_")
        ]
        assert len(set(labelled)) == len(labelled), name
    hatches = [patch.get_hatch() for patch in drawn["phases"].axes[0].patches]
    assert len(set(hatches)) == 2


def test_the_same_picture_is_the_same_file(fit: Fit, runs: list[Run], tmp_path: Path) -> None:
    for name in ("one", "other"):
        save({"times": figures(fit, runs)["times"]}, tmp_path / name)
    one, other = (tmp_path / name / "times.svg" for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()


def test_the_page_is_whole_and_needs_no_other_file(fit: Fit, drawn: dict[str, Figure]) -> None:
    text = page(fit, drawn)
    assert text.count("<img ") == len(drawn)
    assert all(source.startswith("data:") for source in re.findall(r'src="([^"]*)"', text))
    assert "https://" not in text
    for part in ("<h1>Scaling: superlinear</h1>", "sigma (contention)", "Checks"):
        assert part in text
