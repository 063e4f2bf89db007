"""Options that make no sense: each is refused by its name, as it was typed, with what it takes."""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.mapreduce.harness import gristmill, total

import gristmill as gm
from gristmill.cli.mapreduce.run import run as run_command
from gristmill.mapreduce import typed
from gristmill.mapreduce.run_options import typed_module
from gristmill.options import HISTORY, Option, user_code
from gristmill.streaming.options import option_named

NAN, FOREVER = float("nan"), float("inf")

WRONG_TYPES: dict[str, list[Any]] = {
    "workers": ["2", 1.0, True, [1], b"1"],
    "nodes": ["2", 1.0, True],
    "attempts": ["3", 1.5, False],
    "timeout_s": ["5", True, [1], b"1"],
    "memory": [True, 1.5, NAN, b"1G", [1]],
    "worker_memory": [True, 1.5, b"1G"],
    "spill_dir": [5, [5]],
    "overwrite": ["yes", 1],
    "no_sync": ["no", 0],
    "history": ["x"],
    "progress": ["x", 1],
}

WRONG_VALUES: dict[str, list[Any]] = {
    "workers": [-1, 0, 1025, 2**40, 2**70, np.int64(-1)],
    "nodes": [-1, 0, 2**70],
    "attempts": [-1, 0, 1001, 2**70],
    "timeout_s": [NAN, -1, 0, FOREVER, -FOREVER, 1e300, 1e-9, 10**400],
    "memory": [-1, 0, "", "x", "-5M", 10**30],
    "worker_memory": [-1, 0, "", "x", "1e3", 10**30, "9" * 400],
    "spill_dir": ["", ["/tmp", ""]],
}


def cases(table: dict[str, list[Any]]) -> list[Any]:
    return [
        pytest.param(name, value, id=f"{name}={value!r:.20}")
        for name, values in table.items()
        for value in values
    ]


def once(record: Any) -> Iterator[tuple[Any, int]]:
    yield record, 1


def make(folder: Path, **options: Any) -> gm.Job:
    given = {"map": once, "reduce": total, "output": gm.kv(folder / "out"), **options}
    return gm.Job(gm.items([1, 2]), **given)


def refused(kind: type[Exception], name: str, run: Callable[[], object]) -> None:
    with pytest.raises(kind) as caught:
        run()
    said = str(caught.value)
    assert re.match(rf"cannot [a-z ]+: {re.escape(name)}\b.* What to do: .+\.$", said), said
    assert "\n" not in said
    assert len(said) < 400


@pytest.mark.parametrize(("name", "value"), cases(WRONG_TYPES))
def test_an_option_of_a_wrong_type(tmp_path: Path, name: str, value: Any) -> None:
    refused(TypeError, name, lambda: make(tmp_path).run(**{name: value}))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "value"), cases(WRONG_VALUES))
def test_an_option_of_a_wrong_value(tmp_path: Path, name: str, value: Any) -> None:
    refused(ValueError, name, lambda: make(tmp_path).run(**{name: value}))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("run", ["explain", "run_all"])
def test_the_same_elsewhere(tmp_path: Path, run: str) -> None:
    def call(**options: Any) -> object:
        job = make(tmp_path)
        return job.explain(**options) if run == "explain" else gm.run_all([job], **options)

    refused(ValueError, "workers", lambda: call(workers=-1))
    refused(TypeError, "workers", lambda: call(workers="2"))
    refused(ValueError, "memory", lambda: call(memory="x"))
    refused(TypeError, "memory", lambda: call(memory=1.5))


@pytest.mark.parametrize("given", [5, [5], "abc"])
def test_what_is_no_list_of_jobs(given: Any) -> None:
    with pytest.raises(TypeError, match=r"^cannot run .*give a list of jobs"):
        gm.run_all(given)
    with pytest.raises(TypeError, match=r"^cannot run <Job .*give a list of jobs"):
        gm.run_all(gm.Job(gm.items([]), map=once))  # type: ignore[arg-type] - that is the test


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (TypeError, "parts", True),
        (TypeError, "parts", 1.5),
        (ValueError, "parts", -1),
        (ValueError, "parts", 2**70),
        (TypeError, "skip_bad", True),
        (ValueError, "skip_bad", -1),
        (ValueError, "skip_bad", 2**70),
        (TypeError, "split_min", True),
        (TypeError, "split_min", 1.5),
        (ValueError, "split_min", "5Q"),
        (ValueError, "split_max", 0),
        (TypeError, "name", 5),
        (TypeError, "files", 5),
        (TypeError, "files", [5]),
        (TypeError, "outputs", 5),
        (TypeError, "outputs", ["a"]),
        (TypeError, "the name of an output", {3: gm.kv()}),
        (TypeError, "map", 5),
        (TypeError, "output", "x"),
        (TypeError, "partition_by", 5),
    ],
)
def test_what_a_job_cannot_be_made_with(
    tmp_path: Path, kind: type[Exception], name: str, value: Any
) -> None:
    option = "outputs" if name == "the name of an output" else name
    refused(kind, name, lambda: make(tmp_path, **{option: value}))


