"""Hadoop's history files: runs of them, and what is said of those cut short or damaged."""

import random
import sys
from pathlib import Path

import pytest

from gristmill.analysis.histories import cause_of, runs_of

from .hadoop_events import Events, terasort, write_jhist

FORMATS = pytest.mark.parametrize("binary", [False, True], ids=["json", "binary"])


@FORMATS
def test_a_job_becomes_a_run(tmp_path: Path, binary: bool) -> None:
    path = write_jhist(tmp_path / "a.jhist", terasort(4), binary=binary)
    (run,) = runs_of([str(path)])
    assert (run.p, run.seconds, run.work) == (4, 15.0, 10**10)
    assert dict(run.phases) == {
        "start": 2.0,
        "map": 6.0,
        "shuffle": 2.0,
        "merge": 1.0,
        "reduce": 3.0,
        "commit": 1.0,
    }
    assert run.wastes["serial"] == pytest.approx(3.0 * 3 / 4)
    assert "retries" not in run.wastes
    assert run.source == f"TeraSort, {path}"
    assert [run.p for run in runs_of([str(path)], per_node=True)] == [2]


@FORMATS
def test_files_of_a_folder_make_a_curve(tmp_path: Path, binary: bool) -> None:
    for slots in (1, 2, 4):
        spoil = 8 if slots == 1 else 0
        folder = tmp_path / f"2026/11/{slots}"
        folder.mkdir(parents=True)
        write_jhist(folder / f"job_{slots}.jhist", terasort(slots, spoil=spoil), binary=binary)
    runs = runs_of([str(tmp_path)])
    assert [run.p for run in runs] == [1, 2, 4]
    assert runs[0].wastes["retries"] == 24.0
    found = cause_of(runs)
    assert (found.name, found.at) == ("retries", "small p")


def test_a_job_without_reduces_has_none_of_their_phases(tmp_path: Path) -> None:
    events = [event for event in terasort(2) if not event[0].startswith("REDUCE")]
    (run,) = runs_of([str(write_jhist(tmp_path / "a.jhist", events, binary=True))])
    assert list(run.phases) == ["start", "map", "commit"]
    assert sum(run.phases.values()) == pytest.approx(run.seconds)


def _ended(kind: str) -> Events:
    job = {"jobid": "job_1", "finishTime": 1_700_000_009_000, "jobStatus": kind}
    return [*terasort(2)[:-1], (kind, job)]


@FORMATS
@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (_ended("JOB_FAILED"), "it failed"),
        (_ended("JOB_KILLED"), "it was killed"),
        (_ended("JOB_ERROR"), "it failed with an internal error"),
        (terasort(2)[:-1], "its history has no end after 27 events"),
        ([terasort(2)[0], *terasort(2)], "its application master was started 2 times"),
        ([e for e in terasort(2) if "ATTEMPT" not in e[0]], "no attempt of a task that succeeded"),
    ],
    ids=["failed", "killed", "error", "no end", "restarted", "no attempts"],
)
def test_a_job_that_is_no_measurement_is_refused(
    tmp_path: Path, binary: bool, events: Events, expected: str
) -> None:
    write_jhist(tmp_path / "good.jhist", terasort(4), binary=binary)
    path = write_jhist(tmp_path / "bad.jhist", events, binary=binary)
    with pytest.raises(ValueError, match=r"cannot take bad.jhist as a measurement") as refused:
        runs_of([str(path)])
    assert expected in str(refused.value)
    said: list[str] = []
    assert len(runs_of([str(tmp_path)], note=said.append)) == 1
    assert said[0].startswith("left out: bad.jhist: ")
    assert expected in said[0]


@FORMATS
def test_wherever_a_file_is_cut_it_is_refused_with_the_place(tmp_path: Path, binary: bool) -> None:
    """In the head, within an event (with its byte), or between two (with the file's size)."""
    path = write_jhist(tmp_path / "a.jhist", terasort(2), binary=binary)
    whole = path.read_bytes()
    ends = len(whole.rstrip())
    for size in [*range(1, ends, 97), ends - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"cannot take a.jhist as a measurement") as refused:
            runs_of([str(path)])
        told = str(refused.value)
        assert (
            any(
                words in told
                for words in (
                    "its first line is neither",
                    f"at byte {size:,}",
                    "the event at byte ",
                )
            )
            or f"({size:,} bytes)" in told
        )
        assert "\n" not in told


@FORMATS
def test_damage_never_ends_in_a_traceback(tmp_path: Path, binary: bool) -> None:
    path = write_jhist(tmp_path / "a.jhist", terasort(2), binary=binary)
    whole = path.read_bytes()
    begin = len(b"\n".join(whole.split(b"\n", 2)[:2])) + 1
    chance = random.Random(7)
    refused = 0
    for _ in range(150):
        spoiled = bytearray(whole)
        for _ in range(3):
            spoiled[chance.randrange(begin, len(whole))] = chance.randrange(256)
        path.write_bytes(spoiled)
        try:
            runs_of([str(path)])
        except ValueError as error:
            assert "cannot take a.jhist as a measurement" in str(error)
            refused += 1
    assert refused > 50


def test_a_file_of_another_kind_and_a_damaged_schema(tmp_path: Path) -> None:
    path = tmp_path / "a.jhist"
    path.write_text("Avro-XML\n{}\n")
    with pytest.raises(ValueError, match="its first line is neither Avro-Json nor Avro-Binary"):
        runs_of([str(path)])
    path.write_text("Avro-Binary\n{]\n")
    with pytest.raises(ValueError, match="its schema, the line at byte 12, is damaged"):
        runs_of([str(path)])
    begin = 'Avro-Json\n{"type": "record"}\n'
    path.write_text(begin + "[" * 100_000 + "\n")
    with pytest.raises(ValueError, match=f"the event at byte {len(begin)} is damaged"):
        runs_of([str(path)])


def test_jobs_of_other_names_make_no_curve(tmp_path: Path) -> None:
    write_jhist(tmp_path / "a.jhist", terasort(2), binary=False)
    write_jhist(tmp_path / "b.jhist", terasort(4, name="TeraGen"), binary=False)
    with pytest.raises(ValueError, match="jobs of different commands"):
        runs_of([str(tmp_path)])
    assert [run.p for run in runs_of([str(tmp_path)], command="TeraSort")] == [2]
    said: list[str] = []
    files = [str(path) for path in sorted(tmp_path.iterdir())]
    assert [run.p for run in runs_of(files, note=said.append)] == [2, 4]
    assert said == ["jobs of different names are taken as runs of one program: TeraSort, TeraGen"]


def test_without_fastavro_json_is_read_and_binary_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_jhist(tmp_path / "j.jhist", terasort(2), binary=False)
    path = write_jhist(tmp_path / "b.jhist", terasort(2), binary=True)
    monkeypatch.setitem(sys.modules, "fastavro", None)
    assert len(runs_of([str(tmp_path / "j.jhist")])) == 1
    message = r"cannot read .*b.jhist: it is binary, and fastavro.*gristmill\[analysis\]"
    with pytest.raises(ModuleNotFoundError, match=message):
        runs_of([str(path)])
