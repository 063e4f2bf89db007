"""Mistakes of a first hour: each is refused early, by the user's words, with what to do."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pytest
from tests.cli.harness import clean_environment
from tests.mapreduce.harness import gristmill

import gristmill as gm


def made(tmp_path: Path, pairs: Iterable[Any] = (("a", 1), ("a", 2)), **options: Any) -> gm.Job:
    options.setdefault("output", gm.kv(tmp_path / "out"))
    return gm.Job(gm.items(pairs), **options)


# --- a file that runs its job itself ---

ITSELF = """import gristmill as gm
def ones(line):
    yield line, 1
gm.Job(gm.text("in.txt"), map=ones, reduce=gm.count(), output=gm.tsv("out")).run()
"""


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize("call", ["{}.run()", "gm.run_all([{}])"])
def test_a_file_that_runs_its_job_itself_is_told_so(
    tmp_path: Path, command: str, call: str
) -> None:
    (tmp_path / "in.txt").write_text("a\n")
    job, _, _ = ITSELF.partition("gm.Job")
    runs = call.format(ITSELF.removeprefix(job).removesuffix(".run()\n"))
    (tmp_path / "s.py").write_text(f"{job}{runs}\n")
    done = gristmill(command, "s.py", cwd=tmp_path, status=2)
    assert done.stderr == (
        f"gristmill {command}: cannot run s.py: it runs its job itself (line 4)."
        ' What to do: put job.run() under `if __name__ == "__main__":`,'
        " or start it with python s.py.\n"
    )
    assert not (tmp_path / "out").exists()
    subprocess.run([sys.executable, "s.py"], cwd=tmp_path, env=clean_environment(), check=True)
    assert (tmp_path / "out" / "_SUCCESS").exists()


# --- options that there are not ---


@pytest.mark.parametrize(
    ("call", "what", "meant"),
    [
        (lambda: gm.Job(gm.items([]), mapper=len), "gm.Job has no option mapper", "map"),
        (lambda: gm.Job(gm.items([]), partitions=2), "gm.Job has no option partitions", "parts"),
        (lambda: gm.Job(gm.items([])).then(reducer=1), "gm.Job has no option reducer", "reduce"),
        (lambda: gm.csv("a", sep=";"), "gm.csv has no option sep", "delimiter"),
        (lambda: gm.text("a", encodin="latin-1"), "gm.text has no option encodin", "encoding"),
        (
            lambda: gm.Job(gm.items([])).run(progres=True),
            "Job.run has no option progres",
            "progress",
        ),
        (lambda: gm.run_all([], worker=1), "gm.run_all has no option worker", "workers"),
    ],
)
def test_an_unknown_option_is_named_with_the_one_that_was_meant(
    call: Callable[[], Any], what: str, meant: str
) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == (
        f"cannot read the options: {what}. What to do: give {meant}, if you mean that."
    )


def test_an_option_of_the_job_is_sent_there() -> None:
    with pytest.raises(TypeError) as caught:
        gm.text("x", split_max=1)  # pyright: ignore[reportCallIssue]
    assert str(caught.value) == (
        "cannot read the options: gm.text has no option split_max. What to do: give split_max to"
        " gm.Job, to which it belongs."
    )


def test_an_option_that_is_like_none_is_answered_with_all_of_them() -> None:
    with pytest.raises(
        TypeError, match=r"gm\.tsv has no option columns\. .* paths, escapes, codec, tag\."
    ):
        gm.tsv("a", columns=["a"])  # pyright: ignore[reportCallIssue]


# --- inputs ---


class DataFrame(dict[str, list[int]]):
    """What pandas has: its items are the names of its columns."""


DataFrame.__module__ = "pandas.core.frame"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (5, r"cannot make gm\.items\(5\): .* give a list, such as \[5\]\."),
        ("abc", r"cannot make gm\.items\('abc'\): it takes a collection of records\."),
        (b"abc", r"such as \[b'abc'\]\."),
        (DataFrame(a=[1]), r"not its rows\. .* give gm\.items\(frame\.to_dict\(.records.\)\)\."),
    ],
)
def test_what_is_no_collection_of_records_is_refused(data: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        gm.items(data)


# --- functions ---


class Keeping:
    """Keeps the values of a key for later, when they are gone."""

    def __init__(self) -> None:
        self.kept: Any = ()

    def reduce(self, key: str, values: Iterator[int]) -> Iterator[tuple[str, int]]:
        yield key, next(values)
        self.kept = values

    def teardown(self, _context: gm.Context) -> Iterator[tuple[str, int]]:
        yield "kept", len(list(self.kept))


def test_values_of_the_last_key_are_gone_after_it(tmp_path: Path) -> None:
    keeping = Keeping()
    job = gm.Job(
        gm.items([("a", 1), ("a", 2)]),
        reduce=keeping.reduce,
        teardown=keeping.teardown,
        output=gm.kv(tmp_path / "out"),
    )
    with pytest.raises(RuntimeError, match="can only be gone through while it is reduced"):
        job.run(workers=1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"map": lambda a, b: []},
            "map=<lambda> takes (a, b), and is called with one argument, the r",
        ),
        (
            {"map": lambda: None},
            "with one argument, the record; a parameter named context gets the context",
        ),
        ({"reduce": lambda key: []}, "is called with two arguments, a key and an iterator of its"),
        ({"reduce": max, "combine": lambda v: []}, "is called with two arguments"),
        ({"reduce": gm.sum(), "setup": lambda: None}, "is called with one argument, the context"),
        ({"reduce": lambda k, v: [], "sort_by": lambda v: v}, "is called with two arguments"),
        ({"reduce": lambda k, v: [], "group_by": lambda k, v: v}, "is called with one argument"),
        ({"reduce": gm.sum(), "partition_by": lambda k: 0}, "is called with two arguments"),
    ],
)
def test_a_function_of_other_arguments_is_refused_when_the_job_is_made(
    tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    if options.get("reduce") is max:
        options = {**options, "reduce": lambda k, v: []}
    with pytest.raises(TypeError, match=re.escape(said)):
        made(tmp_path, **options)


class Mapped:
    """Something that can be called."""

    def __call__(self, record: Any, *, factor: int = 2) -> Any:
        return [(record, factor)]

    def method(self, record: Any, context: gm.Context) -> Any:
        return [(record, context)]


@pytest.mark.parametrize(
    "function",
    [
        *(str, len, print, dict, int, Mapped(), Mapped().method, str.split, "a".join),
        *(lambda *records: [], lambda record, *, context: [], lambda record, **more: []),
        *(partial(lambda a, record: [], 1), lambda record, size=3: []),
    ],
)
def test_functions_that_can_be_called_pass(tmp_path: Path, function: Callable[..., Any]) -> None:
    assert made(tmp_path, map=function, reduce=gm.count()).map is function


def spread(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator whose function takes other arguments than the one that it wraps."""

    @wraps(function)
    def inner(record: tuple[Any, ...]) -> Any:
        return function(*record)

    return inner


