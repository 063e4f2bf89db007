"""A stub of S3 that has any number of keys: its listings are made as they are asked for.

No server keeps a million objects for a test. What is asked of this one is a page of ListObjectsV2,
whose continuation token is the number of the page, or a range of an object.
"""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

PAGE = 1000
OBJECT_BYTES = 100

_OBJECT = (
    "<Contents><Key>in/part-PAGEZ-{number:05}.tbl</Key><LastModified>2026-01-02T03:04:05.000Z"
    '</LastModified><ETag>"{number:032x}"</ETag><Size>100</Size></Contents>'
)
_OBJECTS = "".join(_OBJECT.format(number=number) for number in range(PAGE))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    pages: int

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Say nothing."""

    def _end(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _send_range(self, number: int) -> None:
        first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
        end = min(int(last) + 1, OBJECT_BYTES)
        self.send_response(206)
        self.send_header("ETag", f'"{number:032x}"')
        self.send_header("Content-Range", f"bytes {first}-{end - 1}/{OBJECT_BYTES}")
        self.send_header("Content-Length", str(end - int(first)))
        self.end_headers()
        self.wfile.write(b"x" * (end - int(first)))

    def do_HEAD(self) -> None:
        self._end(404, "")

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        asked = parse_qs(url.query)
        if url.path.endswith(".tbl"):
            return self._send_range(int(url.path[-9:-4]))
        if asked.get("prefix") != ["in/"]:
            return self._end(200, "<ListBucketResult/>")
        page = int(asked.get("continuation-token", ["0"])[0])
        last = page + 1 >= self.pages
        following = "" if last else f"<NextContinuationToken>{page + 1}</NextContinuationToken>"
        objects = _OBJECTS.replace("PAGEZ", f"{page:06}")
        more = f"<IsTruncated>{'false' if last else 'true'}</IsTruncated>{following}"
        return self._end(200, f"<ListBucketResult>{objects}{more}</ListBucketResult>")


@contextmanager
def serving(keys: int) -> Generator[dict[str, str]]:
    """Start a server of so many keys below `s3://bucket/in`; what programs are told of it."""
    handler = type("Handler", (_Handler,), {"pages": keys // PAGE})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield {
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
                "AWS_ACCESS_KEY_ID": "stub",
                "AWS_SECRET_ACCESS_KEY": "stub",
                "NO_PROXY": "127.0.0.1",
            }
        finally:
            server.shutdown()
            thread.join()
