"""Splits and inputs: which files, cut where."""

import json
import os
from pathlib import Path

import pytest

from gristmill import _core
from gristmill.streaming.inputs import InputMissingError, expand
from gristmill.streaming.parse import WrongCommandError, parse
from gristmill.streaming.resolved import resolve

from .conftest import Run


@pytest.mark.parametrize("name", ["none.gz", "none.deflate", "none.bz2", "none"])
def test_a_file_without_a_byte_has_no_record_whatever_its_name(
    tmp_path: Path, streaming: Run, name: str
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).touch()
    (tmp_path / "in/some").write_text("a\n")
    words = ["-input", str(tmp_path / "in"), "-output", str(tmp_path / "out"), "-mapper", "cat"]
    assert streaming(*words).returncode == 0
    assert (tmp_path / "out/part-00000").read_text() == "a\t\n"


def made(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*", ["a1", "a2", "b1", "b]"]),
        ("a?", ["a1", "a2"]),
        ("[ab]1", ["a1", "b1"]),
        ("[^a]1", ["b1"]),
        ("{a,b}1", ["a1", "b1"]),
        ("{a1,sub/c1}", ["a1", "sub/c1"]),
        ("b\\]", ["b]"]),
        ("sub", ["sub/c1"]),
        ("[^_]*/c*", ["sub/c1"]),
        ("{b1,a*,*1}", ["a1", "a2", "b1"]),  # once each, in order of their names
        ("{b,{a,x}}1", ["a1", "b1"]),
        ("{b1,su*/{c1,d},{a2,}}", ["a2", "b1", "sub/c1"]),
        ("s*/_l*", []),
        ("*/c*", ["_tmp/c1", "sub/c1"]),  # a hidden folder on the way is none
        ("a1,b1", ["a1", "b1"]),
    ],
)
def test_globs_are_hadoops(tmp_path: Path, pattern: str, names: list[str]) -> None:
    made(tmp_path, "a1", "a2", "b1", "b]", "_hidden", ".hidden", "sub/c1", "sub/_logs")
    made(tmp_path, "_tmp/c1")
    specs = ",".join(
        f"{tmp_path}/{part}" for part in ([pattern] if "{" in pattern else pattern.split(","))
    )
    if pattern == "*":
        names = [*names, "sub/c1"]
    if not names:
        with pytest.raises(InputMissingError):
            expand([specs])
        return
    assert expand([specs]) == [f"{tmp_path}/{name}" for name in names]


@pytest.mark.parametrize("pattern", ["*", "a?", "[ab]1", "[^a]1", "{a,b}1", "{a1,sub/c1}", "sub"])
@pytest.mark.parametrize("store", ["", "objects://"])
def test_globs_are_the_same_in_stores(tmp_path: Path, pattern: str, store: str) -> None:
    made(tmp_path, "a1", "a2", "b1", "[ab]2", "_hidden", ".hidden", "sub/c1", "sub/_logs")
    found = expand([f"{store}{tmp_path}/{pattern}"])
    assert found == [f"{store}{path}" for path in expand([f"{tmp_path}/{pattern}"])]
    assert found


def test_a_location_with_signs_of_a_glob_may_be_meant_literally(tmp_path: Path) -> None:
    made(tmp_path, "[ab]2", "a2", "a3")
    top = f"objects://{tmp_path}"
    assert expand([f"{top}/[ab]2"]) == [f"{top}/[ab]2"]
    assert expand([f"{top}/[ab]3"]) == [f"{top}/a3"]
    for missing in ("x", "x*", "[ab]4"):
        with pytest.raises(InputMissingError):
            expand([f"{top}/{missing}"])


def test_globs_of_uris_and_of_odd_names(tmp_path: Path) -> None:
    made(tmp_path, "part-0", "part-1", "a#b", "a b", "a%20c", "x[", "x&")
    for pattern, names in (
        ("part-?", ["part-0", "part-1"]),
        ("part-[01]", ["part-0", "part-1"]),
        ("a#b", ["a#b"]),
        ("a%20b", ["a b"]),
        ("a%20c", ["a%20c"]),
        ("x[[&&]", ["x&", "x["]),
    ):
        for scheme in ("file://", "file:", ""):
            if scheme or "%20b" not in pattern:
                found = expand([f"{scheme}{tmp_path}/{pattern}"])
                assert [Path(path).name for path in found] == names, scheme
    with pytest.raises(WrongCommandError, match=r"`\[b-a\]` is not a pattern"):
        expand([f"{tmp_path}/[b-a]"])


def test_what_is_not_there_and_what_is_too_deep(tmp_path: Path) -> None:
    made(tmp_path, "sub/deep/a")
    for missing in ("x", "x*"):
        with pytest.raises(InputMissingError, match="x"):
            expand([f"{tmp_path}/{missing}"])
    with pytest.raises(WrongCommandError, match="recursive"):
        expand([f"{tmp_path}/sub"])
    assert expand([f"{tmp_path}/sub"], ignore_folders=True) == []
    assert expand([f"{tmp_path}/sub"], recursive=True) == [f"{tmp_path}/sub/deep/a"]


def test_what_cannot_be_an_input_is_refused(tmp_path: Path) -> None:
    made(tmp_path, "a")
    for spec in ("", ","):
        with pytest.raises(WrongCommandError, match="names nothing"):
            expand([f"{tmp_path}/a", spec])
    os.mkfifo(tmp_path / "pipe")
    for spec in (f"{tmp_path}/pipe", "/dev/zero"):
        # Of a pipe only the first line would be read: its length is 0.
        with pytest.raises(WrongCommandError, match="not a regular file"):
            expand([spec])
    assert expand(["/dev/null"]) == ["/dev/null"]


def test_blocks_bound_splits(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100_000)
    resolved = resolve(parse(["-D", "dfs.block.size=10k", "-input", "a", "-output", "b"]))
    request = resolved.request | {"files": [str(tmp_path / "a")]}
    splits = json.loads(_core.plan_streaming(json.dumps(request)))["splits"]
    assert sorted(split["bytes"] for split in splits) == [7840] + [10_240] * 9
