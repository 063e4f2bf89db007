"""Jobs in the shell of IPython and of notebooks: functions of cells, Ctrl-C, what is left."""

import json
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.cli.harness import clean_environment
from tests.optional import missing

SHELL = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
for cell in json.load(open(sys.argv[1])):
    done = shell.run_cell(cell, store_history=True)
    error = done.error_in_exec or done.error_before_exec
    told = [done.result] if error is None else [
        type(error).__name__, str(error), *getattr(error, "__notes__", ())
    ]
    print("TOLD", json.dumps([error is None, *told]), flush=True)
"""

CELLS = [
    "import dataclasses, os, time, gristmill as gm",
    """factor = 2

def words(line):
    for word in line.split():
        yield word, factor

def counted(name, line="a b a"):
    job = gm.Job(gm.items([line]), map=words, reduce=gm.sum(), output=gm.kv(name))
    return dict(job.run(workers=1).read())

counted("first")""",
    # A cell that is run again with another definition: the job takes the new one.
    """factor = 5

def words(line):
    yield line.upper(), factor

counted("second")""",
    """@dataclasses.dataclass
class Point:
    x: int

def kinds(key, values):
    yield key, [type(value).__name__ for value in values]

def points(n):
    yield "k", Point(n)

job = gm.Job(gm.items([1, 2]), map=points, reduce=kinds, output=gm.kv("third"))
dict(job.run(workers=1).read())""",
    """def fails(n):
    raise ValueError(f"no {n}")

gm.Job(gm.items([7]), map=fails, output=gm.kv("fourth")).run(workers=1)""",
    """def sleeps(n):
    with open("mark.part", "w") as mark:
        mark.write(str(os.getpid()))
    os.rename("mark.part", "mark")
    time.sleep(1000)

gm.Job(gm.items([7]), map=sleeps, output=gm.kv("fifth")).run(workers=1)""",
    'counted("sixth")',
    """pairs = gm.items([("<b>", n) for n in range(30)])
gm.Job(pairs, output=gm.kv("seventh")).run()._repr_html_()""",
    """import shutil
gone = gm.Job(gm.items(["a"]), map=words, output=gm.kv("eighth")).run()
shutil.rmtree("eighth")
gone._repr_html_()""",
    """plan = gm.Job(gm.items(["a"]), map=words, output=gm.kv("ninth")).explain()
shell = get_ipython()
[shell.display_formatter.format(plan)[0]["text/plain"], plan]""",
]


@pytest.fixture
def told(tmp_path: Path) -> list[list[object]]:
    """What each cell gave: whether it was well, and its value, or the error's type and text."""
    if find_spec("IPython") is None:
        missing("JOBS NOT RUN IN IPYTHON", "IPython is not installed")
    (tmp_path / "shell.py").write_text(SHELL)
    (tmp_path / "cells.json").write_text(json.dumps(CELLS))
    environment = clean_environment(IPYTHONDIR=str(tmp_path / "ipython"))
    command = [sys.executable, "shell.py", "cells.json"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as shell:
        deadline = time.monotonic() + 60
        while not (tmp_path / "mark").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
            assert shell.poll() is None
        shell.send_signal(signal.SIGINT)
        shown, _ = shell.communicate(timeout=60)
    lines = [line for line in shown.splitlines() if line.startswith("TOLD ")]
    return [json.loads(line.removeprefix("TOLD ")) for line in lines]


def test_cells(told: list[list[object]], tmp_path: Path) -> None:
    assert told[0] == [True, None]
    assert told[1] == [True, {"a": 4, "b": 2}]
    assert told[2] == [True, {"A B A": 5}]
    assert told[3] == [True, {"k": ["Point", "Point"]}]
    well, kind, text, note, *_ = told[4]
    assert (well, kind) == (False, "RuntimeError")
    assert "map fails: ValueError: no 7 (Cell In[5], line 2)" in str(text)
    assert note == (
        'In your code:\n  Cell In[5], line 2, in fails\n    raise ValueError(f"no {n}")'
    )
    # Ctrl-C ends the job with all that it began, and the shell goes on.
    assert told[5][:2] == [False, "KeyboardInterrupt"]
    assert told[6] == [True, {"A B A": 5}]
    page = str(told[7][1])
    assert page.count("&lt;b&gt;") == 10
    assert "<b>" not in page
    assert "<details><summary>Counters</summary>" in page
    assert "cannot read the output of job" in str(told[8][1])
    as_shown, plan = told[9][1]  # type: ignore[misc]
    assert as_shown == plan
    worker = Path(f"/proc/{(tmp_path / 'mark').read_text()}/stat")
    assert not worker.exists() or ") Z " in worker.read_text()
    known = {"shell.py", "cells.json", "ipython", "mark", "first", "second", "third", "sixth"}
    known.add("seventh")
    assert {path.name for path in tmp_path.iterdir()} == known
