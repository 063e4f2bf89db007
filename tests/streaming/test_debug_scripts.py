"""Debug scripts: what looks at an attempt that failed, and what becomes of what it says."""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from .conftest import Run
from .test_failures import ONCE, defining, is_clean, script, words

WHAT = {"map": "map a split", "reduce": "reduce a partition"}
FAILING = "import sys\nlines = sys.stdin.readlines()\nprint('oh', file=sys.stderr)\nsys.exit(3)"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "in.txt").write_text("".join(f"line {number}\n" for number in range(1000)))
    return tmp_path


def debugger(home: Path, text: str) -> str:
    path = home / "debug.py"
    path.write_text(f"#!/usr/bin/env python3\n{text}\n")
    return "debug.py"


SAYS = (
    "import os, pathlib, sys\nfiles = [pathlib.Path(word) for word in sys.argv[2:]]\n"
    "print(sys.argv[1], [file.name for file in files], os.environ['mapreduce_task_ismap'])\n"
    "print(repr(files[0].read_text()), repr(files[1].read_text()))\n"
    "print(files[2].read_text().partition(':')[0])\n"
    "print('on the other side', file=sys.stderr)\n"
    "pathlib.Path({copy!r}).write_bytes(files[3].read_bytes())"
)


@pytest.mark.parametrize("side", ["map", "reduce"])
@pytest.mark.parametrize("by", ["option", "property"])
def test_what_a_debug_script_says_is_in_the_report(
    home: Path, streaming: Run, side: str, by: str
) -> None:
    copy = home / "copied.xml"
    failing = script(home, FAILING)
    debugging = debugger(home, SAYS.format(copy=str(copy)))
    command = f"{debugging} 'two words'"
    asked = [f"-{side}debug", command]
    generic: list[str] = []
    if by == "property":
        generic, asked = ["-D", f"mapred.{side}.task.debug.script={command}"], []
    step = ["-mapper", failing] if side == "map" else ["-mapper", "cat", "-reducer", failing]
    more = [*generic, *ONCE, *defining(my__own="a<b&c"), *asked, "-file", failing, debugging]
    done = streaming(*words(home, *more, *step, "--json"), cwd=home)
    assert done.returncode == 1
    error = json.loads(done.stdout)["error"]
    assert error["details"]["debug script"].split("\n") == [
        f"two words ['stdout', 'stderr', 'syslog', 'job.xml'] {str(side == 'map').lower()}",
        r"'' 'oh\n'",
        f"cannot {WHAT[side]}",
        "on the other side",
    ]
    assert "What its debug script says:\n    two words [" in done.stderr
    root = ElementTree.parse(copy).getroot()
    properties = {one.findtext("name"): one.findtext("value") for one in root}
    assert properties["my.own"] == "a<b&c"
    assert properties[f"mapreduce.{side}.debug.script"] == command
    assert properties["mapreduce.job.reduces"] == "1"
    copy.unlink()
    assert is_clean(home)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("print('looked')\nraise SystemExit(4)", "looked\n(`debug.py` ended with exit code 4)"),
        ("import os\nos.kill(os.getpid(), 9)", "(`debug.py` was killed by signal 9)"),
        ("import time\ntime.sleep(100)", "(`debug.py` was ended: it took too long)"),
        (None, "there is no program `debug.py`"),
    ],
)
def test_the_failure_is_told_whatever_becomes_of_the_debug_script(
    home: Path, streaming: Run, text: str | None, said: str
) -> None:
    limit = defining(mapreduce__task__timeout=3000)
    more = ["-mapdebug", "debug.py", "-mapper", "false", "--json"]
    if text is not None:
        more = ["-file", debugger(home, text), *more]
    done = streaming(*words(home, *ONCE, *limit, *more), cwd=home)
    assert done.returncode == 1
    error = json.loads(done.stdout)["error"]
    assert "`false` ended with exit code 1" in error["message"]
    assert said in error["details"]["debug script"]


def test_what_is_kept_of_a_debug_script_is_bounded(home: Path, streaming: Run) -> None:
    endless = "for number in range(100_000):\n    print(number)"
    more = ["-file", debugger(home, endless), "-mapdebug", "debug.py", "-mapper", "false", "--json"]
    done = streaming(*words(home, *ONCE, *more), cwd=home)
    kept = json.loads(done.stdout)["error"]["details"]["debug script"]
    assert kept.endswith("\n99998\n99999")
    assert len(kept) < 40_000


def test_each_attempt_that_fails_is_looked_at_and_none_that_does_not(
    home: Path, streaming: Run
) -> None:
    log = home / "log"
    looks = f"import sys\nopen({str(log)!r}, 'a').write('looked\\n')"
    debugging = debugger(home, looks)
    more = [*defining(mapreduce__job__maps=1), "-mapdebug", "debug.py", "-file", debugging]
    assert streaming(*words(home, *more, "-mapper", "cat"), cwd=home).returncode == 0
    assert not log.exists()
    more.append("--overwrite")
    attempts = defining(mapreduce__map__maxattempts=3, mapreduce__reduce__maxattempts=2)
    again = [*attempts, *more, "-mapper", f"{sys.executable} -c 1/0"]
    assert streaming(*words(home, *again), cwd=home).returncode == 1
    assert log.read_text().count("looked") == 3
