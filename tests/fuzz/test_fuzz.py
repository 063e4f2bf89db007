"""Campaigns: `sort` and `grep` against GNU's and ripgrep, on cases drawn at random.

A minute each in `make test`, from the same seed; `make fuzz` takes an hour and a new seed.
"""

import random
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.harness import GRISTMILL, clean_environment
from tests.fuzz import campaign as campaigns
from tests.fuzz.campaign import Case, Draw, campaign, drawn, most, program, seconds, seed
from tests.fuzz.cases import grep_case, ripgrep_case, sort_case
from tests.optional import missing

CAMPAIGNS: dict[str, Draw] = {"sort": sort_case, "grep": grep_case}


def is_gnu(name: str) -> bool:
    done = subprocess.run([name, "--version"], capture_output=True, text=True, check=False)
    return "GNU" in done.stdout


def share() -> int:
    """How many campaigns share the time of `make fuzz`."""
    return len(CAMPAIGNS) + (shutil.which("rg") is not None)


def run(name: str, draw: Draw, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of_seed, for_s = seed(), seconds(share())
    with capsys.disabled():
        print(f"\n{name}: FUZZ_SEED={of_seed}, {for_s:.0f} s", flush=True)
    cases = campaign(name, draw, folder, for_s=for_s, of_seed=of_seed, most=most())
    with capsys.disabled():
        print(f"{name}: {cases} cases of seed {of_seed}: no difference", flush=True)
    assert cases


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_against_gnu(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not is_gnu(name):
        missing(f"NOT TESTED: CAMPAIGNS AGAINST GNU {name.upper()}", f"{name} is not GNU's")
    run(name, CAMPAIGNS[name], tmp_path, capsys)


def test_grep_against_ripgrep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("rg") is None:
        missing("NOT TESTED: CAMPAIGNS AGAINST RIPGREP", "rg is not installed")
    run("ripgrep", ripgrep_case, tmp_path, capsys)


# --- the campaign itself ---


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where cases that differ are kept."""
    folder = tmp_path / "failed"
    monkeypatch.setattr(campaigns, "FAILED", folder)
    for name in ("FUZZ_CASE", "FUZZ_SEED", "FUZZ_MINUTES"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_case_is_a_function_of_its_seed(name: str) -> None:
    cases = [drawn(name, CAMPAIGNS[name], 1, number) for number in range(50)]
    assert cases == [drawn(name, CAMPAIGNS[name], 1, number) for number in range(50)]
    assert cases != [drawn(name, CAMPAIGNS[name], 2, number) for number in range(50)]
    data = b"".join(text for case in cases for text in (case.stdin, *case.files.values()))
    for hostile in (b"\0", b"\r\n", b"\xff", b"\xc3\xa4"):
        assert hostile in data
    assert max(map(len, data.split(b"\n"))) > 10_000
    assert {b""} < {text for case in cases for text in case.files.values()}


@pytest.mark.parametrize(
    ("name", "wrong"), [("sort", ["-r"]), ("grep", ["-v"])], ids=["sort", "grep"]
)
def test_a_program_that_differs_is_found(
    name: str, wrong: list[str], tmp_path: Path, kept: Path
) -> None:
    """The canary: it reads another command line than the other program."""

    def draw(chosen: random.Random) -> Case:
        case = CAMPAIGNS[name](chosen)
        return replace(case, ours=[case.ours[0], *wrong, *case.ours[1:]])

    with pytest.raises(AssertionError, match="To reproduce it: bash ") as caught:
        campaign(name, draw, tmp_path, for_s=60, of_seed=1)
    said = re.search(r"bash (\S+)", str(caught.value))
    assert said is not None
    assert Path(said[1]).is_relative_to(kept)
    environment = clean_environment(GRISTMILL=str(GRISTMILL))
    done = subprocess.run(
        ["bash", said[1]], capture_output=True, env=environment, timeout=60, check=False
    )
    assert done.returncode == 1, done.stdout
    assert len(re.findall(rb"exit code \d+", done.stdout)) == 2


def test_a_defect_is_a_difference(tmp_path: Path) -> None:
    case = Case(["grep", "a", "x"], ["false"], {"x": b"a\n"})
    place = tmp_path / "case"
    campaigns.put(case, place)
    with program(place) as running:
        assert running.run(case).status == 0
        assert running.run(replace(case, ours=["grep", "b", "x"])).status == 1
        (place / "ours").unlink()
        assert running.run(replace(case, ours=["grep", "a", "x", "--nix"])).status == 2
