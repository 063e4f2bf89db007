"""Campaigns: the commands over tables and lines, against oracles, on cases drawn at random.

Five hundred cases in `make test`, of the same seed; `make fuzz` runs ten thousand of a new one.
"""

import os
import random
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.harness import GRISTMILL, clean_environment
from tests.fuzz import campaign as campaigns
from tests.fuzz.campaign import Case, Draw, campaign, drawn, seed
from tests.fuzz.distinct_cases import distinct_case
from tests.fuzz.draw_cases import pieces_case, sample_case, shuf_case, split_case
from tests.fuzz.gnu_cases import distinct_lines_case, join_lines_case, top_lines_case
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
    "join lines": join_lines_case,
    "sample": sample_case,
    "shuf": shuf_case,
    "split": split_case,
    "pieces": pieces_case,
    "conditions": conditions_case,
}
CASES = int(os.environ.get("FUZZ_CASES") or 500)
LONGEST_S = 3600.0


@pytest.mark.timeout(LONGEST_S)
@pytest.mark.parametrize("name", CAMPAIGNS)
def test_against_oracles(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of_seed, most = seed(), -(-CASES // len(CAMPAIGNS))
    draw = CAMPAIGNS[name]
    cases = campaign(name, draw, tmp_path, for_s=LONGEST_S, of_seed=of_seed, most=most)
    with capsys.disabled():
        print(f"\n{name}: {cases} cases of seed {of_seed}: no difference", flush=True)
    assert cases


# --- the campaigns themselves ---


def test_a_case_is_a_function_of_its_seed() -> None:
    data: list[bytes] = []
    for name, draw in CAMPAIGNS.items():
        cases = [drawn(name, draw, 1, number) for number in range(40)]
        assert cases == [drawn(name, draw, 1, number) for number in range(40)]
        assert cases != [drawn(name, draw, 2, number) for number in range(40)]
        data += [text for case in cases for text in (case.stdin, *case.files.values())]
    for hostile in (b"\0", b"\r\n", b"\xff", b'""', b'"a\n', b"\xef\xbb\xbf", b"\x1f\x8b"):
        assert any(hostile in text for text in data), hostile
    assert {b""} < {*data}


@pytest.mark.parametrize("name", ["distinct", "split"])
def test_an_answer_that_differs_is_found(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The canary: the oracle wants something else where there is much to be written."""

    def draw(chosen: random.Random) -> Case:
        case = CAMPAIGNS[name](chosen)
        wanted = case.wanted
        if wanted is None or wanted.status or not wanted.written:
            return case
        path = max(wanted.written)
        other = {**wanted.written, path: wanted.written[path] + b"more\n"}
        return replace(case, wanted=replace(wanted, written=other))

    monkeypatch.setattr(campaigns, "FAILED", tmp_path / "failed")
    monkeypatch.delenv("FUZZ_CASE", raising=False)
    with pytest.raises(AssertionError, match="To reproduce it: bash ") as caught:
        campaign(name, draw, tmp_path, for_s=60, of_seed=1)
    said = re.search(r"bash (\S+)", str(caught.value))
    assert said is not None
    environment = clean_environment(GRISTMILL=str(GRISTMILL))
    done = subprocess.run(
        ["bash", said[1]], capture_output=True, env=environment, timeout=60, check=False
    )
    assert done.returncode == 1, done.stdout
    assert b"more" in done.stdout
