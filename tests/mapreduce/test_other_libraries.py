"""Keys and values that are numbers of other libraries, and what has no order."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gristmill as gm
from gristmill.mapreduce.check.plain_aggregates import aggregated


def run(source: list[Any], folder: Path, **options: Any) -> gm.Result:
    folder.mkdir(exist_ok=True)
    output = gm.kv(folder / "out")
    return gm.Job(gm.items(source), output=output, **options).run(workers=1, no_sync=True)


@pytest.mark.parametrize(
    ("values", "total", "least"),
    [
        ([np.int64(256), np.int64(1)], 257, 1),
        ([np.uint64(2**64 - 1), np.uint8(1)], 2**64, 1),
        ([np.float32(0.5), np.float64(256.0)], 256.5, 0.5),
        ([np.bool_(True), np.bool_(True)], 2, True),
        ([np.int32(-3), 2, 0.5], -0.5, -3),
        ([np.array(7), np.float16(2)], 9.0, 2.0),
    ],
)
def test_numbers_of_numpy_count_as_pythons(
    tmp_path: Path, values: list[Any], total: float, least: float
) -> None:
    expected = {
        gm.sum(): total,
        gm.mean(): float(total) / len(values),
        gm.min(): least,
        gm.quantiles([0.0]): (least,),
        gm.top(len(values)): tuple(sorted(map(_plain, values), reverse=True)),
        gm.max(): max(map(_plain, values)),
    }
    for reduction, wanted in expected.items():
        folder = tmp_path / reduction.name
        made = run(values, folder, map=lambda value: [("k", value)], reduce=reduction)
        ((_, found),) = made.read()
        assert (found, type(found)) == (wanted, type(wanted)), reduction
        kinds = {type(one) for one in (found if isinstance(found, tuple) else (found,))}
        assert kinds <= {int, float, bool}
        assert aggregated(reduction.spec, values) == wanted


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


@pytest.mark.parametrize("reduction", [gm.sum(), gm.mean(), gm.min(), gm.max(), gm.top(1)])
@pytest.mark.parametrize(
    "value", [Decimal("1.1"), Fraction(1, 3), np.datetime64("2020-01-01"), np.array([1, 2]), object]
)
def test_values_without_an_order_are_refused(tmp_path: Path, reduction: Any, value: Any) -> None:
    if isinstance(value, Decimal) and reduction.name not in ("sum", "mean"):
        made = run([1], tmp_path, map=lambda _: [("k", value)], reduce=reduction)
        assert dict(made.read())["k"] in (value, (value,))  # it can be compared, and not added up
        return
    with pytest.raises(RuntimeError, match=rf"gm.{reduction.name}\(\) .* is of type .* to do:"):
        run([1], tmp_path, map=lambda _: [("k", value)], reduce=reduction)


def test_values_that_are_handed_on_stay_what_they_are(tmp_path: Path) -> None:
    values = [Decimal("1.1"), np.int64(3), np.float32(0.5)]
    for reduction in (gm.collect(), gm.distinct()):
        folder = tmp_path / reduction.name
        made = run(values, folder, map=lambda value: [("k", value)], reduce=reduction)
        ((_, found),) = made.read()
        assert sorted(found) == sorted(values)
    assert [type(one) for one in sorted(found)] == [float, Decimal, int]


def test_keys_of_numpy_are_pythons(tmp_path: Path) -> None:
    keys = [np.int64(3), np.float32(0.5), np.bool_(True), np.str_("a"), np.bytes_(b"b")]
    keys += [(np.int8(1), np.str_("c")), 3, "a"]
    made = run(keys, tmp_path, map=lambda key: [(key, 1)], reduce=gm.sum())
    found = dict(made.read())
    assert found == {3: 2, 0.5: 1, True: 1, "a": 2, b"b": 1, (1, "c"): 1}
    assert {type(key) for key in found} == {int, float, bool, str, bytes, tuple}
    for key in (Fraction(1, 3), np.datetime64("2020-01-01"), np.array([1, 2])):
        with pytest.raises(RuntimeError, match=r"a key must be str, bytes, int.* is of type"):
            run([1], tmp_path / "no", map=lambda _, key=key: [(key, 1)], reduce=gm.sum())
