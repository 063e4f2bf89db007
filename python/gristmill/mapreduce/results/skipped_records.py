"""What the jobs of a chain did together: their counters, and bad records in files that stay.

    out/.out.job_1-0/_bad-m-00000.jsonl ─copied─▶ out/_bad-1-m-00000.jsonl     of the first job

What a job of a chain keeps for the next one goes at the end of the chain. Its files `_bad-*` do
not: they are copied into the last output, with the number of the job in their names. Counters of
the jobs' functions are added up, too; those of Gristmill are the last job's.
"""

import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from gristmill import _core
from gristmill.locations import is_remote, open_read
from gristmill.mapreduce.results.result import LEFT_OUT, Result
from gristmill.mapreduce.spec import Spec
from gristmill.report import JobReport

__all__ = ["with_skipped_records"]


def with_skipped_records(
    jobs: Sequence[Spec], kept: Sequence[bool], results: Sequence[Result]
) -> Result:
    """Return the result of a chain: that of its last job, with what all left out and counted.

    Args:
        jobs: Those of the chain, in order.
        kept: Whether the output of each goes with the chain.
        results: Of each; their outputs are still there.
    """
    *before, last = results
    places: dict[str, int] = {}
    report = last.report
    for number, (one, goes, result) in enumerate(zip(jobs, kept, results, strict=True), 1):
        if not result.skipped:
            continue
        folder = result.form.folder
        if goes:
            try:
                _copy(result, number, last.form.folder)
                folder = last.form.folder
            except OSError as error:
                report = _warned(report, result.skipped, one.name, error)
                folder = ""
        places[folder] = places.get(folder, 0) + result.skipped
    if not before:
        return replace(last, left_out=places)
    said = [warning for result in before for warning in result.report.warnings]
    report = replace(report, warnings=tuple(dict.fromkeys([*said, *report.warnings])))
    if places:
        counters = {
            name: sum(result.report.counters.get(name, 0) for result in results)
            for name in LEFT_OUT
        }
        report = replace(report, counters={**report.counters, **counters})
    report = replace(report, user_counters=_added(result.user_counters for result in results))
    of_chain = tuple((one.name, done.report) for one, done in zip(jobs, results, strict=True))
    return replace(last, report=report, left_out=places, of_chain=of_chain)


def _added(counted: Iterable[dict[str, dict[str, int]]]) -> dict[str, dict[str, int]]:
    """The sums of counters, by their groups and names, in the order of these."""
    sums: dict[str, Counter[str]] = {}
    for groups in counted:
        for group, counters in groups.items():
            sums.setdefault(group, Counter()).update(counters)
    return {group: dict(sorted(sums[group].items())) for group in sorted(sums)}


def _copy(result: Result, number: int, folder: str) -> None:
    """Copy the files `_bad-*` of a result into another output."""
    for part in result.parts:
        if part.is_bad:
            target = f"{folder}/{part.name.replace('_bad-', f'_bad-{number}-', 1)}"
            with open_read(f"{result.form.folder}/{part.name}") as file:
                _put(file.read(), target)


def _put(data: bytes, target: str) -> None:
    if not is_remote(target):
        Path(target).write_bytes(data)
        return
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "bad")
        source.write_bytes(data)
        _core.put_file(source, target)


def _warned(report: JobReport, skipped: int, name: str, error: OSError) -> JobReport:
    lost = f"the {skipped:,} bad records that {name} left out are not kept: {error}"
    return replace(report, warnings=(*report.warnings, lost))
