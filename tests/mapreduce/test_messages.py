"""What users of `gristmill run` and `check` are told: the place, the cause, what to do."""

import gzip
import random
import shlex
from pathlib import Path

import pytest

from .harness import gristmill

HEAD = """
import gristmill as gm

def made(source, output=None, **options):
    return gm.Job(source, output=output or gm.jsonl("out"), **options)

def ones(line):
    yield line, 1
"""


def run(folder: Path, program: str, *arguments: str, status: int = 1) -> list[str]:
    """The lines on stderr of a job that fails."""
    (folder / "job.py").write_text(HEAD + program)
    done = gristmill("run", "job.py", *arguments, cwd=folder, status=status)
    assert not (folder / "out").exists()
    return done.stderr.splitlines()


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_a_record_that_is_not_text_has_one_place(tmp_path: Path, name: str) -> None:
    data = b"fine\n" * 4 + "caf\u00e9 at last\n".encode("latin-1") + b"fine\n"
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    program = f"job = made(gm.text({name!r}), map=ones, reduce=gm.sum())"
    first, *_, last = run(tmp_path, program)
    assert first.count(", offset ") == 1
    assert (first.count("(file "), first.count(name)) == (1, 2)
    assert f"(file {name}, offset 20, line 5, record " in first
    assert "byte 3 of the record" in first
    command = shlex.split(last.partition(": ")[2])
    again = gristmill(*command[command.index("retry") :], cwd=tmp_path, status=1)
    assert "byte 3 of the record" in again.stderr


def test_a_file_that_is_cut_short_is_not_its_last_whole_record(tmp_path: Path) -> None:
    draw = random.Random(1)
    lines = b"".join(b"%d\n" % draw.randrange(10**9) for _ in range(5000))
    (tmp_path / "a.gz").write_bytes(gzip.compress(lines)[:-2000])
    said = run(tmp_path, 'job = made(gm.text("a.gz"), map=ones, reduce=gm.sum())')
    assert "data are cut short (file a.gz, compressed offset " in said[0]
    assert "record" not in said[0].partition("decode")[2]
    assert not any("--only" in line for line in said)


@pytest.mark.parametrize("reduce", ["gm.sum()", "gm.mean()", "gm.max()"])
def test_nan_that_has_no_json_names_its_record(tmp_path: Path, reduce: str) -> None:
    (tmp_path / "a.jsonl").write_text('{"k": "x", "v": 1}\n{"k": "y", "v": NaN}\n')
    program = (
        f'job = made(gm.jsonl("a.jsonl"), map=lambda r: [(r["k"], r["v"] * 1.0)], reduce={reduce})'
    )
    said = run(tmp_path, program)[0]
    assert "('y', nan) has no JSON" in said
    assert said.endswith("or write another format.")


@pytest.mark.parametrize(
    ("record", "shown"),
    [("{'k': {1}}", "{'k': {1}} has no JSON"), ("b'x'", "b'x' has no JSON")],
)
def test_a_record_without_json_is_shown(tmp_path: Path, record: str, shown: str) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    said = run(tmp_path, f'job = made(gm.text("a.txt"), map=lambda line: [{record}])')[0]
    assert shown in said
    assert ") has" not in said.partition("What to do: ")[2]  # the place is not behind the advice


