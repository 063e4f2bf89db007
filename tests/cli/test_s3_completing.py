"""A store that completes an upload although who asked for it is dead.

Meanwhile the upload is gone, and its object is not there. And an object that no store takes.
"""

import hashlib
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.cli.harness import GRISTMILL, clean_environment, run
from tests.cli.stub_server import Stub, as_s3, serving


@dataclass
class _Store:
    """One object at most, and the parts of the uploads to it."""

    object: bytes | None = None
    etag: str = ""
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict[str, dict[int, bytes]])
    asked: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


class _Handler(Stub):
    kept: _Store

    def do_HEAD(self) -> None:
        if self.kept.object is None:
            return self.end(404)
        length = str(len(self.kept.object))
        return self.end(200, Content_Length=length, ETag=f'"{self.kept.etag}"')

    def do_GET(self) -> None:
        asked = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        if "uploads" in asked:
            found = "<IsTruncated>false</IsTruncated>"
            return self.end(
                200, f"<ListMultipartUploadsResult>{found}</ListMultipartUploadsResult>"
            )
        if "uploadId" not in asked:
            found = "<IsTruncated>false</IsTruncated>"
            return self.end(200, f"<ListBucketResult>{found}</ListBucketResult>")
        parts = self.kept.uploads.get(asked["uploadId"][0])
        if parts is None:
            return self._no_upload()
        found = "".join(
            f"<Part><PartNumber>{number}</PartNumber><Size>{len(data)}</Size>"
            f'<ETag>"{_md5(data).hex()}"</ETag></Part>'
            for number, data in sorted(parts.items())
        )
        whole = f"<IsTruncated>false</IsTruncated>{found}"
        return self.end(200, f"<ListPartsResult>{whole}</ListPartsResult>")

    def do_PUT(self) -> None:
        asked = parse_qs(urlsplit(self.path).query)
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.kept.uploads[asked["uploadId"][0]][int(asked["partNumber"][0])] = data
        self.end(200, ETag=f'"{_md5(data).hex()}"')

    def do_POST(self) -> None:
        asked = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "uploads" in asked:
            name = f"upload-{len(self.kept.uploads)}"
            self.kept.uploads[name] = {}
            id_of = f"<UploadId>{name}</UploadId>"
            return self.end(
                200, f"<InitiateMultipartUploadResult>{id_of}</InitiateMultipartUploadResult>"
            )
        parts = self.kept.uploads.pop(asked["uploadId"][0], None)
        if parts is None:
            return self._no_upload()
        self.kept.asked.set()
        self.kept.go_on.wait(60)
        ordered = [parts[number] for number in sorted(parts)]
        digests = b"".join(_md5(data) for data in ordered)
        self.kept.etag = f"{_md5(digests).hex()}-{len(ordered)}"
        self.kept.object = b"".join(ordered)
        try:
            self.end(200, "<CompleteMultipartUploadResult/>")
        except OSError:
            self.close_connection = True  # who asked is dead

    def do_DELETE(self) -> None:
        self.end(204)

    def _no_upload(self) -> None:
        self.end(404, "<Error><Code>NoSuchUpload</Code><Message>M</Message></Error>")


def test_what_a_store_completes_after_a_kill_is_the_output(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("b\na\n" * 100)
    store = _Store()
    with serving(_Handler, kept=store) as endpoint:
        where = as_s3(endpoint) | {"GRISTMILL_HOME": str(tmp_path / "home")}
        command = [GRISTMILL, "sort", tmp_path / "in", "-o", "s3://bkt/out", "--history"]
        with subprocess.Popen(command, env=clean_environment(**where), cwd=tmp_path) as job:
            assert store.asked.wait(60)
            job.kill()

        def later() -> None:
            time.sleep(3)
            store.go_on.set()

        waits = threading.Thread(target=later)
        waits.start()
        try:
            run("resume", "last", **where)
        finally:
            store.go_on.set()
            waits.join()
    assert store.object == b"a\n" * 100 + b"b\n" * 100


def test_more_than_an_object_may_have_is_refused_before_the_start(tmp_path: Path) -> None:
    with (tmp_path / "in").open("wb") as file:
        file.truncate((5 << 40) + 1)
    with serving(_Handler, kept=_Store()) as endpoint:
        where = as_s3(endpoint)
        said = run("sort", tmp_path / "in", "-o", "s3://bkt/out", status=2, **where).stderr
    assert "the input has 5.5" in said
    assert "an object of a store has at most 5.5" in said
    assert "What to do: write a directory of parts" in said
