"""Gristmill: sort, group and count data that is bigger than memory.

    teragen ──▶ data/ ──▶ terasort ──▶ sorted/ ──▶ teravalidate

Each function runs one job in this process, on native threads, and returns its `JobReport`; a job
that fails raises the built-in exception nearest to what went wrong, from which `report_of` gets the
report. Ctrl-C cancels the job, which then leaves nothing behind.

Importing this package loads the engine and nothing else: what is named below is imported when it
is first used, since the command line imports this package at every start.
"""

import warnings
from typing import TYPE_CHECKING

from gristmill._core import DEBUG_BUILD, VERSION, function_names
from gristmill.closed_streams import reserve

if TYPE_CHECKING:
    import gristmill.analysis.scale as scale
    from gristmill import functions
    from gristmill.errors import report_of
    from gristmill.functions import *  # noqa: F403 - the stub says which  # pyright: ignore[reportWildcardImportFromLibrary]
    from gristmill.mapreduce.aggregates import (
        Aggregate,
        approx_distinct,
        collect,
        count,
        count_distinct,
        distinct,
        first,
        last,
        max,
        mean,
        min,
        quantiles,
        sum,
        top,
    )
    from gristmill.mapreduce.context import Context
    from gristmill.mapreduce.extremes import max_by, min_by
    from gristmill.mapreduce.formats.items import items
    from gristmill.mapreduce.formats.jsonlines import jsonl
    from gristmill.mapreduce.formats.keyvalue import kv
    from gristmill.mapreduce.formats.table_csv import csv
    from gristmill.mapreduce.formats.tables import arrow, parquet
    from gristmill.mapreduce.formats.text import delimited, fixed, text, tsv
    from gristmill.mapreduce.keys import desc
    from gristmill.mapreduce.partitioners import ranges, sampled_ranges
    from gristmill.mapreduce.results.result import Result
    from gristmill.mapreduce.submit.job import Job
    from gristmill.mapreduce.submit.run_all import run_all
    from gristmill.report import Failure, JobReport, Phase
    from gristmill.search import Grep, GrepLine, grep

__all__ = [
    "Aggregate",
    "Context",
    "Failure",
    "Grep",
    "GrepLine",
    "Job",
    "JobReport",
    "Phase",
    "Result",
    "__version__",
    "approx_distinct",
    "arrow",
    "collect",
    "count",
    "count_distinct",
    "csv",
    "delimited",
    "desc",
    "distinct",
    "first",
    "fixed",
    "grep",
    "items",
    "jsonl",
    "kv",
    "last",
    "max",
    "max_by",
    "mean",
    "min",
    "min_by",
    "parquet",
    "quantiles",
    "ranges",
    "report_of",
    "run_all",
    "sampled_ranges",
    "scale",
    "sum",
    "text",
    "top",
    "tsv",
]

if TYPE_CHECKING:
    __all__ += functions.__all__
else:
    __all__.extend(function_names())  # each command is a function, too

__version__ = VERSION

reserve()

if DEBUG_BUILD:
    warnings.warn(
        "gristmill is a debug build, many times slower than a release build: run `make build`",
        RuntimeWarning,
        stacklevel=2,
    )

if not TYPE_CHECKING:  # a checker knows the names from the imports above, and reports all others
    _MODULES = {
        "Aggregate": "mapreduce.aggregates",
        "Context": "mapreduce.context",
        "Failure": "report",
        "Grep": "search",
        "GrepLine": "search",
        "Job": "mapreduce.submit.job",
        "JobReport": "report",
        "Phase": "report",
        "Result": "mapreduce.results.result",
        "approx_distinct": "mapreduce.aggregates",
        "arrow": "mapreduce.formats.tables",
        "collect": "mapreduce.aggregates",
        "count": "mapreduce.aggregates",
        "count_distinct": "mapreduce.aggregates",
        "csv": "mapreduce.formats.table_csv",
        "delimited": "mapreduce.formats.text",
        "desc": "mapreduce.keys",
        "distinct": "mapreduce.aggregates",
        "first": "mapreduce.aggregates",
        "fixed": "mapreduce.formats.text",
        "grep": "search",
        "items": "mapreduce.formats.items",
        "jsonl": "mapreduce.formats.jsonlines",
        "kv": "mapreduce.formats.keyvalue",
        "last": "mapreduce.aggregates",
        "max": "mapreduce.aggregates",
        "max_by": "mapreduce.extremes",
        "mean": "mapreduce.aggregates",
        "min": "mapreduce.aggregates",
        "min_by": "mapreduce.extremes",
        "parquet": "mapreduce.formats.tables",
        "quantiles": "mapreduce.aggregates",
        "ranges": "mapreduce.partitioners",
        "report_of": "errors",
        "run_all": "mapreduce.submit.run_all",
        "sampled_ranges": "mapreduce.partitioners",
        "sum": "mapreduce.aggregates",
        "text": "mapreduce.formats.text",
        "top": "mapreduce.aggregates",
        "tsv": "mapreduce.formats.text",
        **dict.fromkeys(function_names(), "functions"),
    }
    _PACKAGES = {"scale": "analysis.scale"}
    """Names that are packages themselves."""

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used (PEP 562)."""
        module = _MODULES.get(name)
        if module is None and name not in _PACKAGES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        try:
            if module is None:
                value = import_module(f"{__name__}.{_PACKAGES[name]}")
            else:
                value = getattr(import_module(f"{__name__}.{module}"), name)
        except (AttributeError, ImportError) as error:
            from gristmill.shadows import shadows_in

            for shadow in shadows_in(str(error)):
                raise ImportError(f"cannot import gristmill.{name}: {shadow}") from error
            raise
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
