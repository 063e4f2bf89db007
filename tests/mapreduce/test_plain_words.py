"""What a failed job says of the user's function: which element, which line, and what to do."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.cli.harness import GRISTMILL, clean_environment

import gristmill as gm
from gristmill import _core
from gristmill.locations import absolute

HERE = re.escape(__file__)


def job_of(tmp_path: Path, pairs: Iterable[Any] = (("a", 1), ("a", 2)), **options: Any) -> gm.Job:
    options.setdefault("output", gm.kv(tmp_path / "out"))
    options.setdefault("reduce", gm.count())
    return gm.Job(gm.items(pairs), **options)


def said(job: gm.Job) -> str:
    with pytest.raises(Exception, match="cannot") as caught:
        job.run(workers=1, no_sync=True, progress=False)
    return str(caught.value)


# --- which element ---


@pytest.mark.parametrize(
    ("key", "what"),
    [
        (("a", {"b": 1}), r"element 1 of \('a', \{'b': 1\}\), \{'b': 1\}, is of type dict"),
        (
            ("a", (1, [2])),
            r"element 1 of element 1 of \('a', \(1, \[2\]\)\), \[2\], is of type list",
        ),
        ([1], r"\[1\] is of type list"),
        ((), None),
    ],
)
def test_the_element_that_is_no_key_is_named(tmp_path: Path, key: Any, what: str | None) -> None:
    if what is None:
        assert _core.encode_key(key)
        return
    assert re.search(f"a key must be .* and {what}", said(job_of(tmp_path, [(key, 1)])))
    pairs = [("k", (48053248, {"id": 1}))]
    for reduce in (gm.max(), gm.top(2)):
        text = said(job_of(tmp_path, pairs, reduce=reduce))
        assert "element 1 of (48053248, {'id': 1}), {'id': 1}, is of type dict" in text


@pytest.mark.parametrize("by", [lambda key, value: [1], lambda key, value: (1, {})])
def test_what_sort_by_returns_is_said_to_be_that(tmp_path: Path, by: Callable[..., Any]) -> None:
    functions: dict[str, Any] = {"reduce": lambda key, values: [(key, list(values))]}
    text = said(job_of(tmp_path, sort_by=by, **functions))
    assert re.search(r"what sort_by returns must be .* is of type (list|dict)", text)
    text = said(job_of(tmp_path, group_by=lambda key: [key], **functions))
    assert "what group_by returns must be" in text


def returns_list(_key: str, _value: object) -> list[int]:
    return [1]


def returns_text(_key: str, _partitions: int) -> str:
    return "x"


@pytest.mark.parametrize(
    ("role", "function"), [("sort_by", returns_list), ("partition_by", returns_text)]
)
def test_a_function_that_returns_no_key_is_named(tmp_path: Path, role: str, function: Any) -> None:
    given: dict[str, Any] = {role: function}
    text = said(job_of(tmp_path, reduce=lambda key, values: [(key, list(values))], **given))
    assert f": {role} {function.__name__}: " in text
    assert re.search(rf"\({HERE}, line {first_line(function)}\)", text)


# --- which line ---


def first_line(function: Any) -> int:
    return function.__code__.co_firstlineno


def returns_dict(key: str, values: Any) -> Any:
    return {key: sum(values)}


def returns_int(_key: str, values: Any) -> Any:
    return sum(values)


def lists_a_list(key: str, _values: Any) -> Any:
    return [(key, object)]


def yields_a_key(_record: Any) -> Iterator[Any]:
    yield ([1], 1)


def lists_a_key(_record: Any) -> list[Any]:
    return [({1}, 1)]


@pytest.mark.parametrize("reduce", [returns_dict, returns_int])
def test_a_wrong_return_of_a_reduction_names_its_line(tmp_path: Path, reduce: Any) -> None:
    text = said(job_of(tmp_path, reduce=reduce))
    assert text.count("reduce returns_") == 1, "not twice"
    assert re.search(rf"\({HERE}, line {first_line(reduce)}\)", text)
    assert "a dict: records" in text or "an int: records" in text


def test_a_record_that_cannot_be_written_names_the_function(tmp_path: Path) -> None:
    job = job_of(tmp_path, reduce=lists_a_list, output=gm.jsonl(tmp_path / "out"))
    assert re.search(rf"\({HERE}, line {first_line(lists_a_list)}\)", said(job))


@pytest.mark.parametrize(("function", "later"), [(yields_a_key, 1), (lists_a_key, 0)])
def test_a_wrong_key_names_the_line(tmp_path: Path, function: Any, later: int) -> None:
    text = said(job_of(tmp_path, map=function))
    assert re.search(rf"a key must be.*\({HERE}, line {first_line(function) + later}\)", text)


# --- values that are no list ---


@pytest.mark.parametrize(
    "reduce",
    [
        lambda key, values: [(key, sum(values) / sum(1 for _ in values))],
        lambda key, values: [(key, max(values) - min(values))],
        lambda key, values: [(key, len(values))],
        lambda key, values: [(key, values[0])],
    ],
)
def test_values_that_are_used_as_a_list(tmp_path: Path, reduce: Callable[..., Any]) -> None:
    text = said(job_of(tmp_path, reduce=reduce))
    assert "make one first: values = list(values); they can be read once" in text


def test_values_that_are_read_in_batches(tmp_path: Path) -> None:
    def batches(key: str, values: Iterator[int]) -> Iterator[Any]:
        while some := list(islice(values, 2)):
            yield key, some

    def fails(_key: str, _values: Iterator[int]) -> Iterator[Any]:
        raise ValueError("no")

    pairs = [("a", n) for n in range(5)]
    job = job_of(tmp_path, pairs, reduce=batches)
    assert list(job.run(no_sync=True)) == [("a", [0, 1]), ("a", [2, 3]), ("a", [4])]
    assert "list(values)" not in said(job_of(tmp_path / "b", pairs, reduce=fails))


def reads_twice(key: str, values: Iterator[int]) -> Iterator[Any]:
    total = sum(values)
    yield key, (total, sum(1 for _ in values))


def loops_twice(key: str, values: Iterator[int]) -> Iterator[Any]:
    for factor in (1, 2):
        for value in values:
            yield key, value * factor


def reads_in_pieces(key: str, values: Iterator[int]) -> Iterator[Any]:
    while some := list(islice(values, 30)):
        yield key, len(some)


def reads_the_rest(key: str, values: Iterator[int]) -> Iterator[Any]:
    first = next(values)
    yield key, first + sum(values)


@pytest.mark.parametrize("role", ["reduce", "combine"])
@pytest.mark.parametrize(
    ("function", "line"),
    [(reads_twice, 2), (loops_twice, 2), (reads_in_pieces, None), (reads_the_rest, None)],
)
def test_values_that_are_read_again_in_silence(
    tmp_path: Path, role: str, function: Any, line: int | None
) -> None:
    functions = {"reduce": reads_the_rest, role: function}
    if role == "combine":
        functions["combine"] = lambda key, values: (found for _, found in function(key, values))
        functions["reduce"] = lambda key, values: [(key, list(values))]
    pairs = [(key, number) for key in "ab" for number in range(5)]
    result = job_of(tmp_path, pairs, **functions).run(no_sync=True)
    assert result.user_counters == {}
    if line is None:
        assert not result.report.warnings
        return
    (told,) = result.report.warnings
    assert "reads the values of a key again after their end, and gets none" in told
    if role == "reduce":
        assert f"line {first_line(function) + line}) reads" in told
    assert told.endswith("values = list(values).")


# --- nothing put out ---


def nothing(key: str, values: Any) -> None:
    pass


@pytest.mark.parametrize(
    ("functions", "which"),
    [
        ({"reduce": nothing}, "reduce nothing put out nothing for 2 keys"),
        ({"map": lambda record: None}, "map <lambda> put out nothing for 3 records"),
        ({"map": lambda record: [], "reduce": None}, "map <lambda> put out nothing for 3 records"),
        (
            {"combine": lambda k, v: (x for x in ()), "reduce": lambda k, v: [(k, sum(v))]},
            "combine <lambda> put out nothing for 3 pairs",
        ),
    ],
)
def test_a_job_that_puts_out_nothing_says_so(
    tmp_path: Path, functions: dict[str, Any], which: str
) -> None:
    job = job_of(tmp_path, [("a", 1), ("a", 2), ("b", 3)], **functions)
    report = job.run(no_sync=True, progress=False).report
    text = f"the output is empty: {which}. Does it lack a yield or a return?"
    assert report.warnings == (text,)


def test_a_job_of_a_chain_that_puts_out_nothing(tmp_path: Path) -> None:
    first = gm.Job(gm.items([("a", 1)]), reduce=nothing)
    chain = first.then(map=lambda pair: [pair], reduce=gm.sum(), output=gm.kv(tmp_path / "out"))
    (text,) = chain.run(no_sync=True, progress=False).report.warnings
    assert "reduce nothing put out nothing for 1 key" in text


def counts(_record: Any, context: gm.Context) -> None:
    context.count("seen", "records")


def notes(record: Any, context: gm.Context) -> None:
    context.output("notes").write(record)


def fails(_record: Any) -> None:
    raise ValueError("bad")


@pytest.mark.parametrize(
    "functions",
    [
        {"map": counts, "reduce": None},
        {"map": notes, "reduce": None, "outputs": {"notes": gm.jsonl()}},
        {"map": fails, "reduce": None, "skip_bad": 9},
    ],
)
def test_a_job_that_does_something_else_is_silent(
    tmp_path: Path, functions: dict[str, Any]
) -> None:
    report = job_of(tmp_path, **functions).run(no_sync=True, progress=False).report
    assert not any("empty" in warning for warning in report.warnings)
    report = job_of(tmp_path / "b", []).run(no_sync=True, progress=False).report
    assert report.warnings == ()


# --- encodings ---


def test_a_table_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("id,name\n1,café\n".encode("latin-1"))
    rows = gm.csv(tmp_path / "a.csv")
    text = said(gm.Job(rows, map=lambda row: [row], output=gm.jsonl(tmp_path / "out")))
    assert "the row is not text in utf-8" in text
    assert "name the encoding with encoding=, or leave such records out with skip_bad=N" in text
    rows = gm.csv(tmp_path / "a.csv", encoding="latin-1")
    job = gm.Job(rows, map=lambda row: [row], output=gm.jsonl(tmp_path / "out"))
    assert list(job.run(no_sync=True)) == [{"id": "1", "name": "café"}]


@pytest.mark.parametrize("name", ["utf-8-sig", "UTF_8_SIG"])
def test_utf_8_with_a_mark(name: str) -> None:
    for make in (gm.text, gm.csv):
        with pytest.raises(ValueError, match=r'give encoding="utf-8", which takes the mark away'):
            make("a", encoding=name)


# --- paths and inputs ---


def test_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "in.txt").write_text("a\n")
    assert gm.text("~/in.txt").paths == (f"{tmp_path}/in.txt",)
    assert gm.text("~no-such-user/x", tag="t").paths == ("~no-such-user/x",)
    job = gm.Job(gm.text("~/in.txt"), map=lambda line: [line], output=gm.jsonl("~/a/b/out"))
    assert list(job.run(no_sync=True)) == ["a"]
    assert (tmp_path / "a/b/out/_SUCCESS").exists()
    gm.sort("~/in.txt", output="~/sorted", field_separator="~")
    assert (tmp_path / "sorted").read_text() == "a\n"


def test_two_paths_are_a_list() -> None:
    with pytest.raises(TypeError) as caught:
        gm.text("a.txt", "b.txt")  # type: ignore[misc]  # pyright: ignore[reportCallIssue]
    assert str(caught.value) == (
        "cannot read the options: gm.text takes paths as one argument, and others by their names."
        " What to do: give a list, such as ['a.txt', 'b.txt'], for several."
    )


def test_a_result_is_no_input(tmp_path: Path) -> None:
    result = job_of(tmp_path).run(no_sync=True)
    shown = re.escape(f"gm.kv('{tmp_path}/out'), which is what that job has written")
    for given in (result, [result, gm.items([1])]):
        with pytest.raises(TypeError, match=f"give {shown}"):
            gm.Job(given, reduce=gm.sum())  # pyright: ignore[reportArgumentType]


# --- parents of outputs ---


def test_the_parents_of_an_output_are_made(tmp_path: Path) -> None:
    job = job_of(tmp_path, output=gm.kv(tmp_path / "a/b/out"))
    assert list(job.run(no_sync=True)) == [("a", 2)]
    results = gm.run_all([job_of(tmp_path, output=gm.kv(tmp_path / f"c/{n}/out")) for n in "12"])
    assert [list(result) for result in results] == [[("a", 2)]] * 2
    first = gm.Job(gm.items([("a", 1)]), reduce=gm.sum(), output=gm.kv(tmp_path / "d/first"))
    chain = first.then(reduce=gm.sum(), output=gm.kv(tmp_path / "e/last"))
    assert list(chain.run(no_sync=True)) == [("a", 1)]


def test_an_output_behind_a_directory_and_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read where it was written: beside what a link leads to, or where it says itself."""
    monkeypatch.chdir(tmp_path)
    Path("other/inner").mkdir(parents=True)
    Path("link").symlink_to("other/inner")
    for folder, where in (("none/../out", "out"), ("link/../out", "other/out")):
        result = job_of(tmp_path, output=gm.kv(folder)).run(no_sync=True)
        assert list(result) == [("a", 2)]
        assert Path(where, "_SUCCESS").exists()
    assert not Path("none").exists()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("link/..", "other"),
        ("link/../", "other"),
        ("link/..//out", "other/out"),
        ("link/../../out", "out"),
        ("none/..", "."),
        ("other/inner/../link", "other/link"),
        ("other/../link", "link"),
    ],
)
def test_dots_go_where_the_system_goes(
    path: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("other/inner").mkdir(parents=True)
    Path("link").symlink_to("other/inner")
    Path("other/link").symlink_to("inner")
    assert Path(absolute(path)) == tmp_path / expected
    assert absolute("/../a") == "/a"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_parents_that_were_made_go_with_a_job_that_fails(tmp_path: Path, error: Any) -> None:
    def raises(_record: Any) -> None:
        raise error

    (tmp_path / "a").mkdir()
    job = job_of(tmp_path, map=raises, output=gm.kv(tmp_path / "a/b/c/out"))
    assert "raises" in said(job)
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]
    assert list((tmp_path / "a").iterdir()) == []


