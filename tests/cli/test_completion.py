"""`gristmill completion`: a shell completes commands, options, words of options, files and jobs.

bash runs here as a user has it, with readline's words. For zsh and fish the answers are checked,
and their scripts where the shell is installed.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gristmill.cli.commands.completion import SHELLS, VARIABLE, script

from .harness import clean_environment, run

PROGRAM = Path(sys.executable).with_name("gristmill")

# Sources the script, and completes as a Tab at the end of the line would.
COMPLETE = r"""
source script.bash
read -ra COMP_WORDS <<< "$1"
[[ $1 == *' ' ]] && COMP_WORDS+=("")
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
compopt() { echo "shell: $2"; }
_gristmill_completion gristmill
printf '%s\n' "${COMPREPLY[@]}"
"""


def completed(line: str, folder: Path, **environment: str) -> list[str]:
    """What bash offers at the end of a line."""
    (folder / "script.bash").write_text(script("bash"))
    path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", COMPLETE, "bash", line],
        capture_output=True,
        text=True,
        cwd=folder,
        env=clean_environment(PATH=path, **environment),
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("gristmill tera", ["teragen", "terasort", "teravalidate"]),
        ("gristmill terasort --mem", ["--memory"]),
        ("gristmill terasort --runner ", ["threads", "processes"]),
        ("gristmill terasort --runner=p", ["processes"]),
        ("gristmill explain terasort --mem", ["--memory"]),
        ("gristmill jobs sh", ["show"]),
        ("gristmill streaming -mapp", ["-mapper"]),
        ("gristmill completion ", ["bash", "zsh", "fish"]),
        ("gristmill bench run s", ["sort", "shuffle", "split-size"]),
        ("gristmill hadoop f", ["fs"]),
        ("gristmill hadoop fs -get", ["-get", "-getmerge"]),
        ("gristmill --ver", ["--version"]),
        ("gristmill no-such-command --mem", [""]),
    ],
)
def test_bash_completes(line: str, offered: list[str], tmp_path: Path) -> None:
    assert completed(line, tmp_path) == offered


@pytest.mark.parametrize(
    "line",
    [
        "sort ",
        "sort -o ",
        "run ",
        "terasort a ",
        "streaming -input ",
        "scale fit r",
        "bench run j",
        "bench compare a ",
    ],
)
def test_bash_completes_files_itself(line: str, tmp_path: Path) -> None:
    assert completed(f"gristmill {line}", tmp_path) == ["shell: default", ""]


def test_what_a_terminal_types_is_not_read(tmp_path: Path) -> None:
    """The shell's terminal is the standard input: a sort would say that it reads it."""
    ours, theirs = os.openpty()
    for words in ("gristmill sort --co", "gristmill grep --co", "gristmill scale fit --pl"):
        asked = {VARIABLE: "bash_complete", "COMP_WORDS": words}
        done = subprocess.run(
            [PROGRAM], stdin=theirs, capture_output=True, text=True, cwd=tmp_path,
            env=clean_environment(**asked, COMP_CWORD=str(words.count(" "))), timeout=60,
            check=True,
        )  # fmt: skip
        assert done.stderr == ""
        assert done.stdout.startswith("plain,--")
    os.close(ours)
    os.close(theirs)


def test_bash_completes_jobs(tmp_path: Path) -> None:
    for name in ("job_1_1", "job_2_1"):
        (tmp_path / "jobs" / name).mkdir(parents=True)
        (tmp_path / "jobs" / name / "events.jsonl").touch()
    for command in ("jobs show", "report", "resume"):
        offered = completed(f"gristmill {command} ", tmp_path, GRISTMILL_HOME=str(tmp_path))
        assert offered == ["last", "job_2_1", "job_1_1"], command


def test_every_command_and_option_is_offered(tmp_path: Path) -> None:
    offered = set(completed("gristmill ", tmp_path))
    for line in run("--help").stdout.splitlines():
        if found := re.match(r"(?:[A-Z][\w ]*|) {2,}([a-z]+(?: [a-z]+)*) {2,}", line):
            assert set(found[1].split()) <= offered
    options = set(re.findall(r"(?m)^  (?:-\w, )?(--[a-z-]+)", run("terasort", "--help").stdout))
    assert len(options) > 10
    assert options <= set(completed("gristmill terasort --", tmp_path))


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_has_a_script(shell: str, tmp_path: Path) -> None:
    text = run("completion", shell).stdout
    assert f"{VARIABLE}={shell}_complete" in text
    program = shutil.which(shell)
    if program is None:  # its own parser is for where it is
        return
    path = tmp_path / "script"
    path.write_text(text)
    subprocess.run([program, "-n", path], check=True, timeout=60)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_answers_have_descriptions(shell: str) -> None:
    asked = {VARIABLE: f"{shell}_complete", "COMP_WORDS": "gristmill terasort --mem"}
    cursor = "--mem" if shell == "fish" else "2"
    answer = run(**asked, COMP_CWORD=cursor).stdout
    assert re.match(r"plain[\n,]--memory[\n,\t].*memory", answer), answer


def test_a_wrong_shell_is_refused() -> None:
    assert "bash" in run("completion", "tcsh", status=2).stderr
