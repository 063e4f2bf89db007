"""Which keys are one: every NaN is; 1, 1.0 and True are not, and a join of these says so."""

import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gristmill as gm
from gristmill import _core
from gristmill.mapreduce.check.naive import run_naively

NEGATIVE, PAYLOAD = (
    struct.unpack(">d", bytes.fromhex(bits))[0] for bits in ("fff8000000000000", "7ff8000000000abc")
)
NANS = [NEGATIVE, math.nan, PAYLOAD, np.float64("nan"), np.float32(NEGATIVE)]
REDUCTIONS: list[tuple[Any, Any]] = [
    (gm.count(), [("nan", 5)]),
    (gm.sum(), [("nan", 5)]),
    (lambda key, values: [(key, sum(values))], [("nan", 5)]),
]


def shown(job: gm.Job) -> list[Any]:
    return [(repr(key), value) for key, value in job.run(workers=2, no_sync=True)]


@pytest.mark.parametrize(("reduce", "wanted"), REDUCTIONS)
@pytest.mark.parametrize("parts", [1, 7])
def test_every_nan_is_one_key(tmp_path: Path, reduce: Any, wanted: Any, parts: int) -> None:
    options: dict[str, Any] = {"reduce": reduce, "parts": parts, "split_max": 1}
    pairs = gm.items([(nan, 1) for nan in NANS])
    assert shown(gm.Job(pairs, **options, output=gm.kv(tmp_path / "a"))) == wanted
    inside = gm.items([(("a", (nan, gm.desc(nan))), 1) for nan in NANS])
    job = gm.Job(inside, **options, output=gm.kv(tmp_path / "b"))
    assert shown(job) == [("('a', (nan, nan))", 5)]
    naive = run_naively(job)
    assert [len(part) for part in naive.parts if part] == [1]


def test_keys_that_group_by_returns(tmp_path: Path) -> None:
    pairs = gm.items([(nan, 1) for nan in NANS])
    total: Callable[..., Any] = lambda key, values: [(key, sum(values))]  # noqa: E731
    job = gm.Job(pairs, group_by=lambda key: (key,), reduce=total, output=gm.kv(tmp_path / "o"))
    assert shown(job) == [("(nan,)", 5)]


def test_nan_comes_last(tmp_path: Path) -> None:
    keys = [NEGATIVE, 1.0, math.nan, -math.inf, math.inf, -0.0, 0.0]
    job = gm.Job(
        gm.items(keys), map=lambda x: [(x, 1)], reduce=gm.count(), output=gm.kv(tmp_path / "o")
    )
    found = [key for key, _ in shown(job)]
    assert found == ["-inf", "-0.0", "0.0", "1.0", "inf", "nan"], "-0.0 and 0.0 are two keys"


@pytest.mark.parametrize(
    ("reduce", "wanted"),
    [(gm.count_distinct(), 1), (gm.approx_distinct(), 1), (gm.distinct(), "(nan,)")],
)
def test_values_that_are_told_apart(tmp_path: Path, reduce: Any, wanted: Any) -> None:
    job = gm.Job(
        gm.items([("k", nan) for nan in NANS]), reduce=reduce, output=gm.kv(tmp_path / "a")
    )
    ((_, found),) = job.run(no_sync=True)
    assert (found if isinstance(found, int) else repr(found)) == wanted
    (tmp_path / "line").write_text("x\n")
    column = pa.array([NEGATIVE, math.nan, PAYLOAD])

    def rows(_: object) -> pa.Table:
        return pa.table({"key": ["k"] * 3, "value": column})

    lines = gm.text(tmp_path / "line")
    job = gm.Job(lines, map_batches=rows, reduce=reduce, output=gm.kv(tmp_path / "b"))
    ((_, found),) = job.run(no_sync=True)
    assert (found if isinstance(found, int) else repr(found)) == wanted


def test_columns_of_keys(tmp_path: Path) -> None:
    (tmp_path / "line").write_text("x\n")
    column = pa.array([NEGATIVE, math.nan, PAYLOAD])
    job = gm.Job(
        gm.text(tmp_path / "line"),
        map_batches=lambda batch: pa.table({"key": column, "value": [1, 2, 3]}),
        reduce=gm.sum(),
        output=gm.kv(tmp_path / "o"),
    )
    assert shown(job) == [("nan", 6)]


@given(st.floats(), st.floats())
def test_keys_are_one_if_they_are_equal_or_both_nan(one: float, other: float) -> None:
    equal = _core.encode_key(one) == _core.encode_key(other)
    both_nan = math.isnan(one) and math.isnan(other)
    signs = math.copysign(1, one) == math.copysign(1, other)
    assert equal == (both_nan or (one == other and signs))


def test_values_that_are_handed_on_keep_their_bits(tmp_path: Path) -> None:
    job = gm.Job(gm.items([("k", PAYLOAD)]), reduce=gm.first(), output=gm.kv(tmp_path / "o"))
    ((_, found),) = job.run(no_sync=True)
    assert struct.pack(">d", found).hex() == "7ff8000000000abc"


# --- joins of keys that cannot be equal ---


def joined(tmp_path: Path, left: list[Any], right: list[Any]) -> tuple[str, ...]:
    job = gm.Job(
        [
            gm.items([(key, 1) for key in left], tag="users"),
            gm.items([(key, 2) for key in right], tag="sales"),
        ],
        reduce=lambda key, values: [(key, list(values))],
        output=gm.kv(tmp_path / "o"),
    )
    return job.run(no_sync=True, overwrite=True, progress=False).report.warnings


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [
        (["1"], [1, 2], "the keys of the input sales are int, those of users str: such keys are"),
        ([b"1"], ["1"], "the keys of the input sales are str, those of users bytes"),
        ([("a", "1")], [("a", 1)], "the elements [1] of the keys of the input sales are int"),
        ([np.str_("1")], [np.int64(1)], "sales are int, those of users str"),
    ],
)  # fmt: skip
def test_a_join_of_keys_that_are_never_equal_says_so(
    tmp_path: Path, left: list[Any], right: list[Any], said: str
) -> None:
    (warning,) = joined(tmp_path, left, right)
    assert said in warning


def test_inputs_without_tags_have_numbers(tmp_path: Path) -> None:
    (tmp_path / "ids.csv").write_text("id\n1\n")
    inputs = [gm.csv(tmp_path / "ids.csv"), gm.items([{"id": 1}])]
    job = gm.Job(
        inputs, map=lambda row: [(row["id"], 1)], reduce=gm.count(), output=gm.kv(tmp_path / "o")
    )
    (warning,) = job.run(no_sync=True, progress=False).report.warnings
    assert "the keys of the input 1 are str, those of 2 int: such keys are never equal" in warning


@pytest.mark.parametrize(
    ("left", "right"),
    [(["1"], ["2"]), (["1", 1], [1]), ([None], [1]), ([], [1]), ([("a",)], ["a"])],
)
def test_a_join_that_may_match_says_nothing_of_it(
    tmp_path: Path, left: list[Any], right: list[Any]
) -> None:
    assert not any("never equal" in warning for warning in joined(tmp_path, left, right))


def test_numbers_of_two_types_are_said_once(tmp_path: Path) -> None:
    (warning,) = joined(tmp_path, [1], [1.0])
    assert "1 and 1.0 are different keys" in warning
