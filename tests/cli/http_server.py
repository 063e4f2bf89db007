"""An HTTP server on this machine that sends ranges of files, or one of its ways not to."""

import email.utils
import re
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Files:
    """What a server has, and what it was asked.

    The first part of a path says how the server behaves: `good` sends ranges and ETags, `dated`
    has no ETags, `weak` has weak ones, `whole` sends no ranges, `bare` says nothing of versions,
    `flaky` refuses each third request, `busy` the first for a second, `changing` has another
    version after each range, `new` after each request, and `locked` refuses all.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.endpoint = ""
        self.asked = Counter[str]()

    def url(self, how: str, name: str) -> str:
        """The location of a file."""
        return f"{self.endpoint}/{how}/{name}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    files: Files

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Say nothing."""

    def _end(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        how, _, name = self.path.strip("/").partition("/")
        asked = self.files.asked
        asked[how] += 1
        path = self.files.folder / name.partition("?")[0]
        if how == "locked":
            return self._end(403, {})
        if how == "busy" and asked[how] == 1:
            return self._end(429, {"Retry-After": "1"})
        if how == "flaky" and asked[how] % 3 == 0:
            return self._end(503, {})
        if not path.is_file():
            return self._end(404, {})
        data = path.read_bytes()
        headers = self._versions(how, path)
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if self.command == "HEAD" or found is None or how == "whole":
            return self._end(200, headers | {"Content-Length": str(len(data))}, data)
        asked[f"{how} ranges"] += 1
        wanted = self.headers.get("If-Match")
        if wanted is not None and wanted != headers.get("ETag"):
            return self._end(412, {})
        first, last = int(found[1]), min(int(found[2]), len(data) - 1)
        part = data[first : last + 1]
        ranged = {"Content-Range": f"bytes {first}-{last}/{len(data)}"}
        return self._end(206, headers | ranged, part)

    def _versions(self, how: str, path: Path) -> dict[str, str]:
        modified = {"Last-Modified": email.utils.formatdate(path.stat().st_mtime, usegmt=True)}
        match how:
            case "bare":
                return {}
            case "dated":
                return modified
            case "weak":
                return {"ETag": f'W/"{path.name}"'}
            case "new":
                return {"ETag": f'"{self.files.asked[how]}"'}
            case "changing":
                return {"ETag": f'"{self.files.asked["changing ranges"]}"'}
            case _:
                return modified | {"ETag": f'"{path.name}"'}


@contextmanager
def serving(folder: Path) -> Generator[Files]:
    """Start a server on a port that is free, and end it."""
    files = Files(folder)
    handler = type("Handler", (_Handler,), {"files": files})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        files.endpoint = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield files
        finally:
            server.shutdown()
            thread.join()
