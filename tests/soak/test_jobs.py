"""`make soak`: jobs over tables and lines with little memory, killed at random moments.

JOBS says how many, JOBS_SEED which ones, JOBS_FIRST the number of the first, and JOBS_MB how large
their inputs are.
"""

import os
import random
import sys
from pathlib import Path

import pytest

from .jobs import LONGEST_S, campaign

JOBS = int(os.environ.get("JOBS") or 100)


@pytest.mark.timeout(JOBS * 4 * LONGEST_S)
def test_jobs_at_random(tmp_path: Path) -> None:
    seed = int(os.environ.get("JOBS_SEED") or random.SystemRandom().randrange(1, 1 << 32))
    print(f"JOBS_SEED={seed}", file=sys.stderr, flush=True)
    first = int(os.environ.get("JOBS_FIRST") or 0)
    size = int(os.environ.get("JOBS_MB") or 60) * 1_000_000
    campaign(range(first, first + JOBS), seed, say, tmp_path, size=size)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
