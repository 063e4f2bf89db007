"""A stub of S3 that has any number of keys: its listings are made as they are asked for.

No server keeps a million objects for a test. What is asked of this one is a page of ListObjectsV2,
whose continuation token is the number of its first key, or a range of an object.
"""

import time
from bisect import bisect_right
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from urllib.parse import parse_qs, urlsplit

from . import stub_server
from .stub_server import Stub, as_s3

PAGE = 1000
OBJECT_BYTES = 100

_OBJECT = (
    "<Contents><Key>in/part-PAGEZ-{number:05}.tbl</Key><LastModified>2026-01-02T03:04:05.000Z"
    '</LastModified><ETag>"{number:032x}"</ETag><Size>100</Size></Contents>'
)
_OBJECTS = [_OBJECT.format(number=number) for number in range(PAGE)]


@dataclass
class Asked:
    """What was asked of a server."""

    pages: int = 0
    at_once: int = 0
    """The most pages that were asked for at once."""
    _now: int = 0
    _lock: Lock = field(default_factory=Lock)

    @contextmanager
    def page(self) -> Generator[None]:
        """Count a page that is made meanwhile."""
        with self._lock:
            self.pages += 1
            self._now += 1
            self.at_once = max(self.at_once, self._now)
        try:
            yield
        finally:
            with self._lock:
                self._now -= 1


def key(number: int) -> str:
    """The name of a key."""
    return f"in/part-{number // PAGE:06}-{number % PAGE:05}.tbl"


def _contents(numbers: range) -> Iterable[str]:
    for page in range(numbers.start // PAGE, -(-numbers.stop // PAGE)):
        first, end = (min(max(at - page * PAGE, 0), PAGE) for at in (numbers.start, numbers.stop))
        yield "".join(_OBJECTS[first:end]).replace("PAGEZ", f"{page:06}")


class _Handler(Stub):
    keys: int
    asked: Asked
    latency_s: float

    def _send_range(self, number: int) -> None:
        first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
        end = min(int(last) + 1, OBJECT_BYTES)
        ranged = f"bytes {first}-{end - 1}/{OBJECT_BYTES}"
        content = b"x" * (end - int(first))
        self.end(206, content, ETag=f'"{number:032x}"', Content_Range=ranged)

    def do_HEAD(self) -> None:
        self.end(404)

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        if url.path.endswith(".tbl"):
            return self._send_range(int(url.path[-9:-4]))
        if query.get("prefix") != ["in/"]:
            return self.end(200, "<ListBucketResult/>")
        with self.asked.page():
            time.sleep(self.latency_s)
            first = int(query.get("continuation-token", ["0"])[0])
            for name in query.get("start-after", []):
                first = bisect_right(range(self.keys), name, key=key)
            end = min(first + PAGE, self.keys)
            last = end == self.keys
            following = "" if last else f"<NextContinuationToken>{end}</NextContinuationToken>"
            objects = "".join(_contents(range(first, end)))
            more = f"<IsTruncated>{'false' if last else 'true'}</IsTruncated>{following}"
            return self.end(200, f"<ListBucketResult>{objects}{more}</ListBucketResult>")


@contextmanager
def serving(
    keys: int, asked: Asked | None = None, latency_s: float = 0.0
) -> Generator[dict[str, str]]:
    """Start a server of so many keys below `s3://bucket/in`; what programs are told of it."""
    asked = asked or Asked()
    with stub_server.serving(
        _Handler, None, keys=keys, asked=asked, latency_s=latency_s
    ) as endpoint:
        yield as_s3(endpoint)
