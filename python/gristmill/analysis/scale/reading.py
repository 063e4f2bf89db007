"""Runs from files: CSV as people write it, and `runs.jsonl` as `gristmill scale run` does.

    p,seconds,map,shuffle,reduce,waste:retries
    1,100.2,60.1,20.0,20.1,4.0

    p            processors, workers or nodes; needed
    seconds      or throughput; one of them is needed
    work         how much the run did, where that differs
    waste:NAME   seconds of the wall time that were lost to NAME
    others       numbers: seconds of a phase; text, such as a date or a host: not used

An empty line and a line that begins with `#` are not runs. An error names the file and the line.
"""

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn, cast

from gristmill.analysis.runs import Run
from gristmill.analysis.scale.limits import beyond, longer, shortened
from gristmill.errors import ours
from gristmill.names import show_path

__all__ = ["Data", "read"]

Measured = Literal["seconds", "throughput"]

_WASTE = "waste:"
_NOT_PHASES = frozenset({"run", "repeat", "round", "seed"})
"""Columns of numbers that are labels."""


@dataclass(frozen=True, slots=True)
class Data:
    """The runs of a file, and what was measured."""

    runs: Sequence[Run]
    measured: Measured
    processors: int | None = None
    """Those of the machine whose workers were counted, where the file says it."""


def read(path: Path) -> Data:
    """Read a file of runs: CSV, or lines of JSON.

    Raises:
        OSError: It cannot be read.
        ValueError: It holds something else; the text names the line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse(path, None, f"byte {error.start} is not UTF-8", "save it as CSV in UTF-8")
    if not text.strip():
        _refuse(
            path, None, "the file is empty", "give a line of column names and a line for each run"
        )
    return _of_json(path, text) if text.lstrip().startswith("{") else _of_csv(path, text)


def _refuse(path: Path, line: int | None, what: str, advice: str) -> NoReturn:
    where = show_path(path) + ("" if line is None else f", line {line}")
    text = f"cannot read the runs: {what} ({where}). What to do: {advice}."
    raise ours(ValueError(text), "bad_input")


# --- CSV ---


def _of_csv(path: Path, text: str) -> Data:
    rows = _rows(path, text)
    at, header = next(rows, (1, list[str]()))
    names = [name.strip() for name in header]
    measured = _checked(path, at, names)
    table = [(line, _cells(path, line, names, row)) for line, row in rows]
    if not table:
        _refuse(path, at, "there is no line below the column names", "add a line for each run")
    columns = _columns(path, names, table)
    return Data([_run(path, line, cells, columns, measured) for line, cells in table], measured)


def _rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each line that holds something, with its number."""
    lines = text.splitlines()
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    separator = max(",;\t", key=first.count)
    reader = csv.reader(lines, delimiter=separator, strict=True, skipinitialspace=True)
    try:
        for row in reader:
            if any(cell.strip() for cell in row) and not row[0].lstrip().startswith("#"):
                yield reader.line_num, row
    except csv.Error as error:
        _refuse(path, reader.line_num, f"the line is not CSV: {error}", "mend the quotes in it")


def _checked(path: Path, line: int, names: Sequence[str]) -> Measured:
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        _refuse(path, line, f"two columns have the name {twice[0]!r}", "name each column once")
    needed = "name the columns in the first line: p, and seconds or throughput"
    if "p" not in names:
        shown = ", ".join(names)
        _refuse(path, line, f"there is no column p among the columns: {shown}", needed)
    given = [name for name in ("seconds", "throughput") if name in names]
    if not given:
        _refuse(path, line, "there is no column seconds and no column throughput", needed)
    if len(given) > 1:
        _refuse(path, line, "there are columns of seconds and of throughput", "keep one of them")
    return "seconds" if given == ["seconds"] else "throughput"


def _cells(path: Path, line: int, names: Sequence[str], row: Sequence[str]) -> dict[str, str]:
    if len(row) != len(names):
        what = f"the line has {len(row)} cells, and there are {len(names)} columns"
        _refuse(path, line, what, "give each run a cell for every column, or mend the separators")
    return {name: cell.strip() for name, cell in zip(names, row, strict=True)}


