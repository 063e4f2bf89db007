"""Histories that Hadoop's own writer wrote become runs, in both formats."""

from pathlib import Path

from gristmill.analysis.histories import runs_of

from .harness import Hadoop


def test_histories_that_hadoop_wrote_become_runs(hadoop: Hadoop, tmp_path: Path) -> None:
    for path in hadoop.histories(tmp_path):
        (run,) = runs_of([str(path)])
        assert (run.p, run.seconds, run.work) == (2, 10.0, 123_456)
        assert dict(run.phases) == {
            "start": 2.0,
            "map": 4.0,
            "shuffle": 1.0,
            "merge": 0.5,
            "reduce": 1.5,
            "commit": 1.0,
        }
        assert run.wastes["retries"] == 1.0
        assert run.source == f"word count, {path}"
    assert len(runs_of([str(tmp_path)])) == 2
