"""A stub of S3 with some small objects, that counts what it is asked, by whichever process.

Reports count the requests of the job's own process; worker processes ask, too. It knows listings
below a prefix, HEAD, and ranges of objects, `If-Match` included.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from . import stub_server
from .stub_server import Stub, as_s3


def _nothing() -> None:
    """What happens before an object is sent, unless somebody knows better."""


@dataclass
class Objects:
    """The objects of `s3://bucket/`, and how often they were asked for, by method."""

    objects: dict[str, bytes]
    endpoint: str = ""
    asked: Counter[str] = field(default_factory=Counter[str])
    #: Called before bytes of an object are sent.
    got: Callable[[], None] = _nothing
    #: The status that HEAD has for an object that is not there.
    head_of_nothing: int = 404

    @property
    def environment(self) -> dict[str, str]:
        """What programs are told of it."""
        return as_s3(self.endpoint)


def _etag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


class _Handler(Stub):
    kept: Objects

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        url = urlsplit(self.path)
        key = unquote(url.path).removeprefix("/bucket").removeprefix("/")
        if not key:
            self.kept.asked["LIST"] += 1
            return self.end(200, self._listing(parse_qs(url.query)))
        self.kept.asked[self.command] += 1
        if self.command == "GET":
            self.kept.got()
        data = self.kept.objects.get(key)
        if data is None:
            return self.end(self.kept.head_of_nothing if self.command == "HEAD" else 404)
        headers = {"ETag": _etag(data), "Last_Modified": "Fri, 02 Jan 2026 03:04:05 GMT"}
        if self.command == "HEAD":
            return self.end(200, Content_Length=str(len(data)), **headers)
        if self.headers.get("If-Match", headers["ETag"]) != headers["ETag"]:
            return self.end(412)
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        part = data[first : last + 1]
        ranged = f"bytes {first}-{first + len(part) - 1}/{len(data)}"
        return self.end(206, part, Content_Range=ranged, **headers)

    def _listing(self, asked: dict[str, list[str]]) -> str:
        (prefix,) = asked.get("prefix", [""])
        found = "".join(
            f"<Contents><Key>{key}</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified>"
            f"<ETag>{_etag(data)}</ETag><Size>{len(data)}</Size></Contents>"
            for key, data in sorted(self.kept.objects.items())
            if key.startswith(prefix)
        )
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>"


@contextmanager
def serving(objects: dict[str, bytes]) -> Generator[Objects]:
    """Start a server of these objects on a port that is free, and end it."""
    kept = Objects(objects)
    with stub_server.serving(_Handler, kept=kept) as kept.endpoint:
        yield kept
