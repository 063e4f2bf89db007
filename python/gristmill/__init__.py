"""Gristmill: sort, group, count, search and copy data that is bigger than memory.

    teragen ──▶ data/ ──▶ terasort ──▶ sorted/ ──▶ teravalidate

Each function runs one job in this process, on native threads, and returns its `JobReport`; a job
that fails raises the built-in exception nearest to what went wrong, from which `report_of` gets the
report. Ctrl-C cancels the job, which then leaves nothing behind.

Importing this package loads the engine and nothing else: what is named below is imported when it
is first used, since the command line imports this package at every start.
"""

import warnings
from typing import TYPE_CHECKING

from gristmill._core import DEBUG_BUILD, VERSION

if TYPE_CHECKING:
    from gristmill.errors import report_of
    from gristmill.job import resume, sort, teragen, terasort, teravalidate
    from gristmill.report import Failure, JobReport, Phase

__all__ = [
    "Failure",
    "JobReport",
    "Phase",
    "__version__",
    "report_of",
    "resume",
    "sort",
    "teragen",
    "terasort",
    "teravalidate",
]

__version__ = VERSION

if DEBUG_BUILD:
    warnings.warn(
        "gristmill is a debug build, many times slower than a release build: run `make build`",
        RuntimeWarning,
        stacklevel=2,
    )

if not TYPE_CHECKING:  # a checker knows the names from the imports above, and reports all others
    _MODULES = {
        "Failure": "report",
        "JobReport": "report",
        "Phase": "report",
        "report_of": "errors",
        "resume": "job",
        "sort": "job",
        "teragen": "job",
        "terasort": "job",
        "teravalidate": "job",
    }

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used (PEP 562)."""
        module = _MODULES.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{module}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