def handed_on(function: Callable[..., Any]) -> Callable[..., Any]:
    """One that hands on whatever it gets."""

    @wraps(function)
    def inner(*given: Any, **named: Any) -> Any:
        return function(*given, **named)

    return inner


def test_a_decorators_own_arguments_count(tmp_path: Path) -> None:
    @spread
    def pair(name: str, context: int) -> list[tuple[str, int]]:
        return [(name, context)]

    @handed_on
    def named(record: tuple[str, int], context: gm.Context) -> list[tuple[str, int]]:
        context.count("group", "records")
        return [record]

    for function in (pair, named):
        job = gm.Job(
            gm.items([("a", 1), ("a", 2)]),
            map=function,
            reduce=gm.sum(),
            output=gm.kv(tmp_path / function.__name__),
        )
        assert list(job.run(workers=1).read()) == [("a", 3)]


@pytest.mark.parametrize(
    ("builtin", "ours"), [(sum, "gm.sum()"), (len, "gm.count()"), (set, "gm.distinct()")]
)
def test_a_builtin_as_a_reduction_is_answered_with_ours(
    tmp_path: Path, builtin: Callable[..., Any], ours: str
) -> None:
    with pytest.raises(TypeError, match=re.escape(f"Python's {builtin.__name__}")) as caught:
        made(tmp_path, reduce=builtin)
    assert str(caught.value).endswith(f"What to do: give {ours}.")


def yields_no_pair(record: Any) -> Any:
    yield record  # the line that is told


def returns_a_pair(record: Any) -> Any:
    return record[0], 1


def failure(job: gm.Job, kind: type[Exception] = RuntimeError) -> str:
    with pytest.raises(kind) as caught:
        job.run(workers=1)
    return str(caught.value)


def test_what_is_no_pair_is_told_once_with_the_line_that_yields_it(tmp_path: Path) -> None:
    said = failure(made(tmp_path, ["what"], map=yields_no_pair, reduce=gm.sum()))
    line = yields_no_pair.__code__.co_firstlineno + 1
    assert said.count("'what'") == 1
    assert f"it gave the record itself ({__file__}, line {line})" in said
    assert said.endswith("What to do: yield a tuple of two, (key, value).")
    said = failure(made(tmp_path, [("a", 1)], map=lambda pair: [pair[0]], reduce=gm.sum()))
    assert "and it gave 'a'" in said


