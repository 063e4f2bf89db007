"""Credentials for S3 from a program and from the metadata of a machine, renewed before they end."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from . import stub_server
from .harness import failure, run
from .s3_server import Bucket, Server
from .stub_server import Stub
from .test_s3 import parts

NAMES = "/latest/meta-data/iam/security-credentials/"


def said(server: Server, seconds: int, **more: str | int) -> str:
    """The server's credentials as services and programs give them, good for some seconds."""
    end = datetime.now(UTC) + timedelta(seconds=seconds)
    keys = {"AccessKeyId": server.key, "SecretAccessKey": server.secret}
    return json.dumps({**keys, "Expiration": end.isoformat(timespec="seconds"), **more})


@contextmanager
def metadata(server: Server, seconds: int) -> Generator[tuple[str, list[str]]]:
    """The metadata service of a machine, and the paths that it was asked for."""
    asked: list[str] = []

    class Handler(Stub):
        def do_PUT(self) -> None:
            asked.append(self.path)
            self.end(200, "a-token")

        def do_GET(self) -> None:
            asked.append(self.path)
            assert self.headers["X-aws-ec2-metadata-token"] == "a-token"
            more = {"Token": "", "Code": "Success", "Type": "AWS-HMAC"}
            is_name = self.path == NAMES
            self.end(200, "a-role" if is_name else said(server, seconds, **more))

    with stub_server.serving(Handler) as endpoint:
        yield endpoint, asked


@pytest.fixture(autouse=True)
def no_variables(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """No credentials in variables; and nobody asks a real machine for any."""
    assert bucket.name
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def profile(text: str) -> None:
    """What ~/.aws/config says of the default profile; the home of these tests is their parent."""
    folder = Path("../.aws")
    folder.mkdir(exist_ok=True)
    (folder / "config").write_text(f"[default]\n{text}\n")


@pytest.mark.parametrize("runner", ["threads", "processes"])
def test_a_program_gives_credentials(
    runner: str, bucket: Bucket, server: Server, tmp_path: Path, home: Path
) -> None:
    (tmp_path / "keys.json").write_text(said(server, 3600, Version=1))
    profile(f"credential_process = echo ran >> '{tmp_path}/ran' && cat '{tmp_path}/keys.json'")
    run("teragen", "20k", "in", "--files", "2")
    done = run("teragen", "20k", bucket.url("in"), "--files", "2", "--history")
    assert bucket.objects("in") == parts(Path("in"))
    assert (tmp_path / "ran").read_text().splitlines() == ["ran"]
    command = ["terasort", bucket.url("in"), bucket.url("out"), "--memory", "64M"]
    run(*command, "--runner", runner)
    run("terasort", "in", "out", "--memory", "64M", "--runner", runner)
    assert bucket.objects("out") == parts(Path("out"))
    kept = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert server.secret not in done.stdout + done.stderr
    assert server.secret.encode() not in kept


@pytest.mark.parametrize(("seconds", "is_renewed"), [(3600, False), (200, True)])
def test_the_metadata_of_a_machine_gives_credentials(
    seconds: int,
    is_renewed: bool,
    bucket: Bucket,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    with metadata(server, seconds) as (address, asked):
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", address)
        run("teragen", "200k", bucket.url("in"), "--files", "40")
    run("teragen", "200k", "in", "--files", "40", AWS_EC2_METADATA_DISABLED="true")
    assert bucket.objects("in") == parts(Path("in"))
    assert asked[:3] == ["/latest/api/token", NAMES, NAMES + "a-role"]
    assert (len(asked) > 3) == is_renewed


def test_what_gives_no_credentials_is_named(
    bucket: Bucket, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = bucket.url("in")
    for text, says in [
        ("region = us-east-1", "neither variables nor ~/.aws have any"),
        ("credential_process = echo nothing; exit 4", "failed (exit status: 4)"),
        (f"credential_process = echo {server.secret}", "did not print credentials as JSON"),
    ]:
        profile(text)
        error = failure("teravalidate", location)
        assert "there are no credentials for S3" in error
        assert says in error
        assert "AWS_PROFILE" in error
        assert server.secret not in error
    profile("")
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1")
    error = failure("teravalidate", location)
    assert "there are no credentials for S3" in error
