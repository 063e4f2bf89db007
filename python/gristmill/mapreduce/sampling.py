"""Cut points of `gm.sampled_ranges()`: the job's map, over a sample of its input.

    even splits, the first records of each ─map, in workers─▶ keys ─sort─▶ cuts at even ranks

The sample is a job of its own, since people's code runs in workers only; and it is the same
whatever the workers are, so that the output is.
"""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gristmill import _core
from gristmill.mapreduce.job import Job
from gristmill.mapreduce.keyvalue import kv
from gristmill.mapreduce.partitioners import Ranges, SampledRanges

if TYPE_CHECKING:
    from gristmill.mapreduce.launching import Options, Stop

__all__ = ["cuts_of", "sampled"]

_SPLITS = 10


def sampled(job: Job, ranges: SampledRanges, options: "Options", stop: "Stop") -> Job:
    """Return the job with cut points; `stop` says whether to end before they are found."""
    from gristmill.mapreduce.launching import partitions_of, source_of

    partitions = partitions_of(job, source_of(job).plan(*job.split_sizes()))
    if partitions == 1:
        return replace(job, partition_by=Ranges(()), parts=None)
    assert job.output is not None
    parent = Path(job.output.folder).absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".sample-", dir=parent) as folder:
        keys = _keys(job, ranges.records, f"{folder}/keys", options, stop)
    return replace(job, partition_by=Ranges(cuts_of(keys, partitions)), parts=None)


def cuts_of(keys: list[Any], partitions: int) -> tuple[Any, ...]:
    """Return cuts at even ranks of `keys`, at most one less than `partitions`, all different.

    Example:
        >>> cuts_of([3, 1, 2, 4], 2)
        (3,)
        >>> cuts_of([1, 1, 1, 1], 3)
        (1,)
    """
    found = sorted((_core.encode_key(key), at) for at, key in enumerate(keys))
    ranks = [rank * len(found) // partitions for rank in range(1, partitions)] if found else []
    cuts = {found[rank][0]: keys[found[rank][1]] for rank in ranks}
    return tuple(cuts[encoded] for encoded in sorted(cuts))


def _keys(job: Job, records: int, folder: str, options: "Options", stop: "Stop") -> list[Any]:
    from gristmill.mapreduce.launching import prepare, run_prepared

    grouped = job.group_by
    plain = Job(
        job.input,
        map=job.map,
        map_batches=job.map_batches,
        setup=job.setup,
        files=job.files,
        outputs=job.outputs,  # which the functions may write to, for nobody here
        skip_bad=job.skip_bad,
        split_min=job.split_min,
        split_max=job.split_max,
        output=kv(folder),
        name=f"{job.name} (sample)",
    )
    options = replace(options, history=False, overwrite=False, no_sync=True)
    prepared = prepare(plain, options, once="it only took a sample of its input")
    splits = prepared.spec["splits"]
    step = max(len(splits) // _SPLITS, 1)
    chosen = splits[::step]
    prepared.spec["splits"] = chosen
    limit = max(records // max(len(chosen), 1), 1)
    prepared = replace(prepared, definition=replace(prepared.definition, record_limit=limit))
    run_prepared(prepared, progress=False, stop=stop)
    files = sorted(Path(folder).glob("part-*"))
    keys = [key for file in files for key, _ in kv(folder).open_file(str(file))]
    return keys if grouped is None else [grouped(key) for key in keys]
