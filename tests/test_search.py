"""`gm.grep`: what it gives is what GNU grep prints."""

import gzip
import re
import subprocess
import time
from pathlib import Path

import pytest

import gristmill as gm
from gristmill.search import GrepLine

TEXT = b"one fish\ntwo Fish\n\xffred-fish_\nblue whale\n\nfish and fish\nlast fish"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a").write_bytes(TEXT)
    (tmp_path / "b").write_bytes(b"whale\n")
    (tmp_path / "c").mkdir()
    (tmp_path / "c/d.gz").write_bytes(gzip.compress(b"a fish\n"))
    return tmp_path


def gnu(*words: str, folder: Path) -> list[bytes]:
    command = ["grep", "-E", "-a", *words]
    environment = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, cwd=folder, env=environment, check=False)
    return done.stdout.splitlines()


def shown(line: GrepLine) -> bytes:
    mark = b"-" if line.is_context else b":"
    return mark.join([str(line.number).encode(), str(line.offset).encode(), line.line])


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], {}),
        (["-i"], {"ignore_case": True}),
        (["-v"], {"invert_match": True}),
        (["-w"], {"word_regexp": True}),
        (["-x"], {"line_regexp": True}),
        (["-m1"], {"max_count": 1}),
        (["-m0"], {"max_count": 0}),
        (["-A1", "--no-group-separator"], {"after_context": 1}),
        (["-B1", "--no-group-separator"], {"before_context": 1}),
        (["-v", "-B1", "--no-group-separator"], {"before_context": 1, "invert_match": True}),
    ],
)
def test_lines_are_those_of_gnu_grep(
    words: list[str], options: dict[str, int], folder: Path
) -> None:
    for pattern in ("fish", "f.sh|whale", "^$", "nothing"):
        found = [shown(line) for line in gm.grep(pattern, folder / "a", **options)]  # pyright: ignore
        assert found == gnu("-nb", *words, pattern, "a", folder=folder), pattern


def test_matches_are_those_of_a_line(folder: Path) -> None:
    lines = list(gm.grep("f[a-z]+", folder / "a"))
    spans = [(line.number, line.spans, line.matches) for line in lines]
    assert spans == [
        (1, ((4, 8),), (b"fish",)),
        (3, ((5, 9),), (b"fish",)),
        (6, ((0, 4), (9, 13)), (b"fish", b"fish")),
        (7, ((5, 9),), (b"fish",)),
    ]
    assert lines[1].text == "\\xffred-fish_"
    (line,) = gm.grep("f[a-z]+", folder / "a", invert_match=True, max_count=1, after_context=0)
    assert (line.number, line.spans) == (2, ())


def test_files_and_counts(folder: Path) -> None:
    found = gm.grep("fish", folder)
    a, b, d = (str(folder / name) for name in ("a", "b", "c/d.gz"))
    assert found.counts() == {a: 4, b: 0, d: 1}
    assert list(found.files()) == [a, d]
    assert list(found.files_without_match()) == [b]
    assert found.any()
    assert not gm.grep("nothing", folder).any()
    assert {line.file for line in found} == {a, d}
    assert gm.grep("fish", [a, str(b), Path(d)]).counts() == {a: 4, b: 0, d: 1}
    assert gm.grep("fish", folder, glob="*.gz").counts() == {d: 1}
    assert gm.grep("fish", folder, glob=["!*.gz", "!b"]).counts() == {a: 4}


def test_several_patterns_and_patterns_of_bytes(folder: Path) -> None:
    assert gm.grep(["one", b"\xff"], folder / "a").counts() == {str(folder / "a"): 2}
    assert gm.grep(["a.b", "o.e"], folder / "a", fixed_strings=True).counts() == {
        str(folder / "a"): 0
    }


