"""Scripts that go wrong: what is said, what is left, how to see it again."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import Run


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "in.txt").write_text("".join(f"line {number}\n" for number in range(1000)))
    return tmp_path


def script(home: Path, text: str) -> str:
    path = home / "script.py"
    path.write_text(f"#!/usr/bin/env python3\n{text}\n")
    return "script.py"


def words(home: Path, *more: str) -> list[str]:
    return [*more, "-input", str(home / "in.txt"), "-output", str(home / "out")]


def with_mapper(home: Path, text: str, *more: str, reduces: bool = False) -> list[str]:
    """The words of a command line whose mapper is a script that is sent along."""
    name = script(home, text)
    reducer = [] if reduces else ["-reducer", "NONE"]
    return words(home, *more, "-file", name, "-mapper", name, *reducer)


def defining(**properties: object) -> list[str]:
    """Properties for `-D`, written with `__` where their names have dots."""
    pairs = [f"{name.replace('__', '.')}={value}" for name, value in properties.items()]
    return [word for pair in pairs for word in ("-D", pair)]


ONCE = defining(mapreduce__map__maxattempts=1, mapreduce__reduce__maxattempts=1)
ONE_SPLIT = defining(mapreduce__job__maps=1)


def is_clean(home: Path) -> bool:
    return not [path for path in home.iterdir() if path.name.startswith((".", "out"))]


def test_a_failure_says_where_and_how_to_see_it_again(home: Path, streaming: Run) -> None:
    text = (
        "import sys\nfor line in sys.stdin:\n"
        "    if line == 'line 700\\n':\n        raise ValueError('bad ' + line)"
    )
    done = streaming(*with_mapper(home, text, *ONCE), cwd=home)
    assert done.returncode == 1
    said = done.stderr
    assert "cannot map a split: the mapper `script.py` ended with exit code 1" in said
    assert f"file {home}/in.txt" in said
    assert re.search(r"offset \d+, bytes \d+, split [01], records written to it \d+", said)
    assert "ValueError: bad line 700" in said
    assert "Traceback" in said
    assert is_clean(home)


def test_one_split_runs_again_alone(home: Path, streaming: Run) -> None:
    text = (
        "import os, sys\nlines = sys.stdin.readlines()\n"
        "print(os.environ['mapreduce_task_partition'], len(lines), os.environ['X'])\n"
        "sys.exit(os.environ['mapreduce_task_partition'] == '1')"
    )
    name = script(home, text)
    done = streaming(*words(home, "-files", name, "-cmdenv", "X=y", "-mapper", name), cwd=home)
    assert done.returncode == 1
    again = re.search(
        r"^To try it again alone: cd .* && .*(gristmill streaming .* --only-split \d)$",
        done.stderr,
        re.MULTILINE,
    )
    assert again is not None, done.stderr
    repeated = shlex.split(again[1])[2:]
    alone = streaming(*repeated, cwd=home)
    assert alone.returncode == 1
    assert "split 1" in alone.stderr
    other = [*repeated[:-1], "0"]
    assert streaming(*other, cwd=home).returncode == 0
    (part,) = (home / "out-split-0").glob("part-*")
    assert part.read_text().startswith("0 5")
    assert streaming(*repeated[:-1], "7", cwd=home).returncode == 2


def test_a_program_that_is_not_there(home: Path, streaming: Run) -> None:
    done = streaming(*words(home, "-mapper", "mapper.py"), cwd=home)
    assert done.returncode == 1
    assert "no program `mapper.py`" in done.stderr
    assert "-file path/to/mapper.py" in done.stderr
    assert "or name its whole path" in done.stderr
    done = streaming(*words(home, "-mapper", "/no/mapper.py"), cwd=home)
    assert done.returncode == 1
    assert "no program `/no/mapper.py`. What to do: ship it with the job, as in" in done.stderr
    assert "name its whole path" not in done.stderr
    done = streaming(*words(home, "-mapper", str(home)), cwd=home)
    assert done.returncode == 1
    assert f"it is a directory, not a program (file {home})" in done.stderr
    (home / "plain").write_text("#!/bin/sh\ncat\n")
    done = streaming(*words(home, "-mapper", str(home / "plain")), cwd=home)
    assert done.returncode == 1
    assert "permission denied" in done.stderr
    assert "chmod +x" in done.stderr


def test_grep_that_finds_nothing_gets_advice(home: Path, streaming: Run) -> None:
    job = [*ONCE, *words(home, "-mapper", "grep nothing", "-reducer", "NONE")]
    done = streaming(*job, cwd=home)
    assert done.returncode == 1
    advice = "-mapper grep ends with exit code 1 where no line matches. What to do: if that is what"
    assert advice in done.stderr
    setting = "stream.non.zero.exit.is.failure=false"
    assert f"add -D {setting}." in done.stderr
    assert streaming("-D", setting, *job, cwd=home).returncode == 0
    failing = streaming(*with_mapper(home, "raise SystemExit(1)", *ONCE, "--overwrite"), cwd=home)
    assert failing.returncode == 1
    assert setting not in failing.stderr


def test_scripts_run_where_a_relative_spill_dir_is(home: Path, streaming: Run) -> None:
    (home / "spill").mkdir()
    text = (
        "import os, sys\nsys.stdin.read()\n"
        "print(os.path.isabs(os.environ['mapreduce_task_output_dir']), os.getcwd())"
    )
    done = streaming(*with_mapper(home, text, "--spill-dir", "spill"), cwd=home)
    assert done.returncode == 0, done.stderr
    said = (home / "out" / "part-00000").read_text()
    assert said.startswith(f"True {home.resolve() / 'spill'}/"), said
    assert not list((home / "spill").iterdir())
    nowhere = streaming(*with_mapper(home, text, "--spill-dir", ""), "--overwrite", cwd=home)
    assert nowhere.returncode == 2
    assert "--spill-dir `` names nothing" in nowhere.stderr


def test_directories_that_a_script_may_not_write_go_too(home: Path, streaming: Run) -> None:
    text = (
        "import os, sys\nsys.stdout.write(sys.stdin.read())\n"
        "os.makedirs('modules/one')\nopen('modules/one/file', 'w').close()\n"
        "os.chmod('modules/one', 0o555)\nos.chmod('modules', 0o555)"
    )
    done = streaming(*with_mapper(home, text, *ONE_SPLIT), cwd=home)
    assert done.returncode == 0, done.stderr
    assert "line 999" in (home / "out" / "part-00000").read_text()
    assert sorted(path.name for path in home.iterdir()) == ["in.txt", "out", "script.py"]


@pytest.mark.parametrize(
    ("begin", "said"),
    [
        ("#!/usr/bin/env python3\r\n", " cannot start: its first line ends in a carriage return"),
        ("#!/no/python2.4\r\n", " cannot start: its first line ends in a carriage return"),
        ("#!/no/python2.4\n", " begins with #!/no/python2.4, which is not there. What to do: ins"),
        ("#!/usr/bin/env py24\n", ": it begins with #!/usr/bin/env py24, and py24 is not there on"),
        ("import sys\n", ": its first line is no #! line"),
        ("#!/usr/bin/env python3\n", ""),
    ],
)
def test_a_first_line_that_means_something_else(
    home: Path, streaming: Run, begin: str, said: str
) -> None:
    (home / "script.py").write_bytes(f"{begin}import sys\nprint(sys.stdin.read())\n".encode())
    job = words(home, "-file", "script.py", "-mapper", "./script.py", "-reducer", "NONE")
    done = streaming(*job, *ONCE, cwd=home)
    assert done.returncode == (1 if said else 0), done.stderr
    assert f"-mapper script.py{said}" in done.stderr if said else "-mapper" not in done.stderr
    assert not ("carriage" in done.stderr and "install" in done.stderr)


def test_carriage_returns_in_a_script_that_a_shell_is_given(home: Path, streaming: Run) -> None:
    (home / "crlf.sh").write_bytes(b"cat\r\n")
    job = words(home, "-file", "crlf.sh", "-mapper", "bash crlf.sh", "-reducer", "NONE")
    done = streaming(*job, *ONCE, cwd=home)
    assert "-mapper crlf.sh: its lines end in a carriage return, which bash takes" in done.stderr


def test_an_output_below_a_file(home: Path, streaming: Run) -> None:
    done = streaming(
        "-input", str(home / "in.txt"), "-output", str(home / "in.txt" / "x"), "-mapper", "cat"
    )
    assert done.returncode == 1
    assert "it is a file" in done.stderr
    assert "What to do: " in done.stderr
    assert is_clean(home)


def test_what_holds_the_output_of_a_script_that_has_ended(home: Path, streaming: Run) -> None:
    limits = defining(mapreduce__task__timeout=2000)
    text = "import subprocess\nsubprocess.Popen(['sleep', '1000'])\nprint('done')"
    done = streaming(*with_mapper(home, text, *limits, *ONCE, *ONE_SPLIT), cwd=home)
    assert done.returncode == 1
    assert "has ended, but something that it began holds its pipes open" in done.stderr
    assert "for 2 s" in done.stderr
    assert is_clean(home)


def test_a_script_that_hangs(home: Path, streaming: Run) -> None:
    began = time.monotonic()
    limits = defining(
        mapreduce__task__timeout=500,
        mapred__map__max__attempts=1,
        mapreduce__reduce__maxattempts=1,
    )
    text = "import time\ntime.sleep(1000)"
    done = streaming(*with_mapper(home, text, *limits, reduces=True), cwd=home)
    assert done.returncode == 1
    assert "for 0.5 s, and was killed" in done.stderr
    assert "mapreduce.task.timeout" in done.stderr
    assert time.monotonic() - began < 30


def test_a_script_that_speaks_is_not_killed(home: Path, streaming: Run) -> None:
    text = (
        "import sys, time\nsys.stdin.read()\n"
        "for i in range(20):\n    time.sleep(0.2)\n    print('reporter:status:working', "
        "file=sys.stderr, flush=True)\n"
        "print('done')"
    )
    limit = defining(mapreduce__task__timeout=3000)  # an interpreter may take one to start
    done = streaming(*with_mapper(home, text, *limit, reduces=True), cwd=home)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("allowed", "code", "tries"), [("true", 1, 3), ("false", 0, 1)])
def test_attempts_and_exit_codes(
    home: Path, streaming: Run, allowed: str, code: int, tries: int
) -> None:
    log = home / "log"
    text = f"open({str(log)!r}, 'a').write('tried\\n')\nimport sys\nsys.exit(9)"
    more = defining(
        stream__non__zero__exit__is__failure=allowed,
        mapreduce__map__maxattempts=3,
        mapreduce__reduce__maxattempts=2,
    )
    done = streaming(*with_mapper(home, text, *more, *ONE_SPLIT), cwd=home)
    assert done.returncode == code, done.stderr
    assert log.read_text().count("tried") == tries


def test_a_reduce_has_attempts_of_its_own(home: Path, streaming: Run) -> None:
    log = home / "log"
    fails = f"import sys\nopen({str(log)!r}, 'a').write('tried\\n')\nsys.exit(9)"
    (home / "fails.py").write_text(f"#!{sys.executable}\n{fails}")
    (home / "fails.py").chmod(0o755)
    words = ["-input", "in.txt", "-output", "out", "-mapper", "cat", "-reducer", "./fails.py"]
    (home / "in.txt").write_text("a\n")
    more = defining(mapreduce__reduce__maxattempts=2)
    done = streaming("-file", "fails.py", *more, *words, cwd=home)
    assert (done.returncode, log.read_text().count("tried")) == (1, 2), done.stderr
    assert "has no effect" not in done.stderr


def test_a_failure_that_passes_leaves_no_trace(home: Path, streaming: Run) -> None:
    flag = home / "flag"
    text = (
        f"import os, sys\nprint(sys.stdin.read().count('\\n'))\nprint('reporter:counter:a,b,1', "
        f"file=sys.stderr)\n"
        f"if not os.path.exists({str(flag)!r}):\n    open({str(flag)!r}, 'w')\n    sys.exit(1)"
    )
    done = streaming(*with_mapper(home, text, *ONE_SPLIT, reduces=True), "--json", cwd=home)
    assert done.returncode == 0, done.stderr
    assert (home / "out/part-00000").read_text() == "1000\t\n"
    assert json.loads(done.stdout)["user_counters"] == {"a": {"b": 1}}


def test_killed_by_a_signal(home: Path, streaming: Run) -> None:
    text = "import os\nos.kill(os.getpid(), 11)"
    done = streaming(*with_mapper(home, text, *ONCE, reduces=True), cwd=home)
    assert done.returncode == 1
    assert "signal 11 (SEGV)" in done.stderr


def test_ctrl_c_ends_the_scripts_too(home: Path) -> None:
    mark = home / "pid"
    text = f"import os, time\nopen({str(mark)!r}, 'w').write(str(os.getpid()))\ntime.sleep(1000)"
    command = [sys.executable, "-m", "gristmill", "streaming"]
    command += with_mapper(home, text, *ONE_SPLIT, reduces=True)
    with subprocess.Popen(command, cwd=home, stderr=subprocess.PIPE) as job:
        deadline = time.monotonic() + 60
        while not (mark.exists() and mark.read_text()) and time.monotonic() < deadline:
            time.sleep(0.02)
        job.send_signal(signal.SIGINT)
        assert job.wait(30) == 130
    state = Path(f"/proc/{mark.read_text()}/stat")
    assert not state.exists() or ") Z " in state.read_text()
    assert is_clean(home)


def test_scripts_end_with_a_job_that_is_killed(home: Path) -> None:
    mark = home / "pid"
    text = f"import os, time\nopen({str(mark)!r}, 'w').write(str(os.getpid()))\ntime.sleep(1000)"
    command = [sys.executable, "-m", "gristmill", "streaming"]
    command += with_mapper(home, text, *ONE_SPLIT, reduces=True)
    with subprocess.Popen(command, cwd=home, stderr=subprocess.DEVNULL) as job:
        deadline = time.monotonic() + 60
        while not (mark.exists() and mark.read_text()) and time.monotonic() < deadline:
            time.sleep(0.02)
        job.kill()
        job.wait(30)
    state = Path(f"/proc/{mark.read_text()}/stat")
    while state.exists() and ") Z " not in state.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not state.exists() or ") Z " in state.read_text()


def test_side_files_become_output_of_those_that_count(home: Path, streaming: Run) -> None:
    text = (
        "import os, sys\nsys.stdin.read()\nfolder = os.environ['mapreduce_task_output_dir']\n"
        "number = os.environ['mapreduce_task_partition']\n"
        "open(f'{folder}/side-{number}', 'w').write('beside')"
    )
    done = streaming(*with_mapper(home, text), cwd=home)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (home / "out").iterdir() if path.name[0] != "_") == [
        "part-00000",
        "part-00001",
        "side-0",
        "side-1",
    ]


@pytest.mark.parametrize(
    ("act", "said"),
    [
        ("open(part, 'w').write('mine' * 1_000_000)", "and now the file has 4000000"),
        ("os.remove(part)", "and now there is no file"),
    ],
)
def test_a_part_is_its_tasks_alone(home: Path, streaming: Run, act: str, said: str) -> None:
    text = (
        "import os, sys, time\nsys.stdin.read()\nfolder = os.environ['mapreduce_task_output_dir']\n"
        "part = f'{folder}/part-00000'\nprint('x' * 1_000_000, flush=True)\n"
        "while not os.path.exists(part):\n    time.sleep(0.01)\n"
        f"{act}"
    )
    done = streaming(*with_mapper(home, text, *ONE_SPLIT, *ONCE), cwd=home)
    assert done.returncode == 1
    assert said in done.stderr
    assert "What to do: let no script or function write to the task's own part" in done.stderr
    assert is_clean(home)


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="there is no such file")
def test_what_says_that_it_is_empty_is_not_passed_over(home: Path, streaming: Run) -> None:
    def read(path: str | Path) -> subprocess.CompletedProcess[str]:
        return streaming("-input", path, "-output", home / "out", "-mapper", "cat", cwd=home)

    done = read("/proc/version")
    assert done.returncode == 1
    assert "it says that it is empty, and it is not" in done.stderr
    os.mkfifo(home / "pipe")
    done = read(home / "pipe")
    assert done.returncode == 2
    assert "cannot be cut into splits" in done.stderr
    assert is_clean(home)
    assert read("/dev/null").returncode == 0
