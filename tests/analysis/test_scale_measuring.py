"""What `scale run` keeps: which runs are due, and a file of runs that was cut short."""

import json
from pathlib import Path

import pytest

from gristmill.analysis.scale.measuring import FILE, Measuring


def measured(folder: Path, *each_p: int) -> list[int]:
    """Measure a program that does nothing; returns the p that were due."""
    measuring = Measuring(
        folder=folder, command=["true", "{p}"], by="workers", each_p=each_p, repeat=1, warm_up=0
    )
    due = measuring.due()
    assert all(seconds > 0 for _, seconds in measuring.run(due))
    measuring.clear()
    return sorted(turn.p for turn in due)


def test_a_line_that_a_kill_cut_short_is_measured_again(tmp_path: Path) -> None:
    path = tmp_path / FILE
    assert measured(tmp_path, 1, 2) == [1, 2]
    assert measured(tmp_path, 1, 2) == []
    whole = path.read_bytes()
    last = json.loads(whole.splitlines()[-1])["p"]
    path.write_bytes(whole[:-20])
    assert measured(tmp_path, 1, 2) == [last]
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(one["p"] for one in found[1:]) == [1, 2]


def test_a_line_that_lacks_only_its_end_is_kept(tmp_path: Path) -> None:
    path = tmp_path / FILE
    measured(tmp_path, 1)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert measured(tmp_path, 1, 2) == [2]
    assert path.read_bytes().startswith(whole)


@pytest.mark.parametrize("left", [0, 5, 30])
def test_a_file_whose_first_line_was_cut_begins_again(left: int, tmp_path: Path) -> None:
    path = tmp_path / FILE
    measured(tmp_path, 1)
    path.write_bytes(path.read_bytes()[:left])
    if left == 5:  # it might be anybody's
        with pytest.raises(ValueError, match="line 1 is not a JSON object"):
            measured(tmp_path, 1)
    else:
        assert measured(tmp_path, 1) == [1]


def test_another_file_of_that_name_stays(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("my notes")
    with pytest.raises(ValueError, match="line 1 is not a JSON object"):
        measured(tmp_path, 1)
    assert (tmp_path / FILE).read_text() == "my notes"
