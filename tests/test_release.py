"""What a release carries: the licences of all that is linked; packages that lack them are found."""

import doctest
import importlib
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]

sys.path.insert(0, str(TOP / "tools"))
import licences  # noqa: E402 - a tool
from dist import check_source, check_wheel  # noqa: E402

SETTINGS = tomllib.loads((TOP / "pyproject.toml").read_text())
PROJECT, MATURIN = SETTINGS["project"], SETTINGS["tool"]["maturin"]


def test_the_licences_are_those_of_the_crates_that_are_linked() -> None:
    linked = licences.linked()
    assert len(linked) > 100
    text = licences.written(linked)
    assert [crate.line for crate in linked if f"\n{crate.line}\n" not in text] == []
    for licence in ("Apache License", "Permission is hereby granted", "bzip2", "Zstandard"):
        assert licence in text
    assert PROJECT["license-files"] == ["LICENSE", licences.FILE.name]
    assert {"path": licences.FILE.name, "format": "sdist"} in MATURIN["include"]
    assert (TOP / "LICENSE").is_file()


def test_a_wheel_without_licences_is_found(tmp_path: Path) -> None:
    wheel = tmp_path / "gristmill-1-cp311-abi3-any.whl"
    names = ["gristmill-1.dist-info/licenses/LICENSE", "gristmill/py.typed"]
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    with pytest.raises(AssertionError, match=r"no THIRD-PARTY-LICENCES\.txt"):
        check_wheel(wheel)
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("gristmill-1.dist-info/licenses/THIRD-PARTY-LICENCES.txt", "")
    with pytest.raises(AssertionError, match="no manual pages"):
        check_wheel(wheel)
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("gristmill-1.data/data/share/man/man1/gristmill-sort.1", "")
    assert "1 manual pages" in check_wheel(wheel)[0]


def test_a_source_distribution_without_its_lock_is_found(tmp_path: Path) -> None:
    source = tmp_path / "gristmill-1.tar.gz"
    with tarfile.open(source, "w:gz") as archive:
        archive.add(TOP / "LICENSE", "gristmill-1/LICENSE")
    with pytest.raises(AssertionError, match=r"no Cargo\.lock"):
        check_source(source)


@pytest.mark.parametrize("tool", ["errors", "manual", "reference.markdown", "site_pages"])
def test_the_examples_of_tools(tool: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(tool))
    assert tried > 0
    assert failed == 0, "see the output above"
