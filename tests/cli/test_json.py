"""`--json` prints one JSON value whatever happens, in every command that has it."""

import json
from pathlib import Path

import click
import pytest

from gristmill.cli.program import the_program

from .harness import Done, run

#: What makes each command fail, or at least run: options and arguments that are wrong or missing.
FAILING: dict[str, list[str]] = {
    "bench compare": ["no", "such"],
    "bench report": ["no"],
    "bench run": ["wordcount", "--rounds", "0"],
    "check": ["no.py"],
    "demo": ["--workers", "0"],
    "doctor": ["--spill-dir", "no/such", "--temp-dir", "no/such"],
    "jobs prune": ["--older-than", "x"],
    "jobs show": ["nosuch"],
    "jobs": ["--limit", "x"],
    "resume": ["nosuch"],
    "run": ["no.py"],
    "scale fit": ["nosuch"],
    "scale run": ["--workers", "1,2,4", "--", "no-such-job"],
    "sort": ["no", "-o", "out"],
    "streaming": ["-input", "no", "-output", "out", "-mapper", "cat"],
    "teragen": ["x", "out"],
    "terasort": ["no", "out"],
    "teravalidate": ["no"],
    "wordcount": ["no", "out"],
    "distinct": ["no", "-o", "out"],
    "group": ["no", "-o", "out"],
    "join": ["no", "no", "-o", "out", "--by", "1"],
    "sample": ["no", "-o", "out", "-n", "1"],
    "shuf": ["no", "-o", "out"],
    "split": ["--by", "1", "no", "out"],
    "top": ["1", "no", "-o", "out"],
    "matchcount": ["x", "no", "out"],
    "cp": ["no", "out"],
}


def _with_json(command: click.Command, path: tuple[str, ...] = ()) -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    if path and any("--json" in param.opts for param in command.params):
        found[" ".join(path)] = command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            found |= _with_json(below, (*path, name))
    return found


COMMANDS = sorted({*_with_json(the_program()), "streaming"})


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "grep"])
def test_a_failure_is_json(name: str, tmp_path: Path) -> None:
    words = FAILING.get(name.removeprefix("explain "))
    if words is None:
        pytest.fail(f"{name} has --json: say in FAILING how it fails")
    at = words.index("--") if "--" in words else len(words)
    asked = [*name.split(), *words[:at], "--json", *words[at:]]
    where = {"GRISTMILL_HOME": str(tmp_path / "home")}
    done = _ended(asked, tmp_path, where)
    assert done.stdout.count("\n") == 1, done
    assert json.loads(done.stdout) is not None
    if done.status:
        assert done.stderr.startswith("gristmill")


def _ended(asked: list[str], folder: Path, where: dict[str, str]) -> Done:
    for status in (1, 2, 5, 0):
        try:
            return run(*asked, status=status, cwd=folder, **where)
        except AssertionError as error:
            last = error
    raise last


def test_plans_of_functions_and_scripts_are_json(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a b\n")
    (tmp_path / "wc.py").write_text(
        "import gristmill as gm\n"
        "job = gm.Job(gm.text('in.txt'), map=lambda line: [(line, 1)], reduce=gm.sum(),"
        " output=gm.kv('out'))\n"
    )
    plan = json.loads(run("run", "wc.py", "--explain", "--json", cwd=tmp_path).stdout)
    assert (plan["mode"], plan["files"], plan["then"]) == ("runs", 1, [])
    streamed = run("streaming", "-input", "in.txt", "-output", "out", "-mapper", "cat",
                   "--explain", "--json", cwd=tmp_path)  # fmt: skip
    explained = dict(json.loads(streamed.stdout)["explained"])
    assert explained["input"] == "in.txt: lines"
    assert explained["mapper"].startswith("cat; ")


def test_a_failure_says_why(tmp_path: Path) -> None:
    done = run("jobs", "show", "nosuch", "--json", status=1, GRISTMILL_HOME=str(tmp_path))
    found = json.loads(done.stdout)
    assert (found["status"], found["exit_code"]) == ("failed", 1)
    assert "nosuch" in found["error"]["message"]
    assert found["error"]["message"] in done.stderr
