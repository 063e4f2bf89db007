"""Stubs of stores with one long object, of which they have no byte: what they are asked is kept.

They stand for what the real servers of the tests cannot do: Azurite makes no block of another blob,
versitygw gives a part the CRC of its source, and fake-gcs-server copies in one step.
"""

import base64
import json
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from urllib.parse import parse_qs, unquote, urlsplit

from . import stub_server
from .stub_server import Stub

PART = 64 << 20

WHEN = "Fri, 02 Jan 2026 03:04:05 GMT"


def crc_of_zeros(size: int) -> str:
    """The CRC-32 of so many zeros, as headers of S3 have it."""
    crc, zeros = 0, bytes(PART)
    for _ in range(size // PART):
        crc = zlib.crc32(zeros, crc)
    return base64.b64encode(zlib.crc32(zeros[: size % PART], crc).to_bytes(4, "big")).decode()


@dataclass
class Kept:
    """A store with the object `in/long`, perhaps soon with its copy `out/long`."""

    size: int
    #: The parts have the sum of the whole, as a server that is wrong says.
    is_wrong: bool = False
    #: There is another version by now.
    changes: bool = False
    endpoint: str = ""
    is_made: bool = False
    #: What was asked but looks: the method with what is asked, and its headers.
    asked: list[tuple[str, Message]] = field(default_factory=list[tuple[str, Message]])

    def questions(self) -> list[str]:
        """What was asked."""
        return [question for question, _ in self.asked]

    def has(self, key: str) -> bool:
        """Whether there is an object of this name."""
        return key == "in/long" or (key == "out/long" and self.is_made)


class _Handler(Stub):
    kept: Kept

    def do_HEAD(self) -> None:
        self._look()

    def do_GET(self) -> None:
        self._look()

    def do_PUT(self) -> None:
        self._change()

    def do_POST(self) -> None:
        self._change()

    def do_DELETE(self) -> None:
        self._change()

    def _url(self) -> tuple[str, dict[str, str]]:
        """The path without the bucket, and what is asked of it."""
        url = urlsplit(self.path)
        asked = {name: found[0] for name, found in parse_qs(url.query, True).items()}
        return unquote(url.path), asked

    def _look(self) -> None:
        raise NotImplementedError

    def _change(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        _, asked = self._url()
        question = f"{self.command} {' '.join(sorted(asked))}"
        self.kept.asked.append((question, self.headers))
        copies = ("partNumber", "blockid", "ifSourceGenerationMatch")
        if self.kept.changes and not asked.keys().isdisjoint(copies):
            return self.end(412)
        return self._done(asked)

    def _done(self, asked: dict[str, str]) -> None:
        raise NotImplementedError


class S3(_Handler):
    """Of parts it gives the CRC-32."""

    def _look(self) -> None:
        path, asked = self._url()
        key = path.removeprefix("/bucket").strip("/")
        if "uploads" in asked:
            return self.end(200, "<ListMultipartUploadsResult/>")
        if "list-type" in asked:
            return self.end(200, "<ListBucketResult/>")
        if self.command == "GET":
            return self.end(403)
        if not self.kept.has(key):
            return self.end(404)
        crc = {"x_amz_checksum_crc32": crc_of_zeros(self.kept.size)}
        return self.end(
            200,
            Content_Length=str(self.kept.size),
            ETag=f'"{key}"',
            Last_Modified=WHEN,
            x_amz_checksum_type="FULL_OBJECT",
            **crc,
        )

    def _done(self, asked: dict[str, str]) -> None:
        if "uploads" in asked:
            upload = "<UploadId>1</UploadId>"
            return self.end(200, f"<Result>{upload}</Result>")
        if self.command == "PUT":
            first, last = self.headers["x-amz-copy-source-range"].removeprefix("bytes=").split("-")
            size = self.kept.size if self.kept.is_wrong else int(last) + 1 - int(first)
            crc = f"<ChecksumCRC32>{crc_of_zeros(size)}</ChecksumCRC32>"
            return self.end(200, f'<CopyPartResult><ETag>"e"</ETag>{crc}</CopyPartResult>')
        self.kept.is_made |= self.command == "POST"
        return self.end(204 if self.command == "DELETE" else 200)


class Azure(_Handler):
    """Makes blocks of other blobs."""

    def _look(self) -> None:
        path, asked = self._url()
        if "list" in asked.values():
            return self.end(200, "<EnumerationResults><Blobs/></EnumerationResults>")
        key = path.split("/", 3)[-1]
        if not self.kept.has(key):
            return self.end(404, x_ms_error_code="BlobNotFound")
        size = str(self.kept.size)
        crc = {"x_ms_meta_crc32": "0000002a"}
        return self.end(200, Content_Length=size, ETag='"0x1"', Last_Modified=WHEN, **crc)

    def _done(self, asked: dict[str, str]) -> None:
        self.kept.is_made |= asked["comp"] == "blocklist"
        self.end(201)


class Gcs(_Handler):
    """Copies in three steps."""

    def _look(self) -> None:
        _, _, key = self._url()[0].partition("/o/")
        if not key:
            return self.end(200, "{}")
        if not self.kept.has(key):
            return self.end(404)
        about = {"name": key, "size": str(self.kept.size), "generation": "7", "crc32c": "AAAAAA=="}
        return self.end(200, json.dumps(about))

    def _done(self, asked: dict[str, str]) -> None:
        step = int(asked.get("rewriteToken", "0")) + 1
        self.kept.is_made = step == 3
        self.end(200, json.dumps({"done": step == 3, "rewriteToken": str(step)}))


@contextmanager
def serving(
    handler: type[_Handler], size: int, *, is_wrong: bool = False, changes: bool = False
) -> Generator[Kept]:
    """Start a stub whose object has so many bytes, and end it."""
    kept = Kept(size, is_wrong, changes)
    with stub_server.serving(handler, kept=kept) as kept.endpoint:
        yield kept
