"""Reductions that hold all values of a key are refused where a worker has not the memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gristmill as gm

VALUES, BYTES = 14_000, 1000


def skewed(part: int) -> Iterator[tuple[str, bytes]]:
    yield f"small {part}", b"one"
    for number in range(VALUES // 4):
        yield "large", b"%09d" % (part * VALUES + number) + bytes(BYTES - 9)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "reduce", [gm.collect(), gm.distinct(), gm.top(VALUES), gm.quantiles([0.5])], ids=str
)
def test_a_key_with_too_many_values(reduce: Any, tmp_path: Path) -> None:
    job = gm.Job(
        gm.items(range(4)),
        map=skewed,
        reduce=reduce,
        output=gm.kv(tmp_path / "out"),
        split_max=1,
        parts=1,
    )
    with pytest.raises(MemoryError, match=r"of those of 'large' need more than .* MB, the memory"):
        job.run(memory="44M", workers=1)
    assert not (tmp_path / "out").exists()
