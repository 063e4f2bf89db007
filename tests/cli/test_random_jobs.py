"""Five of the random jobs of `make soak` (tests/soak/jobs.py), the same ones each time."""

from pathlib import Path

import pytest
from tests.soak.jobs import LONGEST_S, campaign

SEED, JOBS = 7, 5


@pytest.mark.timeout(JOBS * LONGEST_S)
def test_jobs_of_a_seed(tmp_path: Path) -> None:
    campaign(range(JOBS), SEED, print, tmp_path, size=20_000_000)
