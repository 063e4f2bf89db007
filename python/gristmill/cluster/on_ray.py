"""Agents that Ray places, starts and watches: an actor on each node, which does nothing else.

    connected ─▶ nodes ─▶ shares of the workers ─▶ an actor on each node, with so many CPUs
    packed    ─▶ the engine and the user's code go along, where a node does not have them
    actor     ─▶ agent: a process of its own, by stdin and stdout
              ◀─ what the agent says of itself
    watch     ─▶ the same on nodes that join while the job runs

No task and no data goes through Ray. An actor that ends, for whatever reason, closes the agent's
stdin: the agent ends, too. It removes its runs if it was told that the job is over, and leaves them
for one that is resumed if not.
"""

import os
import secrets
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from gristmill import _core
from gristmill.cluster.actor import Agent, machine, tls_files
from gristmill.cluster.connection import connected, failed, first_line, load, variables_of_stores
from gristmill.cluster.head import HeadWatch, at_most
from gristmill.cluster.packing import kept_by, packed
from gristmill.cluster.reserving import Reserved, memory_of_worker, on_node, shares
from gristmill.cluster.user_code import UserCode
from gristmill.cluster.watching import Begun, Watch, draining
from gristmill.errors import ours, told_by
from gristmill.names import from_json, to_json
from gristmill.units import show_bytes

__all__ = ["agents", "told_all"]

_END_S = 3.0
"""How long the end of a job waits for agents to remove their runs."""

_TICK_S = 0.1
_TELL_AFTER_S = 3.0

_SEGMENTS = "GRISTMILL_SEGMENTS"
"""Set to `http`, no agent reads runs of another one as files: to see what the network gives."""


@contextmanager
def agents(
    options: Mapping[str, Any],
    job_id: str,
    code: UserCode,
    check: Callable[[], None],
    tell: Callable[[str], None],
) -> Generator[_core.Cluster]:
    """Begin an agent on each node; see `gristmill.cluster.placed`."""
    ray, along = load(), packed(code)
    begun: list[Begun] = []
    with connected(ray):
        workers, nodes = options.get("workers"), options.get("nodes")
        given = shares(ray, workers, draining(ray), most=nodes, fewer=code.resumes)
        each = memory_of_worker(given, options.get("memory"), workers)
        token = secrets.token_hex(32)
        told = told_all(job_id, token, options.get("spill_dir") or ())
        told |= {"resumes": code.resumes}
        variables, kept = variables_of_stores(), kept_by(ray, along)
        head = HeadWatch(ray)
        reserved = Reserved(ray, given, each)  # from here on it is to be given back

        def begin(number: int, node: dict[str, Any], workers: int) -> Begun:
            spec = told | {"agent": number, "workers": workers}
            spec["host"] = node["NodeManagerAddress"]
            made = on_node(ray, node, Agent, workers, reserved, workers * each)
            actor = made.remote(kept, machine())
            hello, ended = actor.begin.remote(spec, variables), actor.ended.remote()
            return Begun(number, node["NodeID"], workers, actor, hello, ended)

        def check_all() -> None:
            check()
            if head.is_there():
                reserved.check()

        watch = Watch(ray, begun, begin, (workers, nodes), reserved.most)
        try:
            begun += [begin(number, *one) for number, one in enumerate(given)]
            tls = tls_files(os.environ) or {}
            known = {"token": token, "authorities": tls.get("authorities")}
            said = _said(ray, begun, given, check_all, lambda: tell(_waits(given, each)))
            cluster = _core.Cluster(to_json(known | {"agents": said}))
            watch.start(cluster)
            head.start(cluster)
            yield cluster
        finally:
            watch.stop()
            head.stop()
            at_most(2 * _END_S, lambda: _end(ray, begun, reserved, over=not code.resumes))


def _end(
    ray: Any,  # noqa: ANN401 - a module
    begun: list[Begun],
    reserved: Reserved,
    *,
    over: bool,
) -> None:
    """End all agents, and their actors. Without a head this may take for ever."""
    with suppress(Exception):  # the cluster may be gone
        for one in begun:
            one.actor.finish.remote(over=over)
        ray.wait([one.ended for one in begun], num_returns=len(begun), timeout=_END_S)
    for one in begun:
        with suppress(Exception):
            ray.kill(one.actor)
    reserved.give_back()


def told_all(job_id: str, token: str, spill_dir: Iterable[str]) -> dict[str, Any]:
    """Return what all agents of a job are told alike."""
    return {
        "job_id": job_id,
        "token": token,
        "spill_dir": [os.path.abspath(path) for path in spill_dir],  # noqa: PTH100 - links stay
        "reads_files": os.environ.get(_SEGMENTS) != "http",
    }


def _waits(given: list[tuple[dict[str, Any], int]], each: int) -> str:
    """What is told of a cluster that does not give at once what was asked for."""
    workers = sum(count for _, count in given)
    memory = f" and {show_bytes(workers * each)} of memory" if each else ""
    return f"waiting for {workers} CPUs{memory} of the cluster: other jobs may have them now"


def _said(
    ray: Any,  # noqa: ANN401 - a module
    begun: list[Begun],
    given: list[tuple[dict[str, Any], int]],
    check: Callable[[], None],
    tell: Callable[[], None],
) -> list[Any]:
    """What all agents say of themselves, once they have begun."""
    waiting = [one.hello for one in begun]
    said, told, since = list(waiting), False, time.monotonic()
    while waiting:
        check()
        _, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=_TICK_S)
        if waiting and not told and time.monotonic() - since > _TELL_AFTER_S:
            told = True
            tell()
    try:
        answers = ray.get(said)
    except Exception as error:
        raise failed(
            f"an agent could not be started: {first_line(error)}", "look at `ray status`"
        ) from error
    for (node, _), answer in zip(given, answers, strict=True):
        if "error" in answer:
            where = f"node {node['NodeManagerAddress']}"
            error = OSError(f"{answer['error'].rstrip()} (on {where})")
            raise told_by(error, answer["told"]) if "told" in answer else ours(error, "io")
    return [from_json(answer["hello"]) for answer in answers]
