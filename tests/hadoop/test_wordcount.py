"""Our word count against Apache Hadoop's WordCount: the same bytes."""

import random
import re
from pathlib import Path

import pytest

import gristmill as gm

from .harness import Hadoop

# The first test may have to fetch Hadoop.
pytestmark = pytest.mark.timeout(600)

SEED = 20_261_122


def words(line: str):  # noqa: ANN201 - as the README has it
    for word in re.split("[ \t\n\r\f]+", line):
        if word:
            yield word, 1


def natural_text(size: int) -> str:
    """Words of skewed frequency, some in other alphabets, between all that separates words."""
    made = random.Random(SEED)
    letters = "abcdefghijklmnopqrstuvwxyzäöüßéжщ語"
    known = ["".join(made.choices(letters, k=made.randint(1, 9))) for _ in range(2_000)]
    weights = [1 / (rank + 1) for rank in range(len(known))]
    between = made.choices([" ", "  ", "\t", "\n", "\n\n", " \f", "\r\n"], k=size)
    return "".join(
        word + space
        for word, space in zip(made.choices(known, weights, k=size), between, strict=True)
    )


def test_the_same_counts_in_the_same_order(hadoop: Hadoop, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for number, size in enumerate((20_000, 1, 5_000)):
        (source / f"{number}.txt").write_text(natural_text(size), encoding="utf-8", newline="")
    (source / "empty.txt").write_text("")
    hadoop.wordcount(source, tmp_path / "theirs")
    job = gm.Job(
        gm.text(f"{source}/*.txt"),
        map=words,
        reduce=gm.sum(),
        output=gm.tsv(f"{tmp_path}/ours"),
        parts=1,
        split_max=20_000,
    )
    counters = job.run().counters
    theirs = (tmp_path / "theirs/part-r-00000").read_bytes()
    ours = b"".join(path.read_bytes() for path in sorted((tmp_path / "ours").glob("part-r-*")))
    assert ours == theirs
    assert counters["MAP_OUTPUT_RECORDS"] == 25_001
    assert counters["REDUCE_OUTPUT_RECORDS"] == theirs.count(b"\n")


def test_the_native_job_makes_the_same_parts(hadoop: Hadoop, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for number, size in enumerate((20_000, 1, 5_000)):
        (source / f"{number}.txt").write_text(natural_text(size), encoding="utf-8", newline="")
    hadoop.wordcount(source, tmp_path / "theirs", reduces=3)
    gm.wordcount(source, tmp_path / "ours", parts=3)
    for part in range(3):
        name = f"part-r-{part:05}"
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()
