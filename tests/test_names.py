r"""Names of files that are not UTF-8: bytes go through everywhere; people see `\xff`.

Every command and function gets names with a byte 0xE9 or 0xFF: of its inputs, its output, its spill
directory, its side files and its working directory.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gristmill as gm
from gristmill.names import as_name, from_json, quote, show_path, show_text, to_json

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory whose name is not UTF-8 either."""
    home = tmp_path / os.fsdecode(b"caf\xe9")
    home.mkdir()
    monkeypatch.chdir(home)
    monkeypatch.setenv("GRISTMILL_HOME", str(tmp_path / os.fsdecode(b"h\xe9")))
    return home


@pytest.fixture
def run(home: Path) -> Run:
    """Runs the program in `home` with these bytes."""

    def run(*words: str | bytes, code: int = 0) -> "subprocess.CompletedProcess[bytes]":
        command = [Path(sys.executable).with_name("gristmill"), *words]
        done = subprocess.run(command, capture_output=True, check=False, cwd=home, timeout=100)
        assert done.returncode == code, done.stderr
        assert b"Traceback" not in done.stderr
        done.stdout.decode(), done.stderr.decode()  # UTF-8, whatever the names are
        return done

    return run


def names(folder: Path) -> list[bytes]:
    return sorted(os.fsencode(path.name) for path in folder.iterdir())


# --- how names are spelled ---


@given(st.binary(min_size=1).filter(lambda name: b"\0" not in name))
def test_every_name_comes_back_from_json(name: bytes) -> None:
    text = to_json({"inputs": [as_name(name)], "output": as_name(name)})
    text.encode("ascii")
    found = from_json(text)
    assert [os.fsencode(path) for path in (*found["inputs"], found["output"])] == [name, name]
    json.loads(text)["output"].encode()  # text for every other reader, too
    assert show_path(name).isprintable() or not show_path(name).isascii()


@given(st.text())
def test_text_stays_as_it_is(text: str) -> None:
    if text.isascii() or "\0" not in text:
        assert from_json(to_json(text)) == text
    assert show_text(text) == text


def test_what_is_not_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no file can have the name '\\ud800'"):
        gm.sort("\ud800")


@pytest.mark.parametrize("name", [b"a b", b"caf\xe9's", b"\\x41", b"new\nline\t", "é\x85".encode()])
def test_a_quoted_name_is_that_name_to_a_shell(name: bytes) -> None:
    command = f"printf %s {quote(os.fsdecode(name))}"
    shell = {"LC_ALL": "C.UTF-8"}
    assert subprocess.check_output(["bash", "-c", command], env=shell) == name


# --- native jobs ---


def test_sort(run: Run, home: Path) -> None:
    (home / os.fsdecode(b"in\xe9")).write_text("b\na\n")
    done = run("sort", b"in\xe9", "-o", b"out\xff", "--json", "--history")
    assert (home / os.fsdecode(b"out\xff")).read_text() == "a\nb\n"
    assert from_json(done.stdout)["history"].startswith(str(home.parent / os.fsdecode(b"h\xe9")))
    shown = json.loads(run("jobs", "show", "last", "--json").stdout)
    assert shown["options"]["output"] == "out\0ff"
    run("jobs")
    run("jobs", "show", "last")
    run("report", "last", "-o", b"page\xff.html")
    assert "out\\\\xff" in (home / os.fsdecode(b"page\xff.html")).read_text()
    assert rb"file not-there\xff" in run("sort", b"not-there\xff", code=1).stderr
    assert rb"in\xe9:2" in run("sort", "-c", b"in\xe9", code=1).stderr
    (home / os.fsdecode(b"sub\xff")).mkdir()
    assert rb"output (sub\xff)" in run("explain", "sort", b"in\xe9", "-o", b"sub\xff/out").stdout


def test_records(run: Run, home: Path) -> None:
    run("teragen", "20k", b"gen\xe9", "--files", "3")
    (home / os.fsdecode(b"spill\xe9")).mkdir()
    run("terasort", b"gen\xe9", b"out\xe9", "--spill-dir", b"spill\xe9", "--memory", "80M")
    run("teravalidate", b"out\xe9", "--against", b"gen\xe9")
    assert rb"out\xe9" in run("terasort", b"gen\xe9", b"out\xe9", code=1).stderr
    # Outputs that differ in such a byte only do not share a job's folder.
    run("terasort", b"gen\xe9", b"out\xe8")
    assert (names(home)) == [
        b"gen\xe9",
        b"out\xe8",
        b"out\xe9",
        b"spill\xe9",
    ]


def test_functions_take_bytes(home: Path) -> None:
    (home / os.fsdecode(b"in\xe9")).write_text("b\na\n")
    report = gm.sort([b"in\xe9", Path("in\udce9")], output=b"out\xe9", spill_dir=b".")
    assert report.records == 4
    gm.teragen(10, b"gen\xe9")
    with pytest.raises(FileExistsError, match=r"gen\\xe9"):
        gm.teragen(10, b"gen\xe9")


# --- scripts ---


MAPPER = r"""#!/bin/sh
printf '%s %s\n' "$mapreduce_map_input_file" "$MINE"
cat "$1" >/dev/null || exit 1
echo > "$mapreduce_task_output_dir/side$MINE"
cat >/dev/null
"""


def test_scripts(run: Run, home: Path) -> None:
    (home / os.fsdecode(b"in\xe9")).write_text("b\n")
    (home / os.fsdecode(b"with\xe9")).write_text("")
    script = home / os.fsdecode(b"map\xe9.sh")
    script.write_text(MAPPER)
    script.chmod(0o755)
    shipped = ("-file", b"map\xe9.sh", "-file", b"with\xe9")
    job = (
        "streaming",
        "-D",
        "mapreduce.job.maps=1",
        "-mapper",
        b"map\xe9.sh with\xe9",
        *shipped,
        "-cmdenv",
        b"MINE=\xff",
    )
    done = run(*job, "-input", b"in\xe9", "-output", b"out\xe9", "--history", "-verbose")
    assert rb"out\xe9" in done.stderr
    out = home / os.fsdecode(b"out\xe9")
    assert (names(out)) == [b"_SUCCESS", b"part-00000", b"side\xff"]
    expected = b"file:%s/in\xe9 \xff\t\n" % os.fsencode(home)
    assert (out / "part-00000").read_bytes() == expected
    parts = [part["name"] for part in json.loads((out / "_SUCCESS").read_text())["parts"]]
    assert sorted(parts) == ["part-00000", "side\0ff"]
    failed = ("streaming", "-mapper", "false", "-input", b"in\xe9", "-output", b"other\xe9")
    again = rb"gristmill streaming -mapper false -input $'in\xe9' -output $'other\xe9' --only-split"
    assert again in run(*failed, code=1).stderr
