"""`gristmill resume last` where no job can be resumed."""

from pathlib import Path

from .harness import run


def test_a_job_that_kept_no_history_is_not_taken_for_the_last(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    run("teragen", "10", tmp_path / "data", "--history", GRISTMILL_HOME=home)
    told = run("resume", "last", status=1, GRISTMILL_HOME=home).stderr
    assert "it is over: succeeded" in told
    assert "One that was killed in its first second has no history: run it again." in told
