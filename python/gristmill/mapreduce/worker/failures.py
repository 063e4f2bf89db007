"""What goes wrong in a task, as the driver wants to know it.

    exception, where the reader stood ──▶ Failure: kind, a paragraph, the user's frames, fingerprint

The same exception at the same record has the same fingerprint: the driver then gives up at once in
the place of trying the rest of its attempts. What may pass by itself (a time-out, a connection) has
none, and is tried as often as `--attempts` says.
"""

import contextlib
import errno
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import GeneratorType, TracebackType
from typing import TYPE_CHECKING, Any

from gristmill.errors import kind_of
from gristmill.mapreduce.formats.format import BadRecord, Where
from gristmill.mapreduce.functions import ContractError
from gristmill.mapreduce.kinds import is_dict, is_list, is_tuple
from gristmill.mapreduce.shown import shown, text_of

if TYPE_CHECKING:
    from traceback import FrameSummary

__all__ = [
    "Failure",
    "TaskFailure",
    "describe",
    "line_of",
    "renamed",
    "sentence",
    "user_frames",
]

_PACKAGE = str(Path(__file__).parents[2])
_FRAMES = 20
_AROUND = ("<string>", contextlib.__file__)
"""Where frames stand that are between our own: what dataclasses and context managers add."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failure of a task; its fields are those of the protocol."""

    kind: str
    """`user_code`, `bad_input`, `memory`, `io`, `disk_full` or `bug`."""
    message: str
    """One paragraph for people, without a traceback."""
    traceback: str = ""
    """The frames of the user's code."""
    where: dict[str, Any] | None = None
    """`file`, `offset`, `record` and `line`, if it is about a record of the input."""
    record: str = ""
    """The record, shortened."""
    context: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Where else, by name: what an error of the engine's says."""
    advice: dict[str, Any] | None = None
    """What to do about it, in the engine's form, which names no option as anybody would type it."""
    own_work: bool = False
    """Whether what is wrong is a file that the job had made itself."""
    fingerprint: str = ""
    """Equal when the same happens again."""
    retryable: bool = False
    """Whether another attempt can help."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, as JSON has them."""
        return asdict(self)

    def renamed(self, names: Mapping[str, str]) -> "Failure":
        """Return the failure with the names of files that users know, by their paths."""
        return Failure(**renamed(self.to_dict(), names)) if names else self


class TaskFailure(Exception):
    """A task failed; the worker sends `failure` to the driver."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def describe(
    error: BaseException,
    *,
    doing: str,
    where: Where | None = None,
    record: object = None,
    key: object = None,
    has_key: bool = False,
    more: str = "",
    kind: str = "",
    advice: str = "",
    at: str = "",
) -> Failure:
    """Return the failure that an exception is.

    Args:
        error: The exception.
        doing: What was done, such as `map words`: a verb and what it was done to.
        where: Where the reader stood, if a record of the input is concerned.
        record: That record.
        key: The key whose values were reduced.
        has_key: Whether there was one, as `None` is a key too.
        more: What to say in the place of the exception.
        kind: What kind of thing it is, if that is known better than by the exception.
        advice: What to do, if that is known better than by the exception.
        at: Where in the user's code it is, if no frame says it.
    """
    from traceback import format_list  # no worker starts slower for it

    from gristmill.worker_failure import may_pass

    frames = user_frames(error.__traceback__)
    told = _told(error)
    kind = (
        "disk_full" if _is_full(error, told) else kind or _kind(error, of_engine=told is not None)
    )
    line = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else at
    what = more or (told["what"] if told else sentence(error))
    where, context = _one_place(where, told["context"] if told else [])
    about = shown(key) if has_key else "" if where is None else shown(record)
    if has_key:
        context = [("key", about), *context]
    full = told is not None and kind == "disk_full"  # the engine's own disk, not what user code did
    place = where[:2] if where is not None and where[0] else None
    return Failure(
        kind=kind,
        message=f"{what}{line}"
        if full or what.startswith(f"{doing} ")
        else f"{doing}: {what}{line}",
        traceback="".join(format_list(frames[-_FRAMES:])),
        where=None if where is None or place is None else _named(where),
        record="" if has_key else about,
        context=context,
        advice=told["advice"] if told else _advice(error, advice),
        own_work=told is not None and told["own_work"],
        fingerprint=""
        if may_pass(error)
        else f"{type(error).__qualname__}|{what[:200]}|{place}|{about}|{line}",
        retryable=kind in ("user_code", "io", "memory") and not isinstance(error, ContractError),
    )


def _one_place(
    where: Where | None, context: list[tuple[str, str]]
) -> tuple[Where | None, list[tuple[str, str]]]:
    """Where the reader stood and what the engine says of the place, as one place, not as two.

    Where the engine names the record at which the reader stood, that is it, by the name that the
    user gave. Any other place that it names is the better one: of a file that ends too early, the
    reader knows only the last record that was whole.
    """
    said = dict(context)
    if where is None or "file" not in said:
        return where, context
    file = where[0] if Path(where[0]).absolute() == Path(said["file"]) else said["file"]
    if file == where[0] and said.get("offset") == str(where[1]):
        return where, [(name, value) for name, value in context if name not in ("file", "offset")]
    return None, [("file", file), *((name, value) for name, value in context if name != "file")]


def _advice(error: BaseException, text: str) -> dict[str, Any] | None:
    """What a format advises, or who calls user code, in the engine's form."""
    if not text and isinstance(error, (BadRecord, ContractError)):
        text = error.advice
    return {"text": text, "options": []} if text else None


