"""What users of the commands are told: the place, the cause, what to do, in one kind of number."""

import json
import os
import re
from pathlib import Path

import pytest

from .harness import failure, run

RAW_NUMBER = re.compile(r"\b\d{6,}\b")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in.txt").write_text("b\na\n")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "links").mkdir()
    (tmp_path / "links/to").symlink_to("nowhere")
    run("teragen", "100", tmp_path / "data", "--no-sync")
    run("terasort", tmp_path / "data", tmp_path / "sorted", "--no-sync")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        # links
        ("sort dangling", 1, "it is a dangling link: the file that it leads to does not exist"),
        ("sort dangling", 1, "(file dangling, leads to nowhere)"),
        ("sort links", 1, "(file links/to, leads to nowhere)"),
        ("sort -c dangling", 2, "it is a dangling link"),
        ("terasort dangling out", 1, "it is a dangling link"),
        ("teravalidate dangling", 1, "it is a dangling link"),
        ("teravalidate sorted --against dangling", 1, "it is a dangling link"),
        ("teragen 5 dangling", 1, "there is a dangling link of this name"),
        ("sort loop", 1, "too many levels of symbolic links"),
        ("explain sort dangling", 1, "it is a dangling link"),
        # devices
        ("sort in.txt -o /dev/full", 1, "no space left on device (file /dev/full)"),
        # numbers
        ("sort in.txt --memory 1k", 1, "1.00 kB is too small for "),
        ("sort in.txt --memory 1k --workers 1", 1, " 1 worker: "),
        ("terasort data out --memory 1k", 1, "What to do: give --memory "),
        ("teragen 1b out --memory 1k", 1, " MB each, and the memory budget is 1.00 kB"),
        ("teragen 900b out", 1, "it needs 90.00 TB and the file system has "),
        ("wordcount in.txt out --memory 9999999G", 1, " TB. What to do: give a smaller --memory"),
        ("sort in.txt --memory 9999999999G", 2, '"9999999999G" is not a size of less than 8 EiB'),
        # checksums
        ("teravalidate sorted --against 0", 1, "and the checksum to compare with is 0."),
        ("teravalidate sorted --against 0", 1, "the files hold 100 records with checksum "),
        ("teravalidate sorted --against xyz", 1, "What to do: name the input of the sort, or the"),
        # empty names, and the dash
        ("sort --output=", 2, "the path of --output is empty. What to do: name a file"),
        ("sort in.txt --spill-dir=", 2, "a path of --spill-dir is empty. What to do: name a file"),
        ("distinct --csv --key= in.txt", 2, "a key names no column. What to do: give columns"),
        ("group --by= in.txt", 2, '"" is not the number of a field. What to do: give numbers'),
        ("terasort data -", 2, "the output is a directory, not standard output (-)"),
        ("teragen 5 -", 2, "the output is a directory, not standard output (-)"),
        ("wordcount data -", 2, "the output is a directory, not standard output (-)"),
        # what is not there
        ("sort --memroy 1G in.txt", 2, "Did you mean '--memory' or "),
        ("sort --memroy 1G in.txt", 2, "What to do: see gristmill sort --help."),
        ("explain -x", 2, "no such option '-x'"),
        ("explain job.py", 2, "What to do: gristmill run FILE --explain says"),
        ("explain teragen 5 x", 2, "no such command 'teragen'. What to do: see"),
        ("explain run job.py", 2, "What to do: gristmill run FILE --explain says"),
        ("explain streaming", 2, "What to do: add --explain to the command line of gristmill str"),
        ("explain sort -c in.txt", 2, "a check has no plan"),
        ("sort --version", 2, "Did you mean 'gristmill --version'? What to do"),
        ("jobs prun", 2, "no such command 'prun'. Did you mean 'prune'?"),
        ("hadoop foo", 2, "there is no command 'foo'. What to do: see gristmill hadoop --help."),
        ("hadoop streaming -input x", 2, "What to do: write gristmill streaming."),
        ("hadoop distcp a b", 25, "distcp: a: no such file or directory."),
        ("hadoop fs ls /", 2, "there is no command fs 'ls'. What to do: write -ls."),
        ("streaming -maper cat", 2, "Streaming: did you mean -mapper? What to do: see"),
        ("hadoop fs", 2, "fs needs a command. What to do: see gristmill hadoop --help."),
        ("hadoop fs -foo", 2, "there is no command fs '-foo'. What to do: see"),
        ("streaming -input dangling -output o -mapper cat", 5, "It is a dangling link: nowhere"),
    ],
)
def test_it_is_said(folder: Path, arguments: str, status: int, says: str) -> None:
    done = run(*arguments.split(), status=status, cwd=folder)
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert "?." not in done.stderr
    assert ".." not in done.stderr.replace("...", "")
    assert not RAW_NUMBER.search(done.stderr)
    assert "defect" not in done.stderr