def test_retry_says_what_to_do_too(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a\n")
    (tmp_path / "job.py").write_text(
        "import gristmill as gm\n"
        "def lines(line):\n"
        "    yield line\n"
        "job = gm.Job(gm.text('in.txt'), map=lines, reduce=gm.sum(), output=gm.tsv('out'))\n"
    )
    home = {"GRISTMILL_HOME": str(tmp_path / "home")}
    gristmill("run", "job.py", cwd=tmp_path, status=1, **home)
    said = gristmill("retry", "last", cwd=tmp_path, status=1, **home).stderr
    assert said.endswith(
        f"it gave the record itself ({tmp_path / 'job.py'}, line 2)."
        " What to do: yield a tuple of two, (key, value).\n"
    )


def test_one_pair_that_is_returned_is_told_how_to_be_a_list(tmp_path: Path) -> None:
    said = failure(made(tmp_path, map=returns_a_pair, reduce=gm.sum()))
    assert "map returns_a_pair returned one pair, ('a', 1) (" in said
    assert said.endswith("What to do: return [('a', 1)], or yield it.")


def total(key: Any, values: Iterable[Any]) -> Any:
    yield key, sum(values)


def test_a_combiner_that_yields_pairs_is_hinted_at(tmp_path: Path) -> None:
    said = failure(made(tmp_path, combine=total, reduce=total))
    assert said.endswith("What to do: let combine yield values, not pairs of a key and a value.")
    said = failure(made(tmp_path, [("a", ("b", 1))], reduce=total))
    assert "combine" not in said


def test_a_reduction_that_fails_names_the_key_once(tmp_path: Path) -> None:
    said = failure(made(tmp_path, [("the key", None)], reduce=total))
    assert said.count("the key") == 1
    assert "(key 'the key'" in said


# --- values ---


def test_count_distinct_is_exact(tmp_path: Path) -> None:
    pairs = [(n % 3, n % (7 + n % 3)) for n in range(1000)]
    expected = {key: len({n for other, n in pairs if other == key}) for key in range(3)}
    result = made(tmp_path, pairs, reduce=gm.count_distinct(), name="n").run(workers=2)
    assert dict(result) == expected
    again = gm.Job(gm.items([("a", None), ("a", 1)]), reduce=gm.count_distinct(skip_none=True))
    done = again.then(map=lambda pair: [pair], output=gm.tsv(tmp_path / "again")).run(workers=1)
    assert list(done) == [("a", "1")]


def test_columns_name_the_parts_of_a_key(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    columns = ["city", "year", "price"]
    rows = []
    for form in (gm.csv, gm.parquet):
        output = form(tmp_path / form.__name__, columns=columns)
        job = gm.Job(gm.items([(("a", 1), 2), (("a", 1), 3)]), reduce=gm.sum(), output=output)
        rows.append([{k: str(v) for k, v in row.items()} for row in job.run(workers=1)])
    assert rows == [[{"city": "a", "year": "1", "price": "5"}]] * 2


# --- Ctrl-C ---

INTERRUPTED = """import time
import gristmill as gm

def sleeps(record):
    open("mark", "w").close()
    time.sleep(1000)

gm.Job(gm.items([1]), map=sleeps, output=gm.kv("out")).run(workers=1)
"""


def test_an_interruption_shows_the_users_line_alone(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(INTERRUPTED)
    with subprocess.Popen(
        [sys.executable, "s.py"], cwd=tmp_path, env=clean_environment(), text=True,
        stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(  # noqa: PLW1509
            signal.SIGINT, signal.default_int_handler
        ),
    ) as script:  # fmt: skip
        deadline = time.monotonic() + 60
        while not (tmp_path / "mark").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        script.send_signal(signal.SIGINT)
        _, said = script.communicate(timeout=60)
    files = [line.strip() for line in said.splitlines() if line.startswith("  File ")]
    assert files == [f'File "{tmp_path}/s.py", line 8, in <module>'], said
    assert said.splitlines()[-1] == "KeyboardInterrupt"
    assert "noqa" not in said


# --- one record again ---


@pytest.mark.parametrize(
    "fixed", ["yield from ()", "return None", "return []", "return ()", "yield 'k', 1"]
)
def test_retry_says_that_a_map_gives_nothing(tmp_path: Path, fixed: str) -> None:
    program = (
        "import gristmill as gm\n"
        "def words(line):\n"
        "    {}\n"
        "job = gm.Job(gm.text('in.txt'), map=words, reduce=gm.sum(), output=gm.tsv('out'))\n"
    )
    (tmp_path / "in.txt").write_text("a\n")
    (tmp_path / "job.py").write_text(program.format("yield line, 1 / 0"))
    home = {"GRISTMILL_HOME": str(tmp_path / "home")}
    gristmill("run", "job.py", cwd=tmp_path, status=1, **home)
    (tmp_path / "job.py").write_text(program.format(fixed))
    done = gristmill("retry", "last", cwd=tmp_path, **home)
    last = "  gives ('k', 1)" if "'k'" in fixed else "  gives nothing"
    assert done.stdout.splitlines()[-1] == last
    only = gristmill("run", "job.py", "--only", "in.txt:0", cwd=tmp_path, **home)
    last = "  ('k', 1)" if "'k'" in fixed else "  it gives nothing"
    assert only.stdout.splitlines()[-1] == last


def test_a_new_user_finds_the_signature() -> None:
    program = "import inspect, json, gristmill as gm\nprint(json.dumps([*map(str, (" + (
        "inspect.signature(gm.Job), inspect.signature(gm.tsv)))]))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, check=True, env=clean_environment())
    job, tsv = json.loads(done.stdout)
    assert "skip_bad: int = 0" in job
    assert tsv.startswith("(paths: ")