def renamed(told: Any, names: Mapping[str, str]) -> Any:  # noqa: ANN401 - as JSON has it
    """Return texts, or what holds texts, with other names in the place of paths.

    Example:
        >>> renamed(["at offset 5 of /proc/1/fd/3"], {"/proc/1/fd/3": "standard input"})
        ['at offset 5 of standard input']
    """
    if isinstance(told, str):
        for path, name in names.items():  # a path may begin as another one does
            told = name.join(re.split(rf"{re.escape(path)}(?!\d)", told))
        return told
    if is_dict(told):
        return {key: renamed(value, names) for key, value in told.items()}
    if is_list(told):
        return [renamed(value, names) for value in told]
    return tuple(renamed(value, names) for value in told) if is_tuple(told) else told


def user_frames(trace: TracebackType | None) -> "list[FrameSummary]":
    """Return the frames of a traceback that are not ours, from the first that is the user's.

    Methods that dataclasses generate for our own classes count as ours, and so does what stands
    around our own context managers.
    """
    from traceback import extract_tb

    frames = extract_tb(trace)
    beside = [*frames[1:], None][: len(frames)]
    return [
        frame
        for frame, inner in zip(frames, beside, strict=True)
        if not _is_ours(frame)
        and not (frame.filename in _AROUND and inner is not None and _is_ours(inner))
    ]


def line_of(given: object) -> str:
    """Return where a generator of the user's stands, for the end of a sentence.

    Example:
        >>> line_of([1]), line_of(iter(()))
        ('', '')
    """
    frame = given.gi_frame if isinstance(given, GeneratorType) else None
    if frame is None or frame.f_code.co_filename.startswith(_PACKAGE):
        return ""
    return f" ({frame.f_code.co_filename}, line {frame.f_lineno})"


def _is_ours(frame: "FrameSummary") -> bool:
    return frame.filename.startswith((_PACKAGE, "<frozen "))


def _kind(error: BaseException, *, of_engine: bool) -> str:
    match error:
        case MemoryError():
            return "memory"
        case OSError() if of_engine:
            return "io"
        case BadRecord():
            return "bad_input"
        case _:
            return "user_code"


def _is_full(error: BaseException, told: dict[str, Any] | None) -> bool:
    """Whether a disk is full: the engine says so, or the system to anybody's code."""
    if told is not None:
        return told["kind"] == "disk_full"
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _told(error: BaseException) -> dict[str, Any] | None:
    """An error of the engine's in parts (crates/python/src/error.rs); `None` for any other."""
    told = getattr(error, "gristmill_told", None)
    return json.loads(told) if isinstance(told, str) else None


def sentence(error: BaseException) -> str:
    """Return what an exception says without advice; of a user's, its type too.

    Example:
        >>> sentence(BadRecord("the line is not JSON", "mend it")), sentence(ValueError("no"))
        ('the line is not JSON', 'ValueError: no')
    """
    advised = isinstance(error, (BadRecord, ContractError))
    text = text_of(ValueError(error.what) if advised else error)
    if kind_of(error) is not None:
        return text.removeprefix("cannot ").rstrip(".")
    return f"{type(error).__name__}: {text}".rstrip(".: ")


def _named(where: Where) -> dict[str, Any]:
    file, offset, record, line = where
    return {"file": file, "offset": offset, "record": record, "line": line}
