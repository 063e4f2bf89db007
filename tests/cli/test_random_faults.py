"""Ten of the random faults of `make soak` (tests/soak/faults.py), the same ones each time."""

import pytest
from tests.optional import or_missing
from tests.soak.faults import campaign
from tests.soak.running import LONGEST_S

SEED, CASES = 33, 10


@pytest.mark.timeout(CASES * LONGEST_S)
def test_faults_of_a_seed() -> None:
    with or_missing("RANDOM FAULTS"):
        campaign(range(CASES), SEED, print, places=["local"], runners=["threads", "processes"])
