"""Splits and inputs: which files, cut where."""

import json
from pathlib import Path

import pytest

from gristmill import _core
from gristmill.streaming.inputs import InputMissingError, expand
from gristmill.streaming.meaning import mean
from gristmill.streaming.parse import WrongCommandError, parse


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
        ("*/c*", ["sub/c1"]),
        ("a1,b1", ["a1", "b1"]),
    ],
)
def test_globs_are_hadoops(tmp_path: Path, pattern: str, names: list[str]) -> None:
    made(tmp_path, "a1", "a2", "b1", "b]", "_hidden", ".hidden", "sub/c1", "sub/_logs")
    specs = ",".join(
        f"{tmp_path}/{part}" for part in ([pattern] if "{" in pattern else pattern.split(","))
    )
    if pattern == "*":
        names = [*names, "sub/c1"]
    assert [str(path.relative_to(tmp_path)) for path in expand([specs])] == names


def test_what_is_not_there_and_what_is_too_deep(tmp_path: Path) -> None:
    made(tmp_path, "sub/deep/a")
    for missing in ("x", "x*"):
        with pytest.raises(InputMissingError, match="x"):
            expand([f"{tmp_path}/{missing}"])
    with pytest.raises(WrongCommandError, match="recursive"):
        expand([f"{tmp_path}/sub"])
    assert expand([f"{tmp_path}/sub"], ignore_folders=True) == []
    assert expand([f"{tmp_path}/sub"], recursive=True) == [tmp_path / "sub/deep/a"]


def test_blocks_bound_splits(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100_000)
    meaning = mean(parse(["-D", "dfs.block.size=10k", "-input", "a", "-output", "b"]))
    request = meaning.request | {"files": [str(tmp_path / "a")]}
    splits = json.loads(_core.plan_streaming(json.dumps(request)))["splits"]
    assert sorted(split["bytes"] for split in splits) == [7840] + [10_240] * 9