@pytest.mark.parametrize(
    ("variable", "value", "arguments", "status"),
    [
        ("GRISTMILL_MEMORY", "lots", "sort in.txt", 2),
        ("GRISTMILL_MEMORY", "1k", "sort in.txt", 1),
        ("GRISTMILL_MEMORY", "1k", "terasort data out", 1),
        ("GRISTMILL_MEMORY", "1k", "teragen 5 out", 1),
        ("GRISTMILL_MEMORY", "-5", "explain sort in.txt", 2),
        ("GRISTMILL_MEMORY", "1k", "explain terasort data out", 1),
        ("GRISTMILL_WORKERS", "99999", "sort in.txt", 2),
        ("GRISTMILL_WORKERS", "1000", "sort in.txt --memory 20M", 1),
    ],
)
def test_the_variable_that_is_the_cause_is_named(
    folder: Path, variable: str, value: str, arguments: str, status: int
) -> None:
    says = run(*arguments.split(), status=status, cwd=folder, **{variable: value}).stderr
    assert says.endswith(f" The environment sets {variable} to '{value}'.\n")


def test_a_variable_that_is_not_the_cause_is_not_named(folder: Path) -> None:
    for arguments in ("sort none", "sort in.txt --format csv", "sort in.txt --memory 1k"):
        status = 2 if "csv" in arguments else 1
        done = run(*arguments.split(), status=status, cwd=folder, GRISTMILL_MEMORY="1G")
        assert "GRISTMILL" not in done.stderr


def test_explain_of_a_stream_says_what_is_not_known(folder: Path) -> None:
    for arguments in (["-"], [], ["in.txt", "-"]):
        shown = run("explain", "sort", *arguments, cwd=folder).stdout
        assert "standard input, whose length is not known" in shown
        assert "0 B" not in shown
        assert re.search(r"(?m)^  spill +\? +\? +\?$", shown)
        assert shown.endswith("No time is predicted: the length of the input is not known.\n")
    plan = json.loads(run("explain", "sort", "-", "--json").stdout)
    assert plan["streams"] == ["standard input"]


def test_commands_without_a_command_show_their_help() -> None:
    for name in ([], ["explain"], ["hadoop"]):
        done = run(*name, status=2)
        assert done.stdout == ""
        assert done.stderr.startswith(" ".join(["Usage: gristmill", *name]))
    for name in ("--help", "-h", "-help", "help"):
        shown = run("hadoop", name).stdout
        assert "jar .../hadoop-streaming.jar" in shown
        assert "-copyFromLocal" in shown


def test_control_characters_are_escaped_and_tabs_stay(folder: Path) -> None:
    name = "x\x1b[31m\n\x7f\x9b\u202e.txt"
    (folder / f"file {name}").touch()
    for arguments in (
        ["sort", name],
        ["terasort", name, "out"],
        ["sort", "in.txt", "-o", f"file {name}/a"],
    ):
        says = failure(*arguments, cwd=folder)
        assert "x\\x1b[31m\\n\\x7f" in says
        assert not any(ord(one) < 32 or 127 <= ord(one) < 160 for one in says.rstrip("\n"))
        assert "\u202e" not in says
    bad = folder / "bad"
    bad.mkdir()
    (folder / "data/part-m-00000").rename(bad / "part-\x1b[2J")
    done = run("teravalidate", bad, status=1)
    assert "\x1b" not in done.stdout + done.stderr
    assert "error\tmisorder in part-\\x1b[2J between" in done.stdout
    report = json.loads(run("teravalidate", bad, "--json", status=1).stdout)
    assert "\\x1b" in report["error"]["message"] or "\x1b" in report["error"]["message"]


def test_names_that_are_letters_are_shown_as_they_are(folder: Path) -> None:
    name = "\u30c7\u30fc\u30bf\u3000caf\u00e9 \U0001f468\u200d\U0001f469.txt"
    assert name in failure("sort", name, cwd=folder)


def test_output_for_programs_is_left_as_it_is(folder: Path) -> None:
    os.link(folder / "in.txt", folder / "a\x7f.txt")
    done = run("sort", "a\x7f.txt", "-o", "b\x7f", "--json", cwd=folder)
    assert json.loads(done.stdout)["records"] == 2
