"""Agents on the nodes of a cluster, for as long as a job runs.

    placed({"on": "ray"}) ──▶ on_ray: a Ray actor on each node ──starts──▶ an agent
                          ──▶ what _core.Job is told of them, also of those that begin later
    planned({"on": "ray"}) ─▶ planning: what _core.explain is told of those that there would be

Of Ray nothing is imported before a job asks for it.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from gristmill import _core
from gristmill.cluster.user_code import UserCode
from gristmill.units import show_count

__all__ = ["placed", "planned", "where_tasks_run"]


_NONE = UserCode()


@contextmanager
def placed(
    options: Mapping[str, Any],
    job_id: str,
    *,
    code: UserCode = _NONE,
    check: Callable[[], None] = lambda: None,
    tell: Callable[[str], None] = lambda _: None,
) -> Generator[_core.Cluster | None]:
    """Begin the agents that a job asks for, and end them after it.

    Args:
        options: Those of the job.
        job_id: Its name.
        code: What its user code is in, if it has some.
        check: Called while agents begin; what it raises ends that.
        tell: Is given sentences for the user, where beginning takes long.

    Yields:
        The agents, as the engine has them; nothing of a job that runs on this machine.

    Raises:
        ValueError: An option makes no sense, or Ray is not installed.
        OSError: The cluster cannot be reached, or has no room.

    Example:
        >>> with placed({"on": "local"}, "job_1") as cluster:
        ...     cluster is None
        True
    """
    if options.get("on") != "ray":
        yield None
        return
    from gristmill.cluster.on_ray import agents

    with agents(options, job_id, code, check, tell) as cluster:
        yield cluster


def planned(options: Mapping[str, Any]) -> str | None:
    """Return what `explain` is told of the agents that a job would have; none of them begins.

    Args:
        options: Those of the job.

    Returns:
        As `placed` yields it; nothing of a job that runs on this machine.

    Raises:
        ValueError: An option makes no sense, or Ray is not installed.
        OSError: The cluster cannot be reached, or a node does not answer.

    Example:
        >>> planned({"on": "local"}) is None
        True
    """
    if options.get("on") != "ray":
        return None
    from gristmill.cluster.planning import as_planned

    return as_planned(options)


def where_tasks_run(plan: Mapping[str, Any]) -> str:
    """Say where the tasks of a plan of `explain` run.

    Example:
        >>> where_tasks_run({"runner": "agents", "nodes": 2})
        'agents on 2 nodes'
    """
    on = f" on {show_count(plan['nodes'], 'node')}" if plan["nodes"] else ""
    return f"{plan['runner']}{on}"