def test_a_parent_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(NotADirectoryError, match=f"{tmp_path}/a is a file, and the output"):
        job_of(tmp_path, output=gm.kv(tmp_path / "a/b/out")).run(no_sync=True)


def test_one_output_in_another(tmp_path: Path) -> None:
    jobs = [job_of(tmp_path, output=gm.kv(tmp_path / name)) for name in ("o", "o/sub")]
    for pair in (jobs, jobs[::-1]):
        with pytest.raises(ValueError, match=r"the output .*/o/sub is in the output .*/o\. "):
            gm.run_all(pair)
    assert list(tmp_path.iterdir()) == []


# --- a result that is not its own any more ---


def test_a_result_that_another_job_has_overwritten(tmp_path: Path) -> None:
    first = job_of(tmp_path, [("a", 1)]).run(no_sync=True)
    second = job_of(tmp_path, [("b", 2)]).run(no_sync=True, overwrite=True)
    assert list(second) == [("b", 1)]
    with pytest.raises(ValueError, match=r"job job_.* has written .*/out since\. .* run this one"):
        first.read()
    (tmp_path / "out/_SUCCESS").unlink()
    assert list(second) == [("b", 1)], "nobody knows better"


# --- workers that end ---


def test_a_worker_that_leaves(tmp_path: Path) -> None:
    import os

    text = said(job_of(tmp_path, map=lambda record: os._exit(3)))
    assert "look for os._exit() in your code and its libraries" in text


JOB = """import gristmill as gm
def ones(line):
    yield line, 1
job = gm.Job(gm.items(["a"]), map=ones, reduce=gm.count(), output=gm.tsv("out"))
if __name__ == "__main__":
    print(len(job.run()))
"""


@pytest.mark.parametrize(
    "name", ["json.py", "logging.py", "pickle.py", "gristmill.py", "inspect.py"]
)
def test_a_file_with_the_name_of_a_module_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("X = 1\n")
    (tmp_path / "job.py").write_text(JOB)
    own = "Gristmill itself" if name == "gristmill.py" else f"Python's own {Path(name).stem}"
    wanted = f"{tmp_path / name} stands in front of {own}. What to do: rename it."
    command = [GRISTMILL, "run", "job.py", "--workers", "1"]
    for started in (command, [sys.executable, "job.py"])[
        : 2 if name in ("json.py", "logging.py") else 1
    ]:
        done = subprocess.run(
            started,
            cwd=tmp_path,
            env=clean_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (1, 2)
        assert done.stderr.count(wanted) == 1, done.stderr
