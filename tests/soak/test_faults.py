"""`make soak`: faults at random moments of jobs of two users.

FAULTS says how many, FAULTS_SEED which ones, FAULTS_PLACES where outputs go, FAULTS_RUNNERS what
runs the jobs, and FAULTS_FIRST the number of the first.
"""

import os
import random
import sys

import pytest
from tests.optional import missing, or_missing

from .faults import PLACES, RUNNERS, campaign
from .running import LONGEST_S

FAULTS = int(os.environ.get("FAULTS") or 10)


@pytest.mark.timeout(FAULTS * 3 * LONGEST_S)
def test_faults_at_random_moments() -> None:
    if os.geteuid() != 0:
        missing("NOT TESTED: RANDOM FAULTS", "programs of two users take root")
    seed = int(os.environ.get("FAULTS_SEED") or random.SystemRandom().randrange(1, 1 << 32))
    print(f"FAULTS_SEED={seed}", file=sys.stderr, flush=True)
    first = int(os.environ.get("FAULTS_FIRST") or 0)
    places = (os.environ.get("FAULTS_PLACES") or " ".join(PLACES)).split()
    runners = (os.environ.get("FAULTS_RUNNERS") or " ".join(RUNNERS)).split()
    with or_missing("RANDOM FAULTS"):
        campaign(range(first, first + FAULTS), seed, say, places=places, runners=runners)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
