"""`--jsonl`: JSON objects, one a line, by paths, against Python's own reading of them."""

import gzip
import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill as gm

from .harness import failure, names, run
from .random_records import random_key
from .resuming import tree

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "é", '"\\', "\n"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=4,
)
How = Literal["inner", "left", "right", "full", "semi", "anti"]
HOW: tuple[How, ...] = get_args(How)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "a.b", "é"]), VALUES)


def text_of(value: object) -> str | None:
    """What a value says; `None` of an object or a list, which stands as it was written."""
    match value:
        case None:
            return ""
        case str():
            return value
        case bool() | int():
            return json.dumps(value)
        case _:
            return None


def at(line: bytes, *path: str) -> str:
    """What a path says in a line."""
    value = json.loads(line)
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    text = text_of(value)
    return json.dumps(value, ensure_ascii=False) if text is None else text


def lines_of(objects: list[dict[str, Any]], ascii_only: bool) -> list[bytes]:
    """Objects as lines."""
    return [json.dumps(one, ensure_ascii=ascii_only).encode() + b"\n" for one in objects]


@settings(max_examples=60)
@given(st.lists(OBJECTS, max_size=8), st.booleans(), st.booleans())
def test_any_objects(
    tmp_path_factory: pytest.TempPathFactory,
    objects: list[dict[str, Any]],
    ascii_only: bool,
    whole: bool,
) -> None:
    folder = tmp_path_factory.mktemp("objects")
    lines = lines_of(objects, ascii_only)
    text = b"".join(lines)
    source, out = folder / "in", folder / "out"
    source.write_bytes(text if whole else text.removesuffix(b"\n"))
    for words, path in (("a.b", ("a", "b")), (r"a\.b", ("a.b",)), ("é", ("é",))):
        if any(text_of(json.loads(line).get("a")) is None for line in lines) and ascii_only:
            continue  # what stands there has escapes of its own
        first: dict[str, bytes] = {}
        for line in lines:
            first.setdefault(at(line, *path), line)
        gm.unique(source, output=out, jsonl=True, key=[words], sorted=True)
        ordered = sorted(first, key=str.encode)
        assert out.read_bytes() == b"".join(first[key] for key in ordered)
        gm.top_records(3, source, output=out, jsonl=True, key=[words])
        ranked = sorted(lines, key=lambda line, path=path: at(line, *path).encode())
        assert out.read_bytes() == b"".join(ranked[:3])
        gm.split_by(source, folder / "by", jsonl=True, by=[words], overwrite=True)
        groups: dict[str, bytes] = {}
        for line in lines:
            groups[at(line, *path)] = groups.get(at(line, *path), b"") + line
        assert sorted(tree(folder / "by").values()) == sorted(groups.values())
        assert all(name.endswith(".jsonl") for name in tree(folder / "by"))
    shutil.rmtree(folder)


def test_a_sample_of_each_group(tmp_path: Path) -> None:
    lines = [b'{"u": {"id": %d}, "n": %d}\n' % (n % 3, n) for n in range(300)]
    (tmp_path / "in").write_bytes(b"".join(lines))
    gm.sample(tmp_path / "in", output=tmp_path / "out", jsonl=True, by=["u.id"], number=4)
    wanted: list[bytes] = []
    offsets = [sum(map(len, lines[:n])) for n in range(300)]
    for group in range(3):
        mine = [n for n in range(300) if n % 3 == group]
        drawn = sorted(mine, key=lambda n: random_key("0", 0, offsets[n]))[:4]
        wanted += [lines[n] for n in sorted(drawn)]
    assert (tmp_path / "out").read_bytes() == b"".join(wanted)


def test_numbers_and_words_behind_paths(tmp_path: Path) -> None:
    lines = [b'{"n": 10}\n', b'{"n": "9"}\n', b'{"n": 9.0}\n', b'{"n": null}\n', b"{}\n"]
    (tmp_path / "in").write_bytes(b"".join(lines))
    distinct = partial(run, "distinct", "--jsonl", tmp_path / "in", "--sorted", "--key")
    assert distinct("n:num").stdout.encode() == b"".join(lines[at] for at in (3, 1, 0))
    assert distinct("n").stdout.encode() == b"".join(lines[at] for at in (3, 0, 1, 2))
    counted = run("distinct", "--jsonl", "--key", "n", "--count", "--repeated", tmp_path / "in")
    assert counted.stdout == '      2 {"n": null}\n'
    top = run("top", "1", "--jsonl", "--key", "n:num:desc", tmp_path / "in")
    assert top.stdout.encode() == lines[0]


