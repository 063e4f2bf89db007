"""What a worker tells the driver about a task that failed: the JSON of the engine's `TaskFailure`.

Imported once something failed, so that no worker starts slower for it. Nothing here may fail in its
turn: not for an exception whose `str` raises, nor for want of memory.
"""

import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from gristmill.names import as_name, show_text, to_json

__all__ = ["describe", "encoded", "may_pass", "of_bug"]

_KINDS = frozenset({"user_code", "bad_input", "memory", "io", "disk_full", "bug"})
_OURS = str(Path(__file__).parent) + os.sep
_MESSAGE_MAX = 1000
_RECORD_MAX = 300
_TRACEBACK_MAX = 16_000


def describe(error: BaseException, doing: str) -> dict[str, Any]:
    """Return the failure that an exception is.

    An exception which carries a `failure` with a method `to_dict` has been described already.
    Otherwise its attributes `kind`, `where` and `record` are used, if it has them.

    Args:
        error: The exception.
        doing: What was being done, such as `run the job's functions`.
    """
    try:
        ready: Callable[[], dict[str, Any]] | None = getattr(
            getattr(error, "failure", None), "to_dict", None
        )
        return _described(error, doing) if ready is None else ready()
    except BaseException as another:  # noqa: BLE001 - the report of a failure must not fail
        return {
            "kind": "memory" if isinstance(error, MemoryError) else "user_code",
            "message": f"cannot {doing}: {type(error).__name__}, and then {type(another).__name__}",
            "fingerprint": type(error).__name__,
            "retryable": True,
        }


def of_bug(message: str) -> dict[str, Any]:
    """Return the failure of a task for which Gristmill is to blame."""
    return {"kind": "bug", "message": message, "fingerprint": message, "retryable": False}


def may_pass(error: BaseException | None) -> bool:
    """Whether the next attempt may succeed at the same record: a time-out or a lost connection.

    Libraries have exceptions of their own for it, raised while one of the language's was handled.

    Example:
        >>> may_pass(TimeoutError("no answer in 3 s")), may_pass(ValueError("no number"))
        (True, False)
    """
    while error is not None:
        if isinstance(error, (TimeoutError, ConnectionError)):
            return True
        error = error.__cause__ or error.__context__
    return False


def encoded(failure: dict[str, Any]) -> bytes:
    r"""Return a failure as the driver wants it: JSON with text and names only.

    Example:
        >>> encoded({"record": chr(0xDCFF), "where": {"file": chr(0xDCFF)}})
        b'{"record": "\\\\xff", "where": {"file": "\\u0000ff"}}'
    """
    return to_json(_clean(failure)).encode()


def _described(error: BaseException, doing: str) -> dict[str, Any]:
    told = traceback.TracebackException.from_exception(error)
    _leave_out_ours(told)
    frames = list(told.stack)
    loading = doing.startswith("load")
    kind = _kind(error, by_user=loading or bool(frames))
    what = " ".join("".join(told.format_exception_only()).split())
    last = f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
    where, record = _where(error), _text(getattr(error, "record", ""))
    return {
        "kind": kind,
        "message": _short(f"cannot {doing}: {what}{last and f' ({last})'}.", _MESSAGE_MAX),
        "traceback": _short("".join(told.format()), _TRACEBACK_MAX) if frames else "",
        "where": where,
        "record": _short(record, _RECORD_MAX),
        # Without the text of the exception, which may have an address or a time in it.
        "fingerprint": ""
        if may_pass(error)
        else _short(f"{type(error).__qualname__}|{last}|{where}|{record}", _MESSAGE_MAX),
        "retryable": not loading and kind in ("user_code", "memory", "io"),
    }


def _kind(error: BaseException, *, by_user: bool) -> str:
    said = getattr(error, "kind", None)
    if isinstance(said, str) and said in _KINDS:
        return said
    if isinstance(error, MemoryError):
        return "memory"
    if by_user or not isinstance(error, Exception):
        return "user_code"
    return "io" if isinstance(error, OSError) else "bug"


def _where(error: BaseException) -> dict[str, Any] | None:
    where = getattr(error, "where", None)
    if not isinstance(where, dict):
        return None
    found = cast("dict[str, object]", where)
    place: dict[str, Any] = {"file": _text(found.get("file", ""))}
    for name in ("offset", "record", "line"):
        number = found.get(name)
        place[name] = number if isinstance(number, int) and number >= 0 else 0
    return place


def _leave_out_ours(told: traceback.TracebackException) -> None:
    """Leave the user's frames alone, in what was raised and in all that led to it."""
    pending: list[traceback.TracebackException | None] = [told]
    while pending:
        current = pending.pop()
        if current is not None:
            current.stack[:] = [frame for frame in current.stack if not _is_ours(frame.filename)]
            pending += [current.__cause__, current.__context__]
            pending += getattr(current, "exceptions", None) or []


def _is_ours(filename: str) -> bool:
    return filename.startswith((_OURS, "<frozen ")) or filename.endswith("/runpy.py")


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return repr(value)
    except Exception as error:  # noqa: BLE001 - the user's own __repr__
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"


def _short(text: str, longest: int) -> str:
    """Cut the middle out: how it began and how it ended say most."""
    if len(text) <= longest:
        return text
    return f"{text[: longest // 3]} [...] {text[-(longest - longest // 3) :]}"


def _clean(value: object) -> object:
    """Replace what is not Unicode text (half a surrogate pair): the engine refuses it."""
    if isinstance(value, str):
        return show_text(value)
    if isinstance(value, dict):
        pairs = cast("dict[object, object]", value).items()
        return {
            _clean(_text(name)): _name(part) if name == "file" else _clean(part)
            for name, part in pairs
        }
    if isinstance(value, (list, tuple)):
        return [_clean(part) for part in cast("list[object]", value)]
    return value if value is None or isinstance(value, (int, float)) else _clean(_text(value))


def _name(value: object) -> object:
    """The name of a file, which goes through byte for byte; of what cannot be one, a text."""
    try:
        return as_name(cast("str", value))
    except (TypeError, ValueError):
        return _clean(value)
