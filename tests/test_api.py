"""The Python functions: what they take, return and raise.

And that they, the command line and the engine's table speak of the same options.
"""

import inspect
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import click
import pytest

import gristmill
from gristmill import _core, functions
from gristmill.cli.generated import command_of
from gristmill.cli.gnu import gnu_sort
from gristmill.options import Command, commands
from gristmill.report import Failure, JobReport, Phase

FUNCTIONS: dict[str, Callable[..., JobReport]] = {
    name: getattr(gristmill, command.function) for name, command in commands().items()
}

COMMANDS = pytest.mark.parametrize("command", commands().values(), ids=lambda found: found.name)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """1,000 records."""
    gristmill.teragen(1000, tmp_path / "in")
    return tmp_path / "in"


# --- one table, three faces ---


def test_every_command_is_a_public_function() -> None:
    names = {function.__name__ for function in FUNCTIONS.values()}
    assert len(names) == len(FUNCTIONS)
    assert names <= set(gristmill.__all__)


def test_the_stub_is_that_of_the_table() -> None:
    written = Path(functions.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    assert written == functions.stub(), "run `make format`"


@COMMANDS
def test_a_function_takes_the_options_of_the_table(command: Command) -> None:
    parameters = inspect.signature(FUNCTIONS[command.name]).parameters
    assert list(parameters) == [*(option.name for option in command.options), "history"]
    for option in command.options:
        parameter = parameters[option.name]
        if option.positional:
            assert parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
            assert (parameter.default is inspect.Parameter.empty) == (option.default == "")
        else:
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
            # A default is that of the table, or None, which leaves it to the engine.
            wanted = (None, False) if option.default else (inspect.Parameter.empty,)
            assert parameter.default in wanted or str(parameter.default) == option.default
            assert (parameter.default is False) == (option.kind == "flag")


@COMMANDS
def test_the_command_line_takes_the_options_of_the_table(command: Command) -> None:
    parameters = {parameter.name: parameter for parameter in command_of(command).params}
    assert list(parameters) == [
        *(option.name for option in command.options),
        "history",
        *(option.name for option in (gnu_sort.more_options() if command.name == "sort" else ())),
        "as_json",
    ]
    for option in command.options:
        parameter = parameters[option.name]
        assert isinstance(parameter, click.Argument) == option.positional
        if isinstance(parameter, click.Option):
            letters = [f"-{option.short}"] if option.short else []
            more = gnu_sort.ALIASES.get(option.name, ()) if command.name == "sort" else ()
            assert parameter.opts == [*letters, f"--{option.name.replace('_', '-')}", *more]
            assert parameter.is_flag == (option.kind == "flag")
            assert parameter.envvar == (option.environment or None)


@COMMANDS
def test_a_docstring_names_every_option(command: Command) -> None:
    text = inspect.getdoc(FUNCTIONS[command.name]) or ""
    assert text.startswith(command.help)
    for option in command.options:
        assert f"\n    {option.name}: " in text


# --- reports ---


def test_a_report_has_the_fields_of_the_engine(tmp_path: Path) -> None:
    job = _core.Job(json.dumps({"teragen": {"rows": "1", "output": str(tmp_path / "a")}}), "job_1")
    assert job.wait(30)
    found = json.loads(job.report())
    assert list(found) == [field.name for field in fields(JobReport)]
    assert list(found["phases"][0]) == [field.name for field in fields(Phase)]
    assert JobReport.from_json(job.report()).to_json() == json.dumps(found)


def test_a_failure_has_the_fields_of_the_engine(tmp_path: Path) -> None:
    job = _core.Job(json.dumps({"teravalidate": {"input": str(tmp_path / "a")}}), "job_1")
    assert job.wait(30)
    found = json.loads(job.report())
    assert list(found["error"]) == [field.name for field in fields(Failure)]
    assert JobReport.from_json(job.report()).to_json() == json.dumps(found)


def test_reports_are_typed_and_frozen(data: Path, tmp_path: Path) -> None:
    report = gristmill.terasort(data, tmp_path / "out")
    assert is_dataclass(report)
    assert isinstance(report.phases[0], Phase)
    assert (report.status, report.records, report.error) == ("succeeded", 1000, None)
    with pytest.raises(AttributeError):
        report.records = 2  # pyright: ignore[reportAttributeAccessIssue]


def test_job_ids_are_not_given_twice(tmp_path: Path) -> None:
    made = [gristmill.teragen(1, tmp_path / name).job_id for name in "abc"]
    assert len(set(made)) == 3


# --- what they take ---


@pytest.mark.parametrize("rows", [2000, "2000", "2k"])
def test_rows(rows: int | str, tmp_path: Path) -> None:
    assert gristmill.teragen(rows, str(tmp_path / "out")).records == 2000


@pytest.mark.parametrize("memory", [80_000_000, "80M", "80000000", "0.08G"])
def test_memory(memory: int | str, data: Path, tmp_path: Path) -> None:
    report = gristmill.terasort(data, tmp_path / "out", memory=memory, workers=1)
    assert report.memory_bytes == 80_000_000


def test_one_input_or_several(data: Path, tmp_path: Path) -> None:
    one = data / "part-m-00000"
    assert gristmill.terasort(str(one), tmp_path / "a").records == 1000
    assert gristmill.terasort([one, str(one)], tmp_path / "b").records == 2000
    assert gristmill.terasort((path for path in (data, one)), tmp_path / "c").records == 2000


def test_against(data: Path, tmp_path: Path) -> None:
    checksum = gristmill.terasort(data, tmp_path / "out").checksum
    for against in (data, str(data), checksum):
        assert gristmill.teravalidate(tmp_path / "out", against=against).checksum == checksum


# --- what they raise ---


def raised(kind: type[Exception], job: Callable[[], object]) -> JobReport:
    """What a job must raise; returns its report."""
    with pytest.raises(kind, match=r"^cannot ") as caught:
        job()
    report = gristmill.report_of(caught.value)
    assert report is not None
    assert report.status == "failed"
    assert report.error is not None
    assert report.error.message == str(caught.value)
    return report


def test_exceptions(data: Path, tmp_path: Path) -> None:
    out, nothing = tmp_path / "out", tmp_path / "nothing"
    (tmp_path / "odd").write_bytes(bytes(150))
    raised(FileNotFoundError, lambda: gristmill.terasort(nothing, out))
    raised(FileExistsError, lambda: gristmill.terasort(data, tmp_path / "odd"))
    raised(MemoryError, lambda: gristmill.terasort(data, out, memory="1M"))
    raised(ValueError, lambda: gristmill.terasort(tmp_path / "odd", out))
    report = raised(ValueError, lambda: gristmill.teravalidate(data))
    assert report.misorders == 483
    assert report.report[0] == "checksum\t1f9ffe645ec"
    assert not out.exists()


@pytest.mark.parametrize(
    "options",
    [
        {"rows": -1},
        {"rows": "ten"},
        {"rows": 10, "layout": "wings"},
        {"rows": 10, "workers": 1.5},
        {"rows": 10, "workers": -1},
        {"rows": 10, "memory": "8 parsecs"},
        {"rows": 10, "files": "3"},
    ],
)
def test_wrong_options(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^cannot read the options: ") as caught:
        gristmill.teragen(output=tmp_path / "out", **options)
    assert gristmill.report_of(caught.value) is None


def test_a_number_of_workers_beyond_reason(tmp_path: Path) -> None:
    report = raised(ValueError, lambda: gristmill.teragen(10, tmp_path / "out", workers=10**6))
    assert report.error is not None
    assert report.error.kind == "bad_option"


def test_ctrl_c_cancels(tmp_path: Path) -> None:
    """`KeyboardInterrupt` comes up, but only after the job has cleaned up."""
    script = (
        "import sys, gristmill\n"
        "try: gristmill.teragen('20m', sys.argv[1])\n"
        "except KeyboardInterrupt: sys.exit(42)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, tmp_path / "out"],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    deadline_s = time.monotonic() + 20
    while not list(tmp_path.iterdir()) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 42
    assert list(tmp_path.iterdir()) == []


def test_a_job_that_is_let_go_cleans_up_first(tmp_path: Path) -> None:
    """As when Ctrl-C comes after it has begun, and before anybody waits for it."""
    out = tmp_path / "out"
    job = _core.Job(json.dumps({"teragen": {"rows": "20m", "output": str(out)}}), "job_1_1")
    deadline_s = time.monotonic() + 20
    while not list(tmp_path.iterdir()) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert list(tmp_path.iterdir())
    del job
    assert list(tmp_path.iterdir()) == []


# --- the package ---


def test_importing_is_light() -> None:
    """The command line imports the package at every start."""
    script = "import gristmill, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=True
    )
    loaded = set(done.stdout.split())
    assert not loaded & {"click", "rich", "json", "dataclasses", "inspect", "gristmill.job"}


def test_public_names() -> None:
    for name in gristmill.__all__:
        assert getattr(gristmill, name) is not None
    assert set(gristmill.__all__) <= set(dir(gristmill))
    with pytest.raises(AttributeError, match="no attribute 'wings'"):
        _ = gristmill.wings  # pyright: ignore