def test_an_error_of_the_user_s_keeps_its_type_whatever_it_says(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    for raised, shown in [("ValueError", "ValueError"), ("OSError", "OSError")]:
        program = f"""
def fails(line):
    raise {raised}("cannot be so")
job = made(gm.text("a.txt"), map=fails, reduce=gm.sum())
"""
        assert f"map fails: {shown}: cannot be so (" in run(tmp_path, program)[0]
        done = gristmill("check", "job.py", cwd=tmp_path, status=1)
        assert f"cannot check the job: {shown}: cannot be so (line " in done.stderr


def test_input_that_is_not_text_is_a_failure_of_check(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9\n")
    (tmp_path / "job.py").write_text(HEAD + 'job = made(gm.text("a.txt"), map=ones)')
    assert "byte 3" in gristmill("check", "job.py", cwd=tmp_path, status=1).stderr


CONTROL = "a\x1b[31m\n\u202eb.txt"


def test_control_characters_of_a_name_never_reach_a_terminal(tmp_path: Path) -> None:
    (tmp_path / CONTROL).write_text("x\n")
    program = 'job = made(gm.text("a*"), map=lambda line: [1 // 0], output=gm.text("out"))'
    said = run(tmp_path, program)
    assert "\\x1b[31m" in said[0]
    for line in said:
        assert line.isprintable()
    for status, arguments in (
        (2, ["none\x1b[31m.py"]),
        (2, ["job.py", "--input", "none\x1b[31m"]),
        (1, ["job.py", "--output", "none\x1b]0;title\x07/x"]),
    ):
        done = gristmill("run", *arguments, cwd=tmp_path, status=status)
        assert "\\x1b" in done.stderr
        assert not {"\x1b", "\x07"} & set(done.stdout + done.stderr)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in.txt").write_text("a\n")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/only.py").write_text("")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "job.py").write_text(
        f"""{HEAD}
five = 5
text = "hi"
several = [1, 2]
def needs(n, m="1"): return made(gm.text("in.txt"), map=ones)
def two(a, b, *rest, c="1", **more): return made(gm.text("in.txt"), map=ones)
def reads(input): return made(gm.text(input), map=ones)
def seven(): return 7
def broken(): return 1 // 0
job = made(gm.text("in.txt"), map=ones)
"""
    )
    for name, option in [
        ("unknown", 'encoding="utf-9"'),
        ("wide", 'encoding="utf-16"'),
        ("errors", 'errors="skip"'),
        ("empty", 'encoding=""'),
        ("nul", 'encoding="a\\0b"'),
    ]:
        (tmp_path / f"{name}.py").write_text(
            f'import gristmill as gm\n\njob = gm.Job(gm.text("in.txt", {option}))\n'
        )
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("inner", "inner: it is a directory. What to do: name a Python file in it, such as inne"),
        (".", "it is a directory"),
        ("dangling", "it is a dangling link: nowhere, to which it leads, does not exist"),
        ("loop", "it is a link that leads back to itself"),
        ("none.py", "none.py: it does not exist. What to do: check the name."),
        ("in.txt", "it is not a Python file. What to do: name a .py file."),
        ("/dev/null", "it is not a regular file"),
        ("job.py --job five", "five is 5, not a gm.Job. What to do: give --job job."),
        ("job.py --job text", "text is 'hi', not a gm.Job"),
        ("job.py --job several", "several is [1, 2], not a gm.Job"),
        ("job.py --job gm", "not a gm.Job"),
        ("job.py --job none", "it does not define none. What to do: give --job job."),
        ("job.py --job seven", "the function seven returned 7, not a gm.Job"),
        ("job.py --job broken", "(line "),
        ("job.py --job needs", "needs a value for n. What to do: give --set n=VALUE."),
        ("job.py --job two", "for a and b. What to do: give --set a=VALUE --set b=VALUE."),
        ("job.py --job two --set a=1", "needs a value for b. What to do: give --set b=VALUE."),
        ("job.py --job reads", "needs a value for input. What to do: give --input PATH."),
        ("job.py --job needs --set k=1", "has no such settings. What to do: set one of n, m."),
        ("job.py --set n=1", "defines a job, not a function"),
        ("unknown.py", "(line 3 of"),
        ("unknown.py", "there is no text encoding 'utf-9'. What to do: give for example 'utf"),
        ("empty.py", "there is no text encoding ''"),
        ("nul.py", "there is no text encoding 'a"),
        ("wide.py", "lines cannot be told apart in the encoding 'utf-16'"),
        ("errors.py", "there is no way 'skip' to handle errors. What to do: give for example"),
        ("job.py --output -", "a job writes a directory, not standard output"),
        ("job.py --output=", "the path of --output is empty"),
        ("job.py --input=", "a path of --input is empty"),
        ("job.py --input dangling", "dangling is a dangling link: nowhere, to which it leads"),
        ("job.py --input loop", "loop is a link that leads back to itself"),
        (
            "job.py --spill-dir in.txt",
            "in.txt is not a directory. What to do: give --spill-dir a dir",
        ),
        ("job.py --input none", "none does not exist. What to do: check the name."),
        ("job.py --memroy 1G", "Did you mean '--memory' or '--worker-memory'? What to do: see"),
        ("job.py --set", "'--set' requires an argument. What to do: see gristmill run --help"),
        ("job.py --workers 0", "'--workers': '0' is not a whole number from 1 on"),
        ("job.py --timeout nan", "--timeout is nan"),
        ("job.py --memory lots", '"lots" is not a size. What to do: write it like 512M'),
    ],
)
def test_a_wrong_command_line(folder: Path, arguments: str, says: str) -> None:
    done = gristmill("run", *arguments.split(), cwd=folder, status=2)
    first = done.stderr.splitlines()[0]
    assert says in first
    assert not any(wrong in first for wrong in ("?.", ". .", "defect", "<string>"))


@pytest.mark.parametrize("rounds", ["0", "-3", "x"])
def test_check_with_no_rounds_would_check_nothing(folder: Path, rounds: str) -> None:
    done = gristmill("check", "job.py", "--rounds", rounds, cwd=folder, status=2)
    assert "is not a whole number from 1 on" in done.stderr


def test_too_little_memory_is_said_in_one_kind_of_number(folder: Path) -> None:
    for more in ([], ["--explain"]):
        done = gristmill("run", "job.py", "--memory", "1k", *more, cwd=folder, status=1)
        assert "a memory budget of 1.00 kB is too small" in done.stderr
        assert " MB needed. What to do: give --memory " in done.stderr
