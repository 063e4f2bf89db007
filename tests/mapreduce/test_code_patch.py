"""The command that tries a failed record again uses the code of today, and says which it ran."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

GRISTMILL = Path(sys.executable).with_name("gristmill")

HELPER = "def check(line):\n    return 1 // (len(line) - 3)\n"

SCRIPT = """
import gristmill as gm
import helper

LIMIT = 3

class Cut:
    def __call__(self, line):
        return [(line, 1 // (len(line) - LIMIT))]

def made(n):
    def inner(line):
        return [(line, n // (len(line) - 3))]
    return inner

def plain(line):
    return [(line, 1 // (len(line) - 3))]

# the job is not run again
open("ran", "a").write("x")
gm.Job(gm.text("in.txt"), map={map}, output=gm.tsv("out")).run()
"""

SCRIPTS = {  # name: the map, what is mended, and how
    "function": ("plain", "1 // (len(line) - 3))]\n\n#", "0)]\n\n#"),
    "new helper": ("plain", "def plain(line):\n    return [(line, 1 // (len(line) - 3))]",
                   "import math\ndef length(line): return math.floor(9)\ndef plain(line):\n"
                   "    return [(line, length(line))]"),
    "constant": ("Cut()", "LIMIT = 3", "LIMIT = 9"),
    "method": ("Cut()", "- LIMIT", "+ LIMIT"),
    "closure": ("made(2)", "n // (len(line) - 3)", "n"),
    "lambda": ("lambda line: [(line, 1 // (len(line) - 3))]",
               "lambda line: [(line, 1 // (len(line) - 3))]", "lambda line: [(line, 5)]"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRISTMILL_HOME", str(tmp_path / "home"))
    folder = tmp_path / "it's here"
    folder.mkdir()
    (folder / "in.txt").write_text("a\nbb\nccc\ndddd\n")
    (folder / "helper.py").write_text(HELPER)
    return folder


def failing(*command: str | Path, cwd: Path) -> str:
    """The command that a failing job prints."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return re.findall(r"(?m)^To try it again alone: (.*)$", done.stderr)[-1]


def retried(command: str, status: int) -> str:
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == status, said
    return said


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_mended_script(folder: Path, name: str) -> None:
    function, old, new = SCRIPTS[name]
    script = folder / "analysis.py"
    script.write_text(SCRIPT.replace("{map}", function))
    command = failing(sys.executable, "analysis.py", cwd=folder)
    assert "analysis.py, unchanged" in retried(command, 1)
    change(script, old, new)
    said = retried(command, 0)
    assert "analysis.py as it is now" in said
    assert "'ccc'" in said
    assert (folder / "ran").read_text() == "x"


def test_a_module_that_the_script_imports(folder: Path) -> None:
    script = SCRIPT.replace("{map}", "lambda line: [(line, helper.check(line))]")
    (folder / "analysis.py").write_text(script)
    command = failing(sys.executable, "analysis.py", cwd=folder)
    assert "ZeroDivisionError" in retried(command, 1)
    change(folder / "helper.py", "- 3", "+ 33")
    retried(command, 0)


JOB = """
import gristmill as gm

def job(input="in.txt", n="0", output="out"):
    def divided(line):
        return [(line, 1 // int(n))]

    return gm.Job(gm.text(input), map=divided, reduce=gm.sum(), output=gm.tsv(output)).then(
        reduce=lambda key, values: [key], output=gm.kv(output + "2"))
"""


def test_a_mended_job_file(folder: Path) -> None:
    job = folder / "job.py"
    job.write_text(JOB)
    command = failing(GRISTMILL, "run", "job.py", "--set", "n=0", "--output", "o", cwd=folder)
    assert "job.py, unchanged" in retried(command, 1)
    change(job, "    def divided", "    least = 1 + int(n)\n\n    def divided")
    change(job, "1 // int(n)", "1 // least")
    said = retried(command, 0)
    assert "job.py as it is now" in said
    assert "('a', 1)" in said
    change(job, "1 // least", "1 // (least - 1)")
    assert "ZeroDivisionError" in retried(command, 1)
    change(job, "def job(", "def job(:")
    assert "SyntaxError" in retried(command, 1)
    job.unlink()
    said = retried(command, 1)
    assert "job.py is gone" in said
    assert "ZeroDivisionError" in said


def test_what_is_not_found_anew_is_said(folder: Path) -> None:
    script = folder / "analysis.py"
    script.write_text(SCRIPT.replace("{map}", "made(2)"))
    command = failing(sys.executable, "analysis.py", cwd=folder)
    change(script, "def inner", "def other")
    said = retried(command, 1)
    assert "but of made.<locals>.inner, which is as the job had it" in said


def test_a_format_is_mended_too(folder: Path) -> None:
    (folder / "in.txt").write_bytes(b"fine\n\xe9t\xe9\nmore\n")
    job = folder / "job.py"
    text = "import gristmill as gm\njob = gm.Job(gm.text('in.txt'), map=lambda line: [line],"
    job.write_text(f"{text} output=gm.text('out'))\n")
    command = failing(GRISTMILL, "run", "job.py", cwd=folder)
    assert "not UTF-8" in retried(command, 1)
    change(job, "'in.txt'", "'in.txt', encoding='latin-1'")
    assert "'été'" in retried(command, 0)
