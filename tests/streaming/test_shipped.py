"""Files that are shipped: the names that scripts find them by; what is told of the others."""

import re
from pathlib import Path

import pytest

from gristmill.streaming.parse import WrongCommandError, parse
from gristmill.streaming.resolved import resolve

from .meaning import meant


@pytest.mark.parametrize(
    ("kind", "shipped", "said"),
    [
        ("-files", "a.txt#x,b.txt#x", "`x` is the name of two shipped files"),
        ("-files", "a.txt#x,b.txt#x/y", "`x` cannot be a file and hold `x/y`"),
        ("-files", "a.txt#tmp", "where tmp is the directory of temporary files"),
        ("-files", "a.txt#tmp/x", "where tmp is the directory of temporary files"),
        ("-archives", "one/c.zip,two/c.zip", "`c.zip` is the name of two shipped files"),
        ("-files", "a.txt#x,a.txt#x,./a.txt#y/z,b.txt#y/tmp", ""),
    ],
)
def test_a_shipped_name_stands_for_one_thing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, shipped: str, said: str
) -> None:
    for name in ("a.txt", "b.txt", "one/c.zip", "two/c.zip"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    if not said:
        assert len(meant(kind, shipped).definition["links"]) == 4
        return
    with pytest.raises(WrongCommandError, match=re.escape(said)):
        meant(kind, shipped)


def test_files_and_archives_become_links(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt", "c.zip"):
        (tmp_path / name).touch()
    found = meant(
        *(
            "-files",
            f"{tmp_path}/a.txt,file://{tmp_path}/b.txt#other",
            "-archives",
            f"{tmp_path}/c.zip",
        ),
        *("-cacheFile", f"{tmp_path}/a.txt#again", "-cacheArchive", f"{tmp_path}/c.zip#dict"),
    ).definition
    links = [
        ("a.txt", f"{tmp_path}/a.txt"),
        ("other", f"{tmp_path}/b.txt"),
        ("again", f"{tmp_path}/a.txt"),
    ]
    assert found["links"] == links
    assert found["archives"] == [("c.zip", f"{tmp_path}/c.zip"), ("dict", f"{tmp_path}/c.zip")]


def test_a_program_that_is_shipped_is_found_by_its_name(tmp_path: Path) -> None:
    script = tmp_path / "map.py"
    script.touch()
    words = [
        "-input",
        "i",
        "-output",
        "o",
        "-mapper",
        f"{script} -x",
        "-file",
        str(script),
        "-reducer",
        "/bin/cat",
    ]
    found = resolve(parse(words)).definition
    assert found["map"] == {"script": ["map.py", "-x"]}
    assert found["reduce"] == {"script": ["/bin/cat"]}


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (["-mapper", "bad.py"], True),
        (["-mapper", "./bad.py x"], True),
        (["-mapper", "python3 -u bad.py"], True),
        (["-mapper", "awk -f bad.py"], True),
        (["-files", "bad.py", "-mapper", "python3 bad.py"], False),
        (["-file", "bad.py", "-mapper", "python3 bad.py"], False),
        (["-mapper", "python3 other.py"], False),
        (["-mapper", "python3 folder/bad.py"], False),
        (["-mapper", "grep x"], False),
    ],
)
def test_a_script_of_this_directory_that_is_not_shipped_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], missing: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("bad.py", "x", "folder/bad.py"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("#!/usr/bin/env python3\n")
    said = f"-mapper {words[1]}: bad.py is in this directory but was not shipped: add -files bad.py"
    assert meant(*words).remarks == ([said] if missing else [])
