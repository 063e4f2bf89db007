"""`make soak`: chains of jobs, killed in each of their jobs, and again while they go on.

KILLS says how many times in each of its jobs, KILLS_SEED when.
"""

import os
import random
import shutil
import sys
from pathlib import Path

import pytest
from tests.cli.chain_of_jobs import killed_in, killed_while_it_goes_on, make_chain
from tests.cli.harness import names, run
from tests.cli.resuming import tree

KILLS = int(os.environ.get("KILLS") or 20)
_EACH_S = 120


@pytest.mark.timeout(3 * KILLS * _EACH_S)
def test_chains_are_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = int(os.environ.get("KILLS_SEED") or random.SystemRandom().randrange(1, 1 << 32))
    print(f"KILLS_SEED={seed}", file=sys.stderr, flush=True)
    draw, home = random.Random(seed), tmp_path / "home"
    monkeypatch.setenv("GRISTMILL_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    make_chain(tmp_path, lines=20_000)
    run("run", "chain.py", "--output", "wanted")
    wanted = tree(tmp_path / "wanted")
    killed = 0
    for number in range(3 * KILLS):
        for folder in ("out", "between", "home"):
            shutil.rmtree(tmp_path / folder, ignore_errors=True)
        named = ["--set", "between=between"] if draw.random() < 0.5 else []
        monkeypatch.setenv("SLOW", "1")
        killed_in(home, number % 3 + 1, *named)
        killed += 1 + killed_while_it_goes_on(tmp_path, draw, longest_s=3)
        assert tree(tmp_path / "out") == wanted, number
        assert not [name for name in names(tmp_path) if name.startswith(".")], number
    print(f"{killed} kills", file=sys.stderr, flush=True)