def large() -> bytes:
    """More than 12 MB of objects."""
    return b"".join(
        b'{"text": "%s", "user": {"id": "u%d", "n": %d}}\n' % (b"." * (n % 90), n % 5000, n)
        for n in range(160_000)
    )


@pytest.mark.parametrize(
    "words", [["distinct", "--key", "user.id"], ["top", "9", "--key", "user.n:num:desc"]]
)
def test_workers_and_memory_change_nothing(words: list[str], tmp_path: Path) -> None:
    text = large()
    (tmp_path / "in").write_bytes(text)
    (tmp_path / "in.gz").write_bytes(gzip.compress(text, 1))
    command = [words[0], "--jsonl", *words[1:]]
    run(*command, tmp_path / "in", "-o", tmp_path / "one", "--workers", "1")
    more = ["--workers", "2", "--memory", "60M", "--runner", "processes"]
    run(*command, tmp_path / "in", "-o", tmp_path / "two", *more)
    run(*command, tmp_path / "in.gz", "-o", tmp_path / "three")
    assert len({(tmp_path / name).read_bytes() for name in ("one", "two", "three")}) == 1
    found = (tmp_path / "one").read_bytes().splitlines()
    assert len(found) == (5000 if words[0] == "distinct" else 9)
    assert words[0] == "distinct" or json.loads(found[0])["user"]["n"] == 159_999


def written(at: Path) -> list[Any]:
    """The objects of a file."""
    return [json.loads(line) for line in at.read_bytes().splitlines()]


def test_groups_are_objects(tmp_path: Path) -> None:
    (tmp_path / "in").write_text(
        """{"city": "Rome", "price": 2, "u": {"id": 7}}
{"price": "0.5", "city": "Bern", "u": {"id": "07"}, "x": true}
{"city": "Rome", "price": 3.10, "note": "\u00e9\\n"}
{"price": null, "city": ""}
{"city": null, "x": [1, {"y": 2}]}
"""
    )
    gm.group(
        tmp_path / "in",
        output=tmp_path / "out",
        jsonl=True,
        by=["city"],
        count=True,
        sum=["price"],
        mean=["price"],
        min=["u.id"],
        median=["price"],
        percentile=["95:price"],
        distinct=["u.id"],
        first=["note,x", "u"],
        last=["u"],
    )
    names = ["city", "count", "price_sum", "price_mean", "u.id_min", "price_median", "price_p95"]
    names += ["u.id_distinct", "note_first", "x_first", "u_first", "u_last"]
    rows = [
        [None, 2, 0, None, None, None, None, 0, None, [1, {"y": 2}], None, None],
        ["Bern", 1, 0.5, 0.5, "07", 0.5, 0.5, 1, None, True, {"id": "07"}, {"id": "07"}],
        ["Rome", 2, 5.1, 2.55, 7, 2, 3.1, 1, "é\n", None, {"id": 7}, {"id": 7}],
    ]
    assert written(tmp_path / "out") == [dict(zip(names, row, strict=True)) for row in rows]
    assert b'"price_p95":3.10' in (tmp_path / "out").read_bytes()  # as it is written
    gm.group(tmp_path / "in", output=tmp_path / "all", jsonl=True)
    assert (tmp_path / "all").read_bytes() == b'{"count":5}\n'
    # What comes out can be read again: the name has a dot in it.
    gm.top_records(1, tmp_path / "out", output=tmp_path / "top", jsonl=True, key=[r"u\.id_min:num"])
    assert written(tmp_path / "top")[0]["city"] is None
    says = failure("group", "--jsonl", "--by", "city", "--sum", "note", tmp_path / "in")
    assert "note_sum takes numbers" in says
    assert "(column note, " in says
    assert "line 3" in says


