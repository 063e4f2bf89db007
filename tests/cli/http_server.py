"""An HTTP server on this machine that sends ranges of files, or one of its ways not to."""

import email.utils
import re
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from . import stub_server
from .stub_server import Stub


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


class _Handler(Stub):
    files: Files

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
            return self.end(403)
        if how == "busy" and asked[how] == 1:
            return self.end(429, Retry_After="1")
        if how == "flaky" and asked[how] % 3 == 0:
            return self.end(503)
        if not path.is_file():
            return self.end(404)
        data = path.read_bytes()
        headers = self._versions(how, path)
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if self.command == "HEAD" or found is None or how == "whole":
            return self.end(200, data, **headers)
        asked[f"{how} ranges"] += 1
        wanted = self.headers.get("If-Match")
        if wanted is not None and wanted != headers.get("ETag"):
            return self.end(412)
        first, last = int(found[1]), min(int(found[2]), len(data) - 1)
        part = data[first : last + 1]
        ranged = f"bytes {first}-{last}/{len(data)}"
        return self.end(206, part, Content_Range=ranged, **headers)

    def _versions(self, how: str, path: Path) -> dict[str, str]:
        modified = {"Last_Modified": email.utils.formatdate(path.stat().st_mtime, usegmt=True)}
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
    with stub_server.serving(_Handler, files=files) as files.endpoint:
        yield files
