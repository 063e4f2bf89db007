"""A server that redirects: what is signed for one server is sent to no other."""

from collections.abc import Generator
from pathlib import Path

import pytest
from tests.cli.harness import run
from tests.cli.stub_server import Stub, as_s3, serving

TOKEN = "SECRETSESSIONTOKEN123"


class _Other(Stub):
    """Keeps what it is asked, and has a file."""

    asked: list[dict[str, str]]

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.asked.append(dict(self.headers.items()))
        data, headers = b"b\na\n", {"ETag": '"1"'}
        if self.command == "HEAD":
            return self.end(200, Content_Length=str(len(data)), **headers)
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        ranged = f"bytes {first}-{last}/{len(data)}"
        return self.end(206, data[first : last + 1], Content_Range=ranged, **headers)

    do_PUT = do_POST = do_GET


class _Redirects(Stub):
    """Answers everything with a redirect."""

    status: int
    to: dict[str, str]
    body: str = ""

    def do_HEAD(self) -> None:
        self.end(self.status, self.body, **self.to)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD


@pytest.fixture
def asked() -> list[dict[str, str]]:
    return []


@pytest.fixture
def other(asked: list[dict[str, str]]) -> Generator[str]:
    with serving(_Other, asked=asked) as endpoint:
        yield endpoint.replace("127.0.0.1", "localhost")


def _sort(
    endpoint: str, out: Path | str, source: Path | str = "s3://bkt/in", status: int = 2
) -> str:
    where = as_s3(endpoint) | {
        "AWS_SESSION_TOKEN": TOKEN,
        "AWS_REGION": "us-east-1",
        "NO_PROXY": "127.0.0.1,localhost",
    }
    return run("sort", source, "-o", out, status=status, **where).stderr


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_signed_request_is_not_sent_on(
    status: int, asked: list[dict[str, str]], other: str, tmp_path: Path
) -> None:
    to = {"Location": f"{other}/bkt/in?hush"}
    with serving(_Redirects, status=status, to=to) as endpoint:
        said = _sort(endpoint, tmp_path / "out")
        (tmp_path / "in").write_text("a\n")
        written = _sort(endpoint, "s3://bkt/out", tmp_path / "in")
    for text in (said, written):
        assert f"{endpoint} answered {status} and names {other}, and" in text
        assert "AWS_REGION" in text
        assert "AWS_ENDPOINT_URL" in text
        assert "hush" not in text
    assert asked == []


@pytest.mark.parametrize("status", [301, 307, 400])
def test_a_store_that_names_the_region_says_what_to_set(status: int, tmp_path: Path) -> None:
    to = {"x_amz_bucket_region": "eu-west-1"}
    body = (
        "<Error><Code>PermanentRedirect</Code><Message>M</Message>"
        "<Endpoint>bkt.s3.eu-west-1.amazonaws.com</Endpoint></Error>"
    )
    with serving(_Redirects, status=status, to=to, body=body) as endpoint:
        said = _sort(endpoint, tmp_path / "out")
    assert "the bucket bkt is in the region eu-west-1, not in us-east-1" in said
    assert f"{endpoint} answered {status} and names bkt.s3.eu-west-1.amazonaws.com" in said
    assert "What to do: set AWS_REGION=eu-west-1" in said


def test_a_public_file_is_read_where_it_is_now_and_its_first_url_is_not_told(
    asked: list[dict[str, str]], other: str, tmp_path: Path
) -> None:
    with serving(_Redirects, status=302, to={"Location": f"{other}/file"}) as endpoint:
        assert _sort(endpoint, tmp_path / "out", f"{endpoint}/in?signature=hush", 0) == ""
    assert (tmp_path / "out").read_text() == "a\nb\n"
    assert asked
    assert not [headers for headers in asked if "hush" in str(headers) or TOKEN in str(headers)]
