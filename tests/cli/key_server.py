"""A stub of S3 that has any number of keys: its listings are made as they are asked for.

No server keeps a million objects for a test. What is asked of this one is a page of ListObjectsV2,
whose continuation token is the number of the page, or a range of an object.
"""

from collections.abc import Generator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

from . import stub_server
from .stub_server import Stub, as_s3

PAGE = 1000
OBJECT_BYTES = 100

_OBJECT = (
    "<Contents><Key>in/part-PAGEZ-{number:05}.tbl</Key><LastModified>2026-01-02T03:04:05.000Z"
    '</LastModified><ETag>"{number:032x}"</ETag><Size>100</Size></Contents>'
)
_OBJECTS = "".join(_OBJECT.format(number=number) for number in range(PAGE))


class _Handler(Stub):
    pages: int

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
        asked = parse_qs(url.query)
        if url.path.endswith(".tbl"):
            return self._send_range(int(url.path[-9:-4]))
        if asked.get("prefix") != ["in/"]:
            return self.end(200, "<ListBucketResult/>")
        page = int(asked.get("continuation-token", ["0"])[0])
        last = page + 1 >= self.pages
        following = "" if last else f"<NextContinuationToken>{page + 1}</NextContinuationToken>"
        objects = _OBJECTS.replace("PAGEZ", f"{page:06}")
        more = f"<IsTruncated>{'false' if last else 'true'}</IsTruncated>{following}"
        return self.end(200, f"<ListBucketResult>{objects}{more}</ListBucketResult>")


@contextmanager
def serving(keys: int) -> Generator[dict[str, str]]:
    """Start a server of so many keys below `s3://bucket/in`; what programs are told of it."""
    with stub_server.serving(_Handler, pages=keys // PAGE) as endpoint:
        yield as_s3(endpoint)
