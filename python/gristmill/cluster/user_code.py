"""What the user code of a job is in: that goes to the nodes along with it."""

from typing import NamedTuple

__all__ = ["UserCode"]


class UserCode(NamedTuple):
    """What the user code of a job is in, on this machine."""

    modules: tuple[str, ...] | None = None
    """Files of its modules; none if it is no Python."""
    files: tuple[str, ...] = ()
    """What it reads beside its input."""
    resumes: bool = False
    """Whether the job had another driver before: its agents may have left runs on nodes, and there
    may be fewer CPUs now."""
