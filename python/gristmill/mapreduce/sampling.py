"""Cut points of `gm.sampled_ranges()`: the job's map, over a sample of its input.

    even splits, the first records of each ─map, in workers─▶ keys ─sort─▶ cuts at even ranks

The sample is a job of its own, since user code runs in workers only; and it is the same
whatever the workers are, so that the output is.
"""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from gristmill import _core
from gristmill.locations import workplace
from gristmill.mapreduce.keyvalue import kv
from gristmill.mapreduce.partitioners import Ranges, SampledRanges
from gristmill.mapreduce.plain_order import plain_key
from gristmill.mapreduce.preparing import partitions_of, prepare, source_of
from gristmill.mapreduce.run_options import Options
from gristmill.mapreduce.spec import Spec
from gristmill.mapreduce.submitting import Stop, run_prepared

__all__ = ["cuts_of", "sampled"]

_SPLITS = 10


def sampled(job: Spec, ranges: SampledRanges, options: Options, stop: Stop) -> Spec:
    """Return the job with cut points; `stop` says whether to end before they are found."""
    partitions = partitions_of(job, source_of(job).plan(*job.split_sizes()))
    if partitions == 1:
        return replace(job, partition_by=Ranges(()), parts=None)
    assert job.output is not None
    parent = workplace(job.output.folder, _here(options).spill_dirs)
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".sample-", dir=parent) as folder:
        keys = _keys(job, ranges.records, f"{folder}/keys", options, stop)
    return replace(job, partition_by=Ranges(cuts_of(keys, partitions)), parts=None)


def _here(options: Options) -> Options:
    """Those of a job on this machine: what was asked of a cluster does not fit it."""
    if options.get("on") != "ray":
        return options
    of_cluster = ("on", "nodes", "workers", "memory", "spill_dir")
    return options.but(**dict.fromkeys(of_cluster))


def cuts_of(keys: list[Any], partitions: int) -> tuple[Any, ...]:
    """Return cuts at even ranks of `keys`, at most one less than `partitions`, all different.

    Example:
        >>> cuts_of([3, 1, 2, 4], 2)
        (3,)
        >>> cuts_of([1, 1, 1, 1], 3)
        (1,)
    """
    found = sorted((_core.encode_order(key), at) for at, key in enumerate(keys))
    ranks = [rank * len(found) // partitions for rank in range(1, partitions)] if found else []
    cuts = {found[rank][0]: keys[found[rank][1]] for rank in ranks}
    return tuple(cuts[encoded] for encoded in sorted(cuts))


def _keys(job: Spec, records: int, folder: str, options: Options, stop: Stop) -> list[Any]:
    grouped = job.group_by
    plain = Spec(
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
    plain_options = _here(options).but(
        history=False,
        overwrite=False,
        no_sync=True,
        replication=None,
        block_size=None,
    )
    options = replace(plain_options, source=None)
    prepared = prepare(plain, options, once="it only took a sample of its input")
    splits = prepared.spec["splits"]
    step = max(len(splits) // _SPLITS, 1)
    chosen = splits[::step]
    prepared.spec["splits"] = chosen
    limit = max(records // max(len(chosen), 1), 1)
    prepared = replace(prepared, definition=replace(prepared.definition, record_limit=limit))
    run_prepared(prepared, progress=False, stop=stop)
    files = sorted(Path(folder).glob("part-*"))
    turned = replace(kv(folder), turned=True)  # which cuts must be, too
    keys = [key for file in files for key, _ in turned.open_file(str(file))]
    return keys if grouped is None else [grouped(plain_key(key)) for key in keys]
