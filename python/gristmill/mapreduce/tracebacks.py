"""Tracebacks as a user reads them: the user's frames, and one of ours at the call that failed.

A paragraph that begins with "cannot" says all there is to say; the frames in which Gristmill found
that out say nothing more. Anything else keeps all of its frames, for it may be a defect of ours.
"""

from pathlib import Path
from types import TracebackType
from typing import TypeVar

__all__ = ["without_our_frames"]

_OURS = str(Path(__file__).parents[1])
_BETWEEN = ("/cloudpickle/", "/concurrent/futures/")
"""Code of others that Gristmill calls, and that calls user code or Gristmill."""

Raised = TypeVar("Raised", bound=BaseException)


def without_our_frames(error: Raised) -> Raised:
    """Return an exception without the frames of Gristmill, if it explains itself.

    Example:
        >>> import gristmill as gm
        >>> try:
        ...     gm.Job(gm.text("no such file"), map=len, output=gm.kv("out")).run()
        ... except FileNotFoundError as error:
        ...     frames = error.__traceback__
        >>> frames.tb_next.tb_frame.f_code.co_name, frames.tb_next.tb_next
        ('run', None)
    """
    explained = str(error).startswith("cannot ")
    frames = _users(error.__traceback__)
    if not explained and frames is None:
        return error
    if explained:
        cause = error.__cause__ or error.__context__
        if cause is not None and _users(cause.__traceback__) is None:
            error.__cause__, error.__suppress_context__ = None, True
    return error.with_traceback(frames)


def _users(trace: TracebackType | None) -> TracebackType | None:
    """The frames that are not ours, in their order."""
    if trace is None:
        return None
    rest = _users(trace.tb_next)
    file = trace.tb_frame.f_code.co_filename
    if file.startswith(_OURS) or any(part in file for part in _BETWEEN):
        return rest
    return TracebackType(rest, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