def test_records_that_end_at_a_nul(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\nfish\0whale\0fish")
    lines = list(gm.grep("fish", tmp_path / "a", null_data=True))
    assert [(line.number, line.offset, line.line) for line in lines] == [
        (1, 0, b"a\nfish"),
        (3, 13, b"fish"),
    ]


def test_a_search_goes_only_as_far_as_it_is_asked(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a fish that swims\n" * 3_000_000)
    before = threads()
    began = time.monotonic()
    first = next(iter(gm.grep("fish", [tmp_path / "a"] * 200)))
    assert first.number == 1
    assert time.monotonic() - began < 10  # all of it is 10 GB of lines
    gone_by = time.monotonic() + 10
    while threads() > before:
        assert time.monotonic() < gone_by, "threads of a search go on"
        time.sleep(0.01)


def threads() -> int:
    """Those of this process, the engine's included."""
    return len(list(Path("/proc/self/task").iterdir()))


def test_searches_are_apart(folder: Path) -> None:
    """Two at once, one in the loop of the other, one that is broken off by an exception."""
    wanted = list(gm.grep("fish", folder))
    assert len(wanted) > 1
    assert list(zip(gm.grep("fish", folder), gm.grep("fish", folder), strict=True)) == list(
        zip(wanted, wanted, strict=True)
    )
    found = gm.grep("fish", folder)
    assert [found.any() for _ in found] == [True] * len(wanted)
    before = threads()
    for _ in range(20):
        with pytest.raises(KeyError):
            raise KeyError(next(iter(gm.grep("fish", folder))))
    while threads() > before:
        time.sleep(0.01)


def test_binary_files_are_named_and_not_given(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"fish\n\0\n")
    (tmp_path / "b").write_bytes(b"fish\n")
    found = gm.grep("fish", tmp_path)
    with pytest.warns(UserWarning) as warned:
        assert [line.file for line in found] == [str(tmp_path / "b")]
    says = "binary file matches; its lines are not given. What to do: give text=True."
    assert [str(one.message) for one in warned] == [f"gm.grep: {tmp_path / 'a'}: {says}"]
    assert warned[0].filename == __file__
    assert found.binary == [str(tmp_path / "a")]
    assert len(list(gm.grep("fish", tmp_path, text=True))) == 2


def test_lines_from_a_late_nul_on_are_not_given(tmp_path: Path) -> None:
    """What the first 96 kB tell is only whether they have a NUL."""
    begins = b"fish\n" * 20_000
    late = tmp_path / "late"
    late.write_bytes(begins + b"no\0\nfish\nfish\0\nfish\n")
    found = gm.grep("fish", late)
    with pytest.warns(UserWarning, match="its lines from the first one with a NUL on are not"):
        assert sum(1 for _ in found) == 20_001
    assert found.counts() == {str(late): 20_003}
    late.write_bytes(begins + b"no\0\nfish\n")  # no line that is selected has one
    assert sum(1 for _ in gm.grep("fish", late)) == 20_001


def test_other_searches_leave_what_was_said_of_binary_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"fish\n\0\n")
    found = gm.grep("fish", tmp_path)
    with pytest.warns(UserWarning, match="binary file matches"):
        assert not list(found)
    assert found.any()
    assert found.counts() == {str(tmp_path / "a"): 1}
    assert list(found.files()) == found.binary == [str(tmp_path / "a")]
    (tmp_path / "a").write_bytes(b"fish\n")
    assert len(list(found)) == 1
    assert not found.binary


def test_patterns_of_names_are_expanded(folder: Path) -> None:
    (folder / "_made").write_bytes(b"fish\n")
    a, b, d = (str(folder / name) for name in ("a", "b", "c/d.gz"))
    assert gm.grep("fish", f"{folder}/*").counts() == {a: 4, b: 0, d: 1}
    assert gm.grep("fish", f"{folder}/**/*").counts() == {a: 4, b: 0, d: 1}
    assert gm.grep("fish", [f"{folder}/[ab]", f"{folder}/**/*.gz"]).counts() == {a: 4, b: 0, d: 1}
    assert gm.grep("fish", f"{folder}/_*").counts() == {str(folder / "_made"): 1}
    assert gm.grep("fish", f"{folder}/*e", hidden=True).counts() == {str(folder / "_made"): 1}
    with pytest.raises(FileNotFoundError, match=r"the pattern \S*/\*\.log matches nothing\. What"):
        gm.grep("fish", f"{folder}/*.log").any()
    (folder / "x*").write_bytes(b"fish\n")  # a name that is there is meant literally
    (folder / "xy").write_bytes(b"fish\n")
    assert gm.grep("fish", f"{folder}/x*").counts() == {str(folder / "x*"): 1}


def test_what_cannot_be_read(folder: Path) -> None:
    found = gm.grep("fish", [folder / "none", folder / "b", folder / "a"])
    with pytest.raises(
        FileNotFoundError, match=r"directory \(file .*\. What to do: check the"
    ) as caught:
        list(found)
    assert gm.report_of(caught.value) is None
    found = gm.grep("whale", [folder / "none", folder / "b"], skip_unreadable=True)
    assert [line.number for line in found] == [1]
    assert list(found.unreadable) == [str(folder / "none")]
    (folder / "cut.gz").write_bytes(gzip.compress(TEXT * 1000)[:-20])
    with pytest.raises(OSError, match=re.escape("cut.gz")):
        gm.grep("fish", folder / "cut.gz").counts()


def test_wrong_options_are_said_at_once(folder: Path) -> None:
    with pytest.raises(ValueError, match="unclosed group, at character 2 of a\\(b"):
        gm.grep("a(b", folder)
    with pytest.raises(TypeError, match=r"no option ignorecase\. What to do: give ignore_c"):
        gm.grep("a", folder, ignorecase=True)  # pyright: ignore
    with pytest.raises(ValueError, match="cannot read the glob a\\["):
        gm.grep("a", folder, glob="a[")
    with pytest.raises(ValueError, match=r"of \(a{99}\.\.\.$"):
        gm.grep("(" + "a" * 1000, folder)
    for wrong, says in (
        ({"max_count": -1}, "max_count is -1. What to do: give a whole number from 0 on"),
        ({"workers": 0}, "workers is 0. What to do: give a whole number from 1 to 1024"),
        ({"glob": "\udcff"}, "give a pattern in UTF-8"),
    ):
        with pytest.raises(ValueError, match=re.escape(says)):
            gm.grep("a", folder, **wrong)  # pyright: ignore
    for name, value in (
        *(("max_count", 1.5), ("max_count", True), ("max_count", "1"), ("before_context", None)),
        *(
            ("ignore_case", 1),
            ("skip_unreadable", 1),
            ("text", None),
            ("glob", b"*"),
            ("glob", None),
        ),
    ):
        with pytest.raises(TypeError, match=f"cannot read the options: {name} is "):
            gm.grep("a", folder, **{name: value})  # pyright: ignore
    for one in ({"pattern": None, "inputs": "a"}, {"pattern": "a", "inputs": [3]}):
        with pytest.raises(TypeError, match="What to do: give text"):
            gm.grep(**one)  # pyright: ignore
    for inputs in ([], "", ["a", ""]):
        with pytest.raises(ValueError, match="there is no path, or an empty one"):
            gm.grep("a", inputs)


def test_a_line_that_is_longer_than_blocks(tmp_path: Path) -> None:
    long = b"x" * 3_000_000
    (tmp_path / "a").write_bytes(b"a\n" + long + b" fish\nfish " + long)
    found = list(gm.grep("fish", tmp_path / "a"))
    assert [(line.number, len(line.line)) for line in found] == [(2, 3_000_005), (3, 3_000_005)]
    assert found[0].spans == ((3_000_001, 3_000_005),)


def test_a_path_in_the_home_of_the_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    assert gm.grep("whale", "~/b").counts() == {str(folder / "b"): 1}
    assert gm.grep("whale", ["~/[ab]"]).any()
