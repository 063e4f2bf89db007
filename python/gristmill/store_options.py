"""Options of stores, in force while a job is planned and begun, and its output read.

--store-option, store_option= ──▶ with_store_options ──▶ this thread's stores
└─▶ the environment of workers that it begins
"""

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar, cast

from gristmill import _core
from gristmill.names import to_json

__all__ = ["each_with", "with_store_options"]

_Record = TypeVar("_Record")


@contextmanager
def with_store_options(options: Mapping[str, str] | Iterable[str] | None) -> Generator[None]:
    """Have this thread, and workers that it begins, use stores with the options of a job.

    Raises:
        ValueError: There is no such option, or a value makes no sense.

    Example:
        >>> with with_store_options({"region": "eu-west-1"}):
        ...     _core.store_options()
        '{"region": "eu-west-1"}'
    """
    given: object = list(options or ())
    if isinstance(options, Mapping):
        given = dict(cast("Mapping[str, str]", options))
    before = _core.use_store_options(to_json(given) if given else None)
    try:
        yield
    finally:
        _core.use_store_options(before)


def each_with(
    options: Mapping[str, str] | Iterable[str] | None, records: Iterator[_Record]
) -> Iterator[_Record]:
    """Yield records that are read from stores with the options of a job."""
    if not options:
        yield from records
        return
    end = object()
    while True:
        with with_store_options(options):
            record = next(records, end)
        if record is end:
            return
        yield cast("_Record", record)
