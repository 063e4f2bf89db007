"""Campaigns: the commands over tables and lines, against oracles, on cases drawn at random.

Five hundred cases in `make test`, from the same seed; `make fuzz` runs ten thousand of a new seed.
"""

import os
from pathlib import Path

import pytest
from tests.fuzz.campaign import Draw, campaign, seed
from tests.fuzz.distinct_cases import distinct_case
from tests.fuzz.draw_cases import sample_case, shuf_case, split_case
from tests.fuzz.gnu_cases import distinct_lines_case, top_lines_case
from tests.fuzz.grep_conditions import conditions_case
from tests.fuzz.group_cases import group_case
from tests.fuzz.join_cases import join_case
from tests.fuzz.top_cases import top_case

CAMPAIGNS: dict[str, Draw] = {
    "distinct": distinct_case,
    "distinct lines": distinct_lines_case,
    "top": top_case,
    "top lines": top_lines_case,
    "group": group_case,
    "join": join_case,
    "sample": sample_case,
    "shuf": shuf_case,
    "split": split_case,
    "conditions": conditions_case,
}
CASES = int(os.environ.get("FUZZ_CASES") or 500)
LONGEST_S = 3600.0


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_against_oracles(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of_seed, most = seed(), -(-CASES // len(CAMPAIGNS))
    draw = CAMPAIGNS[name]
    cases = campaign(name, draw, tmp_path, for_s=LONGEST_S, of_seed=of_seed, most=most)
    with capsys.disabled():
        print(f"\n{name}: {cases} cases of seed {of_seed}: no difference", flush=True)
    assert cases