def test_paths_that_are_none() -> None:
    for given in (5, [5]):
        with pytest.raises(TypeError, match=r"^cannot make the job: the path is .* to do: give"):
            gm.text(given)  # type: ignore[arg-type] - that is the test


def test_numbers_of_numpy_and_folders_that_come_one_by_one(tmp_path: Path) -> None:
    job = make(tmp_path, parts=np.int64(2))
    result = job.run(
        workers=np.int32(1),  # type: ignore[arg-type] - has __index__
        attempts=np.uint8(2),  # type: ignore[arg-type]
        timeout_s=np.float32(60),  # type: ignore[arg-type]
        memory=np.int64(100_000_000),  # type: ignore[arg-type]
        spill_dir=(folder for folder in [tmp_path]),
        no_sync=True,
    )
    assert dict(result.read()) == {1: 1, 2: 1}
    assert len(result.files()) == 2


@pytest.mark.parametrize("option", (*user_code(), HISTORY), ids=lambda option: option.name)
def test_an_option_of_the_table_is_everywhere(option: Option) -> None:
    for function in (gm.Job.run, gm.Job.explain, gm.run_all):
        found = inspect.signature(function).parameters[option.name]
        assert found.kind is inspect.Parameter.KEYWORD_ONLY
        assert f"    {option.name}: {option.help.split()[0]}" in (function.__doc__ or "")
    assert f"--{option.dashed}" in {word for param in run_command.params for word in param.opts}
    of_streaming = option_named(f"--{option.dashed}")
    assert of_streaming is not None
    assert of_streaming.values == (option.kind != "flag")


def test_an_option_that_there_is_not(tmp_path: Path) -> None:
    job = make(tmp_path)
    for call in (job.run, job.explain, lambda **options: gm.run_all([job], **options)):
        with pytest.raises(TypeError, match="has no option wings"):
            call(wings=2)
    for call in (job.explain, lambda **options: gm.run_all([job], **options)):
        with pytest.raises(TypeError, match="has no option progress"):
            call(progress=True)


def test_the_types_of_options_are_those_of_the_table() -> None:
    written = Path(typed.__file__).read_text(encoding="utf-8")
    assert written == typed_module(), "run `make format`"


def test_jobs_side_by_side_take_the_options_of_one(tmp_path: Path) -> None:
    jobs = [make(tmp_path, output=gm.kv(tmp_path / name)) for name in "ab"]
    with pytest.raises(ValueError, match="runner"):
        gm.run_all(jobs, runner="wings")  # type: ignore[arg-type] - that is the test
    with pytest.raises(FileNotFoundError, match="spill directory"):
        gm.run_all(jobs, spill_dir=tmp_path / "nowhere")
    results = gm.run_all(jobs, runner="processes", workers=2, spill_dir=tmp_path)
    assert [dict(result) for result in results] == [{1: 1, 2: 1}] * 2


def test_variables_of_the_machine_give_options(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(
        "import gristmill as gm\n"
        "job = gm.Job(gm.items([1]), map=lambda n: [(n, n)], output=gm.kv('out'))\n"
    )
    done = gristmill("run", "job.py", cwd=tmp_path, status=1, GRISTMILL_MEMORY="1k")
    assert "The environment sets GRISTMILL_MEMORY to '1k'." in done.stderr
    done = gristmill("run", "job.py", "--explain", cwd=tmp_path, GRISTMILL_WORKERS="3")
    assert "for 3 workers" in done.stdout


def test_the_command_line_names_options_as_it_has_them(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(
        "import gristmill as gm\n"
        "job = gm.Job(gm.items([1]), map=lambda n: [(n, n)], output=gm.kv('out'))\n"
    )
    for words, says in [
        (["--workers", "-1"], "'--workers': '-1' is not a whole number from 1 on"),
        (["--workers", "1025"], "--workers is 1025"),
        (["--runner", "wings"], "'--runner': 'wings' is not one of"),
        (["--timeout", "nan"], "--timeout is nan"),
        (["--worker-memory", "x"], "--worker-memory is 'x'"),
        (["--attempts", "1001"], "--attempts is 1001"),
    ]:
        done = gristmill("run", "job.py", *words, cwd=tmp_path, status=2)
        assert says in done.stderr
        assert "What to do: " in done.stderr


@pytest.mark.parametrize(
    "made",
    [
        lambda: gm.quantiles(0.5),  # pyright: ignore[reportArgumentType]
        lambda: gm.quantiles(["a"]),  # pyright: ignore[reportArgumentType]
        lambda: gm.top("a"),  # pyright: ignore[reportArgumentType]
        lambda: gm.top(1.5),  # pyright: ignore[reportArgumentType]
        lambda: gm.sum(skip_none="yes"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_reductions_that_cannot_be_made(made: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match=r"^cannot make gm\.\w+\(.*What to do: give"):
        made()
