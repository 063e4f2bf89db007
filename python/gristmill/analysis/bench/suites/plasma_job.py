"""The shuffle of Plasma MapReduce as a job: the first 16 bits of a record are its key."""

from collections.abc import Iterable, Iterator

from gristmill.mapreduce.formats.keyvalue import kv
from gristmill.mapreduce.formats.text import fixed
from gristmill.mapreduce.submit.job import Job

__all__ = ["job"]


def _keyed(record: bytes) -> Iterator[tuple[bytes, bytes]]:
    yield record[:2], record


def _all(key: bytes, records: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    for record in records:
        yield key, record


def job() -> Job:
    """Return the job; `bench` gives it input and output.

    Example:
        >>> job().parts
        80
    """
    return Job(
        fixed("data/", 100),
        map=_keyed,
        reduce=_all,
        parts=80,
        output=kv("shuffled/"),
    )
