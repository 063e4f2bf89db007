"""`Job.explain`: the plan of a job, for people."""

from itertools import pairwise
from typing import Any

from gristmill import _core
from gristmill.cluster import planned, where_tasks_run
from gristmill.locations import is_remote
from gristmill.mapreduce.run_options import Options
from gristmill.mapreduce.spec import Spec
from gristmill.mapreduce.submit.chain import Chain
from gristmill.mapreduce.submit.explained_stores import explained_store
from gristmill.mapreduce.submit.preparing import Prepared, prepare
from gristmill.mapreduce.submit.streams import redirected, streams_of, unread
from gristmill.names import from_json, show_path, to_json
from gristmill.store_options import with_store_options
from gristmill.units import show_bytes, show_count

__all__ = ["explain", "plan_of"]

_FOR_THE_NEXT = "a hidden directory, until the chain is over"
_UNKNOWN = "a stream of unknown length"


def explain(job: Spec, options: Options) -> str:
    """Return a page about a job; of a chain, about what can be planned before it runs."""
    with with_store_options(options.get("store_option")):
        chain = Chain.of(job, options)
        pages = [_page(chain.jobs[0], options)]
        pages += [_later(before, after) for before, after in pairwise(chain.jobs)]
        text = "\n\n".join(pages)
        for one, is_kept in zip(chain.jobs, chain.kept, strict=True):
            if is_kept:
                text = text.replace(str(one.output), _FOR_THE_NEXT)
        text = text.replace(str(chain.folder), str(chain.folder.parent))  # which has its disk
    return _Text(text)


def _later(before: Spec, job: Spec) -> str:
    """What is known of a job before the one that it reads from has run."""
    return "\n".join(
        [
            job.name,
            f"  input        what {before.name} writes; splits are known then",
            f"  output       {_files(job)} in {job.output}",
        ]
    )


def _files(job: Spec) -> str:
    """How many files a job writes, where its splits are not known."""
    return show_count(job.parts, "file") if job.reduces and job.parts else "files"


class _Text(str):
    """Text that shells and notebooks show as it is, not as a literal."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def plan_of(job: Spec, options: Options) -> dict[str, Any]:
    """Return the plan of a job, for programs; of a chain, that of the first job."""
    with with_store_options(options.get("store_option")):
        jobs = Chain.of(job, options).jobs
        first = redirected(jobs[0])
        _, plan = _planned(first, options)
        then = [after.name for after in jobs[1:]]
        return {**plan, "name": first.name, "then": then}


def _planned(job: Spec, options: Options) -> tuple[Prepared, dict[str, Any]]:
    prepared = prepare(unread(job), options)
    spec = to_json({"mapreduce": prepared.spec})
    cluster = planned(options.given)
    told = _core.explain(spec, cluster=cluster, command_line=options.command_line)
    return prepared, from_json(told)


def _page(job: Spec, options: Options) -> str:
    job = redirected(job)
    streams = streams_of(job.input)
    prepared, plan = _planned(job, options)
    splits = prepared.plan.splits
    longest = max((split.bytes for split in splits), default=0)
    tasks = "; ".join(
        show_count(stage["tasks"], f"{stage['name']} task") for stage in plan["stages"]
    )
    parts = prepared.spec["partitions"] or len(splits)
    if streams:  # what depends on their length is known when they have been read
        size = " and ".join([show_bytes(prepared.plan.bytes)] * bool(splits) + [_UNKNOWN])
        rest = "known when the stream has been read, which explain does not do"
        return "\n".join(
            [
                job.name,
                f"  input        {size}, of {job.input}",
                f"  splits       {rest}",
                f"  output       {_files(job)} in {job.output}",
                *_resources(plan),
            ]
        )
    return "\n".join(
        [
            job.name,
            f"  input        {show_bytes(prepared.plan.bytes)} of {job.input}",
            f"  splits       {len(splits):,}, of {show_bytes(longest)} at most",
            f"  tasks        {tasks}",
            f"  output       {show_count(parts, 'file')} in {job.output}",
            *_resources(plan),
        ]
    )


def _resources(plan: dict[str, Any]) -> list[str]:
    """Memory by its uses, what is free where the job writes on disks, and the stores it asks."""
    memory, workers = show_bytes(plan["memory_bytes"]), show_count(plan["workers"], "worker")
    uses = [f"{show_bytes(one['bytes'])} for {one['name']}" for one in plan["reservations"]]
    return [
        f"  budget       {memory} for {workers} in {where_tasks_run(plan)}: {', '.join(uses)}",
        *(f"  disk         {_disk(disk)}" for disk in plan["disks"] if not is_remote(disk["path"])),
        *(f"  store        {explained_store(store)}" for store in plan["stores"]),
        *dict.fromkeys(f"Note: {disk['notice']}" for disk in plan["disks"] if disk["notice"]),
    ]


def _disk(disk: dict[str, Any]) -> str:
    free = "" if disk["free"] is None else f", {show_bytes(disk['free'])} free"
    return f"{disk['purpose']} in {show_path(disk['path'])}{free}"
