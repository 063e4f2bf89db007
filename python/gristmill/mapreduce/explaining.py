"""`Job.explain`: the plan of a job, for people."""

import json

from gristmill import _core
from gristmill.mapreduce.job import Job
from gristmill.mapreduce.launching import Options, chained, prepare
from gristmill.units import show_bytes, show_count

__all__ = ["explain"]


def explain(job: Job, options: Options) -> str:
    """Return a page about a job; of a chain, about what can be planned before it runs."""
    with chained(job) as jobs:
        pages = [_page(jobs[0], options)]
        pages += [f"{after.name}\n  after that, from {after.input}" for after in jobs[1:]]
    return "\n\n".join(pages)


def _page(job: Job, options: Options) -> str:
    prepared = prepare(job, options)
    spec = json.dumps({"mapreduce": prepared.spec})
    plan = json.loads(_core.explain(spec, command_line=options.command_line))
    splits = prepared.plan.splits
    longest = max((split.bytes for split in splits), default=0)
    tasks = "; ".join(
        show_count(stage["tasks"], f"{stage['name']} task") for stage in plan["stages"]
    )
    parts = prepared.spec["partitions"] or len(splits)
    return "\n".join(
        [
            job.name,
            f"  input        {show_bytes(prepared.plan.bytes)} of {job.input}",
            f"  splits       {len(splits):,}, of {show_bytes(longest)} at most",
            f"  tasks        {tasks}",
            f"  output       {show_count(parts, 'file')} in {job.output}",
            f"  budget       {show_bytes(plan['memory_bytes'])}"
            f" for {show_count(plan['workers'], 'worker')}",
        ]
    )
