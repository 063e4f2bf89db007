"""Ten of the random faults of `make soak` (tests/soak/faults.py), the same ones each time."""

import pytest
from tests.optional import or_missing
from tests.soak.faults import LONGEST_S, campaign

SEED, CASES = 33, 10


@pytest.mark.timeout(CASES * LONGEST_S)
def test_faults_of_a_seed() -> None:
    with or_missing("RANDOM FAULTS"):
        campaign(range(CASES), SEED, print, places=["local"], runners=["threads", "processes"])
