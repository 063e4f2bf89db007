"""Cut points of `gm.sampled_ranges()`: the job's map, over a sample of its input.

    even splits, the first records of each ─map, in workers─▶ keys ─sort─▶ cuts of even parts

The sample is a job of its own, since user code runs in workers only; and it is the same
whatever the workers are, so that the output is.
"""

import tempfile
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from gristmill import _core
from gristmill.locations import workplace
from gristmill.mapreduce.formats.keyvalue import kv
from gristmill.mapreduce.keys import Desc
from gristmill.mapreduce.partitioners import Ranges, SampledRanges
from gristmill.mapreduce.plain_order import plain_key
from gristmill.mapreduce.run_options import Options
from gristmill.mapreduce.spec import Spec
from gristmill.mapreduce.submit.preparing import partitions_of, prepare, source_of
from gristmill.mapreduce.submit.submitting import Stop, run_prepared

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
    r"""Return cuts that make parts of about the same size, each the first key of a part.

    A key that is more than a part's share gets a part of its own, and the other keys share the
    rest. There are fewer parts where there are fewer keys.

    Example:
        >>> cuts_of([3, 1, 2, 4], 2)
        (3,)
        >>> cuts_of([1, 1, 1, 1], 3)
        ()
        >>> cuts_of([*"abcd", *"m" * 96, *"xyz"], 4)
        ('c', 'm', 'm\x00')
    """
    found = sorted((_core.encode_order(key), at) for at, key in enumerate(keys))
    groups = [list(same) for _, same in groupby(found, lambda one: one[0])]
    counts = [len(same) for same in groups]
    firsts = [keys[same[0][1]] for same in groups]
    hot = _hot(counts, partitions)
    begins = _begins(counts, partitions)
    return tuple(
        _cut_behind(firsts[number - 1], firsts[number]) if number - 1 in hot else firsts[number]
        for number in begins
    )


def _cut_behind(hot: Any, following: Any) -> Any:  # noqa: ANN401 - any keys
    """The first key that can come behind a hot one; or that which follows it in the sample."""
    match hot:
        case str():
            return hot + "\0"
        case bytes():
            return hot + b"\0"
        case tuple() if not isinstance(following, Desc):
            return (*hot, None)  # pyright: ignore[reportUnknownVariableType]
        case int():
            return min(hot + 1, following, key=_core.encode_order)
        case _:
            return following


def _begins(counts: list[int], parts: int) -> list[int]:
    """The numbers of the keys at which parts begin, but for the first part."""
    hot = _hot(counts, parts)
    walls = _walls(hot, len(counts))
    while len(walls) > parts - 1:  # the least of the hot keys share a part with what is beside them
        hot.remove(min(hot, key=counts.__getitem__))
        walls = _walls(hot, len(counts))
    begins: list[int] = []
    left = sum(count for number, count in enumerate(counts) if number not in hot)
    of_hot, held, share = len(hot), 0, 0.0
    for number, count in enumerate(counts):
        is_wall = number in walls
        may_cut = held and len(begins) + len(walls) < parts - 1
        if is_wall or (may_cut and held + count / 2 >= share):
            begins.append(number)
            held = 0
        walls.discard(number)
        if number in hot:
            of_hot -= 1
            continue
        if not held:
            share = left / max(parts - len(begins) - of_hot, 1)
        held += count
        left -= count
    return begins


def _hot(counts: list[int], parts: int) -> set[int]:
    """The keys that are more than a part's share of what the hotter ones leave."""
    by_count = sorted(range(len(counts)), key=counts.__getitem__, reverse=True)
    left, hot = sum(counts), set[int]()
    for number in by_count[: parts - 1]:
        if counts[number] * (parts - len(hot)) <= left:
            break
        hot.add(number)
        left -= counts[number]
    return hot


def _walls(hot: set[int], keys: int) -> set[int]:
    """Where parts begin since a hot key has its own."""
    return {number for one in hot for number in (one, one + 1) if 0 < number < keys}


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
    options = replace(plain_options, source=None, progress=False)
    prepared = prepare(plain, options, once="it only took a sample of its input")
    splits = prepared.spec["splits"]
    step = max(len(splits) // _SPLITS, 1)
    chosen = splits[::step]
    prepared.spec["splits"] = chosen
    limit = max(records // max(len(chosen), 1), 1)
    prepared = replace(prepared, definition=replace(prepared.definition, record_limit=limit))
    run_prepared(prepared, stop)
    files = sorted(Path(folder).glob("part-*"))
    turned = replace(kv(folder), turned=True)  # keys come back as Desc, as cuts are
    keys = [key for file in files for key, _ in turned.open_file(str(file))]
    return keys if grouped is None else [grouped(plain_key(key)) for key in keys]
