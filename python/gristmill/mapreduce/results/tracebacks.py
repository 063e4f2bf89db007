"""Tracebacks as a user reads them: the user's frames, and none of ours.

An interruption, and a paragraph that begins with "cannot", say all there is to say; the frames in
which Gristmill found that out say nothing more. Anything else keeps all of its frames, for it may
be a defect of ours. If a file of the user's stands in front of a module that an exception names, a
note says so. A plain `raise` must follow in the function that the user called, since it
adds no frame.
"""

from pathlib import Path
from types import TracebackType

from gristmill.shadows import shadows_in

__all__ = ["without_our_frames"]

_OURS = str(Path(__file__).parents[2])
_BETWEEN = ("/cloudpickle/", "/concurrent/futures/", "/contextlib.py")
"""Code of others that Gristmill calls, and that calls user code or Gristmill."""


def without_our_frames(error: BaseException) -> None:
    """Take the frames of Gristmill from an exception, if it explains itself.

    Example:
        >>> import gristmill as gm
        >>> try:
        ...     gm.Job(gm.text("no such file"), map=len, output=gm.kv("out")).run()
        ... except FileNotFoundError as error:
        ...     frames = error.__traceback__
        >>> frames.tb_next is None
        True
    """
    for shadow in shadows_in(str(error)):
        if shadow not in str(error) and shadow not in getattr(error, "__notes__", ()):
            error.add_note(shadow)
    explained = isinstance(error, KeyboardInterrupt) or str(error).startswith("cannot ")
    frames = _users(error.__traceback__)
    if not explained and frames is None:
        return
    if explained:
        cause = error.__cause__ or error.__context__
        if cause is not None and _users(cause.__traceback__) is None:
            error.__cause__, error.__suppress_context__ = None, True
    error.__traceback__ = frames


def _users(trace: TracebackType | None) -> TracebackType | None:
    """The frames that are not ours, in their order."""
    if trace is None:
        return None
    rest = _users(trace.tb_next)
    file = trace.tb_frame.f_code.co_filename
    if file.startswith(_OURS) or any(part in file for part in _BETWEEN):
        return rest
    return TracebackType(rest, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
