"""From an exception back to the report of the job that raised it.

A failed job raises the built-in exception that is nearest to what went wrong (the table is
crates/python/src/error.rs): `FileNotFoundError`, `FileExistsError`, `PermissionError`,
`MemoryError`, `OSError` for other trouble with devices, `ValueError` for wrong options and for
data that is not what it should be, `RuntimeError` where Gristmill is wrong. Code that catches these
needs to know nothing of Gristmill; code that wants more asks `report_of`.

An exception whose text is a paragraph of ours has a kind (`Kind` in crates/base/src/error.rs), so
that nobody has to read the text: those of the engine bring it along, others get it from `ours`.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from gristmill.report import JobReport

__all__ = [
    "attach_report",
    "is_of_system",
    "kind_of",
    "option_of",
    "ours",
    "report_of",
    "told_by",
    "typed",
]

_ATTRIBUTE = "gristmill_report"
_KIND = "gristmill_kind"
_TOLD = "gristmill_told"
"""An error of the engine's in parts, as JSON."""

_Error = TypeVar("_Error", bound=BaseException)


def ours(error: _Error, kind: str) -> _Error:
    """Mark an exception as one whose text is a paragraph of ours, and return it.

    Example:
        >>> kind_of(ours(FileNotFoundError("cannot plan the job: ..."), "not_found"))
        'not_found'
    """
    setattr(error, _KIND, kind)
    return error


def told_by(error: _Error, told: str) -> _Error:
    """Mark an exception as an error of the engine in another process, and return it."""
    setattr(error, _TOLD, told)
    return error


def typed(error: BaseException) -> str:
    """Return the text of an exception whose advice names options, as the command line has them.

    Those of the engine on other nodes come as Python's functions have them (error/advice.rs).

    Example:
        >>> from json import dumps
        >>> advice = {"text": "give {} or {}", "options": [
        ...     {"option": "memory", "value": {"megabytes": 64}},
        ...     {"option": "spill_dir", "value": None}]}
        >>> told = dumps({"kind": "memory", "option": None, "advice": advice})
        >>> typed(told_by(OSError('no. What to do: give memory="64M" or spill_dir.'), told))
        'no. What to do: give --memory 64M or --spill-dir.'
    """
    told, text = _told(error), str(error)
    if told is None or told["advice"] is None or not told["advice"]["options"]:
        return text
    words, options = told["advice"]["text"], told["advice"]["options"]
    theirs, ours = (_filled(words, map(spell, options)) for spell in (_as_keyword, _as_typed))
    return text.replace(theirs, ours)


def _filled(words: str, options: Iterable[str]) -> str:
    for option in options:
        words = words.replace("{}", option, 1)
    return words


def _as_keyword(option: Mapping[str, Any]) -> str:
    match option:
        case {"option": ("overwrite" | "csv" | "tsv") as name}:
            return f"{name}=True"
        case {"option": str(name), "value": {"count": count}}:
            return f"{name}={count}"
        case {"option": str(name), "value": {"megabytes": size}}:
            return f'{name}="{size}M"'
        case _:
            return _name_of(option)


def _as_typed(option: Mapping[str, Any]) -> str:
    name = f"--{_name_of(option).removesuffix('_s').replace('_', '-')}"
    match option:
        case {"value": {"count": count}}:
            return f"{name} {count}"
        case {"value": {"megabytes": size}}:
            return f"{name} {size}M"
        case _:
            return name


def _name_of(option: Mapping[str, Any]) -> str:
    """Its name; of the job's option `timeout` in the engine's words, that of Python."""
    name = str(option["option"])
    return "timeout_s" if name == "timeout" else name


def kind_of(error: BaseException) -> str | None:
    """Return the kind of an exception whose text is a paragraph of ours; `None` for any other.

    Example:
        >>> kind_of(ValueError("cannot be"))
    """
    told = _told(error)
    kind = getattr(error, _KIND, None) if told is None else told["kind"]
    return kind if isinstance(kind, str) else None


def is_of_system(error: BaseException) -> bool:
    """Whether an exception is an error of the operating system, which has a number.

    Example:
        >>> is_of_system(OSError(28, "No space left")), is_of_system(OSError("cannot plan the job"))
        (True, False)
    """
    return isinstance(error, OSError) and error.errno is not None


def option_of(error: BaseException) -> str | None:
    """Return the name of the option whose value is wrong, if the engine says that one is."""
    told = _told(error)
    return None if told is None else told["option"]


def _told(error: BaseException) -> dict[str, Any] | None:
    """An error of the engine's in parts; `None` for any other."""
    import json

    told = getattr(error, _TOLD, None)
    return json.loads(told) if isinstance(told, str) else None


def attach_report(error: BaseException, report: "JobReport") -> None:
    """Let `report_of` find `report` from `error`."""
    setattr(error, _ATTRIBUTE, report)


def report_of(error: BaseException) -> "JobReport | None":
    """Return the report of the job that raised `error`; `None` if it had not begun or is not ours.

    Example:
        >>> import gristmill
        >>> try:
        ...     gristmill.teravalidate("/no/such/folder")
        ... except FileNotFoundError as error:
        ...     gristmill.report_of(error).error.context
        {'file': '/no/such/folder'}
    """
    from gristmill.report import JobReport

    report = getattr(error, _ATTRIBUTE, None)
    return report if isinstance(report, JobReport) else None
