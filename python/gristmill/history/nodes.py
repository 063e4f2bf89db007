"""What a job did on each node of a cluster, from its history: for `jobs show` and `report`.

Names of nodes are those of the history: a host, with a number where several agents were on one.
"""

from dataclasses import dataclass

__all__ = ["NodeRead", "NodeSample"]


@dataclass(slots=True, kw_only=True)
class NodeSample:
    """What a job had used on a node of a cluster (docs/internals/history.md)."""

    node: str
    """The name of the node in this history."""
    user_s: float = 0.0
    """CPU seconds in user mode: of the agent, and of the workers and scripts below it."""
    sys_s: float = 0.0
    """CPU seconds in the kernel, likewise."""
    own_s: float = 0.0
    """Of both together, those of the agent."""
    machine: dict[str, float] | None = None
    """CPU seconds of the machine, said of one of its nodes: user, sys, iowait, steal, idle."""
    anon_bytes: int = 0
    """Anonymous and shared memory."""
    disk_read_bytes: int = 0
    """Bytes read from devices."""
    disk_write_bytes: int = 0
    """Bytes written to them."""
    own_bytes: int = 0
    """Bytes of its own runs that it read."""
    sent_bytes: int = 0
    """Bytes of runs that it sent to other nodes."""
    received_bytes: int = 0
    """Bytes of runs that other nodes sent to it."""
    file_bytes: int = 0
    """Bytes of runs of other nodes that it read as files."""
    is_lost: bool = False
    """Whether it is lost."""


@dataclass(slots=True, kw_only=True)
class NodeRead:
    """Bytes of runs that a node read from a node, which may be itself."""

    by: str
    """The node that read."""
    kept_by: str
    """The node that keeps the runs."""
    received_bytes: int = 0
    """Over the network."""
    file_bytes: int = 0
    """As files."""
