"""tools/figures.py: what it counts of a repository, and what it leaves out."""

import doctest
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import figures

TOP = Path(__file__).parents[1]

FILES = {
    "crates/engine/src/lib.rs": "mod a;\n\npub struct Place;\n",
    "crates/engine/src/a.rs": "// why\nenum Place {}\n#[cfg(test)]\nmod tests { struct Once; }\n",
    "crates/grep/src/lib.rs": "trait Place {}\nstruct Once;\n",
    "crates/grep/src/tests/all.rs": "struct Once;\n",
    "crates/grep/tests/it.rs": "struct Once;\n",
    "python/gristmill/__init__.py": "",
    "python/gristmill/units.py": "import gristmill\n",
    "python/more/__init__.py": '"""More."""\nX = 1\n',
    "python/more/page.js": "let x;\n",
    "tests/test_x.py": "x = 1\n",
    "Cargo.lock": "a\nb\n",
    "requirements/build.txt": "a\n",
    "docs/a.svg": "<svg>\n",
    "tests/data.bin": "\0\n\n",
}


@pytest.fixture
def found(tmp_path: Path) -> figures.Figures:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return figures.figures_of(tmp_path, FILES)


def test_every_crate_and_every_package_counts(found: figures.Figures) -> None:
    assert found.lines["rs"] == figures.Lines(files=3, code=5, comments=1)
    assert found.lines["py"] == figures.Lines(files=3, code=2, comments=1)
    assert found.lines["all"].code == 8


def test_locks_pictures_and_what_is_no_text_have_no_lines(found: figures.Figures) -> None:
    left_out = ("Cargo.lock", "requirements/build.txt", "docs/a.svg", "tests/data.bin")
    counted = [text for name, text in FILES.items() if name not in left_out]
    assert found.repository == sum(text.count("\n") for text in counted)


def test_a_name_that_stands_again_is_told(found: figures.Figures) -> None:
    assert found.names == {"Place": 3}


# Names that stand twice all the same, each with the reason.
KNOWN_AGAIN = {
    "Error": "the program's, and that of the crate of GNU sort's keys, which uses no other crate",
}


def test_a_type_has_a_name_of_its_own() -> None:
    """Whoever searches for a type finds one: what would be called alike has a longer name."""
    sources = (path.relative_to(TOP) for path in TOP.glob("crates/*/src/**/*.rs"))
    again = figures.names_again(TOP, filter(figures.is_program, sources))
    assert sorted(again) == sorted(KNOWN_AGAIN)


def test_folders_are_told_by_their_files(found: figures.Figures) -> None:
    assert list(found.folders.items())[:2] == [
        ("crates/engine/src", 2),
        ("python/gristmill", 2),
    ]
    assert found.folders["crates/grep/src"] == 1


def test_an_import_from_the_root_goes_up(found: figures.Figures) -> None:
    assert found.up == [["python/gristmill/units.py", "python/gristmill/__init__.py"]]
    assert found.circles == []


def test_its_examples_are_right() -> None:
    failed, tried = doctest.testmod(figures)
    assert (failed, tried) == (0, 1)


def test_the_files_of_the_repository_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(_top: Path, files: Iterable[str]) -> list[str]:
        return list(files)

    monkeypatch.setattr(figures, "figures_of", seen)
    files: Any = figures.now()
    assert {"tools/figures.py", "crates/engine/src/lib.rs", "Cargo.lock"} <= set(files)
    assert not any(name.startswith(("target/", ".venv/")) for name in files)