def _columns(
    path: Path, names: Sequence[str], table: Sequence[tuple[int, Mapping[str, str]]]
) -> Mapping[str, str]:
    """What each column beside p and what was measured is: a phase, a waste, or work."""
    kinds: dict[str, str] = {}
    for name in names:
        if name in ("p", "seconds", "throughput", "") or name in _NOT_PHASES:
            continue
        if name == "work":
            kinds[name] = "work"
        elif name.startswith(_WASTE):
            if name == _WASTE:
                _refuse(path, None, "a column is called waste: without a name", "name the waste")
            kinds[name] = "waste"
        elif any(_number(cells[name]) is not None for _, cells in table):
            kinds[name] = "phase"
    return kinds


def _run(
    path: Path, line: int, cells: Mapping[str, str], columns: Mapping[str, str], measured: Measured
) -> Run:
    def number(name: str, *, zero: bool = False) -> float:
        found = _number(cells[name])
        if found is None or found < 0 or (found == 0 and not zero):
            least = "a number from 0 on" if zero else "a number above 0"
            shown = shortened(cells[name]) if cells[name] else "empty"
            what = f"{name} is {shown}, not {least}"
            _refuse(path, line, what, "mend the line, or leave it out")
        _check_size(path, line, name, found)
        return found

    of = {kind: [name for name, is_ in columns.items() if is_ == kind] for kind in columns.values()}
    work = number("work") if "work" in columns else 1.0
    value = number(measured)
    phases = {name: number(name, zero=True) for name in of.get("phase", ())}
    if phases and measured == "throughput":
        what = f"the column {next(iter(phases))} is of a phase, and there is no column seconds"
        _refuse(path, line, what, "give seconds in place of throughput, or leave the column out")
    for name, took in phases.items():
        if longer(took, value):
            what = f"{name} is {took:g} s, and the run took {value:g} s in all"
            advice = f"leave the column {name} out if it is not the seconds of a phase"
            _refuse(path, line, what, advice)
    return Run(
        p=number("p"),
        seconds=value if measured == "seconds" else work / value,
        work=work,
        phases=phases,
        wastes={name[len(_WASTE) :]: number(name, zero=True) for name in of.get("waste", ())},
        source=f"{show_path(path)}, line {line}",
    )


def _check_size(path: Path, line: int, name: str, number: float) -> None:
    wrong = beyond(name, number)
    if wrong is not None:
        _refuse(path, line, wrong, "mend the line, or leave it out")


def _number(cell: str) -> float | None:
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


# --- lines of JSON ---


def _of_json(path: Path, text: str) -> Data:
    found: list[Run] = []
    processors = None
    for line, each in enumerate(text.splitlines(), 1):
        if not each.strip():
            continue
        try:
            fields = json.loads(each)
        except (ValueError, RecursionError):
            _refuse(path, line, "the line is not JSON", "remove it: the runs around it are whole")
        if not isinstance(fields, dict):
            _refuse(path, line, "the line is not a JSON object", "remove it")
        fields = cast("dict[str, Any]", fields)
        if "machine" in fields and fields.get("by") == "workers":
            processors = fields["machine"].get("processors")
        if "p" in fields and not fields.get("warm_up"):
            found.append(_of_fields(path, line, fields))
    if not found:
        _refuse(path, None, "no line is a run: an object with p and seconds", "give a file of runs")
    return Data(found, "seconds", processors if isinstance(processors, int) else None)


def _of_fields(path: Path, line: int, fields: Mapping[str, Any]) -> Run:
    def number(name: str, default: float | None = None) -> float:
        value: object = fields.get(name, default)
        given = _as_float(value)
        if given is None or given <= 0:
            what = f"{name} is {shortened(value)}, not a number above 0"
            _refuse(path, line, what, "remove the line")
        _check_size(path, line, name, given)
        return given

    def seconds_of(name: str) -> dict[str, float]:
        table: object = fields.get(name, {})
        if not isinstance(table, dict):
            _refuse(path, line, f"{name} is not an object of seconds", "remove the line")
        found = cast("dict[str, object]", table)
        seconds: dict[str, float] = {}
        for key, value in found.items():
            given = _as_float(value)
            if given is None or given < 0:
                what = f"{name}, {key}: {shortened(value)} is not a number from 0 on"
                _refuse(path, line, what, "remove the line")
            _check_size(path, line, f"{name}, {key},", given)
            seconds[key] = given
        return seconds

    return Run(
        p=number("p"),
        seconds=number("seconds"),
        work=number("work", 1.0),
        phases=seconds_of("phases"),
        wastes=seconds_of("wastes"),
        source=f"{show_path(path)}, line {line}",
    )


def _as_float(value: object) -> float | None:
    """A number of JSON; one that is too large for a float is infinite."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return number if math.isfinite(number) else None
