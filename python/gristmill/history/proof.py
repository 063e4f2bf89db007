"""What a job that succeeded proved of its output: each kind of job another thing."""

from collections.abc import Mapping
from typing import Any

from gristmill.units import show_count

__all__ = ["proved"]


def proved(command: str, report: Mapping[str, Any]) -> str:
    """Return what a job of this command proved, by its report as `--json` prints it.

    Example:
        >>> proved("terasort", {"checksum": "1f", "duplicate_keys": 0})
        'in order, checksum of input and output 1f, 0 duplicate keys'
        >>> proved("mapreduce", {"counters": {"REDUCE_INPUT_RECORDS": 2000}})
        'all input was read, and all 2,000 pairs of the maps were reduced'
    """
    checksum = report.get("checksum")
    duplicates = show_count(int(report.get("duplicate_keys") or 0), "duplicate key")
    match command:
        case "teragen":
            return f"checksum of the records {checksum}"
        case "terasort":
            return f"in order, checksum of input and output {checksum}, {duplicates}"
        case "teravalidate":
            return f"in order, checksum {checksum}, {duplicates}"
        case "sort":
            equal = show_count(int(report.get("duplicate_keys") or 0), "record")
            return f"in order, checksum {checksum}, {equal} equal to the one before"
        case _:
            return _of_maps(report.get("counters") or {})


def _of_maps(counters: Mapping[str, int]) -> str:
    """What a map makes of its input is its own affair; that it was given all of it is ours."""
    said = "all input was read"
    if "REDUCE_INPUT_RECORDS" in counters:
        pairs = counters["REDUCE_INPUT_RECORDS"] + counters.get("REDUCE_SKIPPED_RECORDS", 0)
        said += f", and all {show_count(pairs, 'pair')} of the maps were reduced"
    without = [
        show_count(counters[name], thing)
        for name, thing in (
            ("NUM_FAILED_MAPS", "failed map"),
            ("NUM_FAILED_REDUCES", "failed reduce"),
            ("MAP_SKIPPED_RECORDS", "bad record"),
            ("REDUCE_SKIPPED_GROUPS", "bad group"),
        )
        if counters.get(name)
    ]
    return f"{said}, but for {', '.join(without)}" if without else said
