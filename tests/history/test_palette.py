"""The pages of `report` and of `bench report` have the same colours, which stand in one file."""

import re
from importlib.resources import files

import pytest

from gristmill.history.page.filled import palette

WORDS = ("ink", "soft", "bad", "good")
DRAWN = ("c0", "c1", "c2", "c3", "c4", "c5", "waste")


def luminance(colour: str) -> float:
    """That of WCAG 2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("page", ["gristmill.history.page", "gristmill.analysis.bench.page"])
def test_a_style_has_no_colours_of_its_own(page: str) -> None:
    style = (files(page) / "page.css").read_text()
    assert re.findall(r"#[0-9a-fA-F]{6}\b", style) == []
    used = set(re.findall(r"var\(--(\w+)\)", style))
    assert used <= set(re.findall(r"--(\w+):", palette()))


def test_colours_are_seen_on_page_and_card() -> None:
    for theme in palette().split("@media"):
        colours = dict(re.findall(r"--(\w+): (#\w{6})", theme))
        for names, least in ((WORDS, 4.5), (DRAWN, 3.0)):
            for name in names:
                for ground in ("page", "card"):
                    assert contrast(colours[name], colours[ground]) >= least, (name, ground)