@settings(max_examples=40)
@given(st.lists(OBJECTS, max_size=8), st.lists(OBJECTS, max_size=5), st.booleans())
def test_any_objects_are_joined(
    tmp_path_factory: pytest.TempPathFactory,
    left: list[dict[str, Any]],
    right: list[dict[str, Any]],
    shuffles: bool,
) -> None:
    folder = tmp_path_factory.mktemp("joined")
    for name, objects in (("l", left), ("r", right)):
        (folder / name).write_bytes(b"".join(lines_of(objects, ascii_only=False)))
    for how in HOW:
        gm.join(
            folder / "l",
            folder / "r",
            output=folder / "out",
            jsonl=True,
            by=[r"é=a\.b"],
            how=how,
            sorted=shuffles,
        )
        found = written(folder / "out")
        assert sorted(map(dumped, found)) == sorted(map(dumped, joined(left, right, how)))
    shutil.rmtree(folder)


def dumped(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def joined(left: list[dict[str, Any]], right: list[dict[str, Any]], how: str) -> list[Any]:
    """Objects whose `é` and `a.b` say the same, by nested loops."""

    def said(one: dict[str, Any], name: str) -> str:
        text = text_of(one.get(name))
        return json.dumps(one.get(name), ensure_ascii=False) if text is None else text

    def both(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
        made = dict(one)
        for name, value in other.items():
            if name == "a.b":
                continue
            free = name
            while free in made:
                free += "_right"
            made[free] = value
        return made

    def alone(other: dict[str, Any]) -> dict[str, Any]:
        made = {"é": other["a.b"]} if "a.b" in other else {}
        for name, value in other.items():
            if name != "a.b":
                made[name + "_right" if name in made else name] = value
        return made

    pairs = [
        (one, other) for one in left for other in right if said(one, "é") == said(other, "a.b")
    ]
    unmatched = [one for one in left if all(one is not mine for mine, _ in pairs)]
    others = [alone(other) for other in right if all(other is not its for _, its in pairs)]
    matched = [one for one in left if any(one is mine for mine, _ in pairs)]
    inner = [both(*pair) for pair in pairs]
    return {
        "inner": inner,
        "left": inner + unmatched,
        "right": inner + others,
        "full": inner + unmatched + others,
        "semi": matched,
        "anti": unmatched,
    }[how]


def test_three_inputs_with_a_path_into_a_member(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"u": {"id": 1}, "n": 1}\n{"u": {"id": 2}}\n')
    (tmp_path / "b").write_text('{"id": "1", "n": 7, "n": 2}\n')
    (tmp_path / "c").write_text('{"id": 1, "n": 3}\n{"id": 2.0}\n')
    said = run("join", "--jsonl", "--by", "u.id=id=id", *(tmp_path / name for name in "abc"))
    assert said.stdout == '{"u":{"id": 1},"n":1,"n_2":2,"n_3":3}\n'
    says = failure(
        "join", "--jsonl", "--by", "id", "-e", "-", tmp_path / "a", tmp_path / "b", status=2
    )
    assert "an object has no cells that could be empty" in says
    says = failure("join", "--jsonl", tmp_path / "a", tmp_path / "b", status=2)
    assert "must be given" in says
    says = failure(
        "join", "--jsonl", "--by", "id", "-j", "1", tmp_path / "a", tmp_path / "b", status=2
    )
    assert "it is for lines" in says


def test_what_makes_no_sense(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b'{"a": 1}\n\n{"a": 2\n')
    distinct = ["distinct", tmp_path / "in", "--jsonl"]
    for words, wanted in (
        ([], "keys of JSON objects are paths, and none is given"),
        (["--key", "a", "--csv"], "jsonl excludes csv, tsv and field_separator"),
        (["--key", "a", "-t", ":"], "jsonl excludes csv, tsv and field_separator"),
        (["--key", "a", "--no-header"], "no-header is for tables"),
        (["--key", "a", "--ragged", "pad"], "ragged is for tables"),
    ):
        assert wanted in failure(*distinct, *words, status=2).replace("--jsonl ex", "jsonl ex")
    says = failure(*distinct, "--key", "a")
    assert "the line is not a JSON object: EOF while parsing an object" in says
    assert "line 3" in says
    for text in (b"[1]\n", b"1\n", b"{} {}\n", b'{"a": "\xff"}\n', b'{"a": 1,}\n'):
        (tmp_path / "in").write_bytes(text)
        assert "the line is not a JSON object" in failure(*distinct, "--key", "a")
    assert names(tmp_path) == ["in"]
