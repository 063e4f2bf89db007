"""Credentials for S3 from services: for the token of a web identity, and for that of a container.

The services are on this machine, and give the keys of a server. No text of a job has a token or
a key.
"""

from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from .harness import failure, run
from .s3_server import Bucket, Server
from .test_s3 import parts
from .token_server import Tokens, giving

Given = Callable[[Tokens], dict[str, str]]


def of_identity(tokens: Tokens) -> dict[str, str]:
    return {
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(tokens.file),
        "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/sorts & counts",
        "AWS_ENDPOINT_URL_STS": tokens.endpoint,
    }


def of_container(tokens: Tokens) -> dict[str, str]:
    return {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{tokens.endpoint}/keys",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tokens.file),
    }


SERVICES = pytest.mark.parametrize("variables", [of_identity, of_container])


@pytest.fixture
def tokens(
    bucket: Bucket, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[Tokens]:
    """A service, and nobody else who gives credentials."""
    assert bucket.name
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    # A proxy is asked for nothing that is near.
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with giving(server, tmp_path / "token") as tokens:
        yield tokens


def no_secret(text: str | bytes, tokens: Tokens) -> None:
    for secret in ("token-secret", tokens.server.secret):
        assert (secret.encode() if isinstance(text, bytes) else secret) not in text


@pytest.mark.parametrize("runner", ["threads", "processes"])
@SERVICES
def test_a_service_gives_credentials(
    variables: Given, runner: str, bucket: Bucket, tokens: Tokens, home: Path
) -> None:
    given = variables(tokens)
    run("teragen", "20k", "in", "--files", "2")
    run("teragen", "20k", bucket.url("in"), "--files", "2", **given)
    assert bucket.objects("in") == parts(Path("in"))
    assert len(tokens.asked) == 1
    command = ["terasort", bucket.url("in"), bucket.url("out"), "--memory", "64M"]
    told = [run("explain", *command, "--runner", runner, **given)]
    told.append(run(*command, "--runner", runner, "--history", **given))
    run("terasort", "in", "out", "--memory", "64M")
    assert bucket.objects("out") == parts(Path("out"))
    for done in told:
        no_secret(done.stdout + done.stderr, tokens)
    for path in home.rglob("*"):
        if path.is_file():
            no_secret(path.read_bytes(), tokens)


def test_sts_is_asked_for_a_role_and_a_session(bucket: Bucket, tokens: Tokens) -> None:
    location = bucket.url("in")
    tokens.how = "busy"
    run("teragen", "1", location, **of_identity(tokens))
    asked = {
        "Action": "AssumeRoleWithWebIdentity",
        "Version": "2011-06-15",
        "RoleArn": "arn:aws:iam::123456789012:role/sorts & counts",
        "RoleSessionName": "gristmill",
    }
    assert tokens.asked == [asked, asked]
    run("teravalidate", location, AWS_ROLE_SESSION_NAME="me", **of_identity(tokens))
    assert tokens.asked[2]["RoleSessionName"] == "me"
    # AWS's own programs take this one for all services.
    every = {name: value for name, value in of_identity(tokens).items() if "STS" not in name}
    own = {"AWS_ENDPOINT_URL": tokens.endpoint, "AWS_ENDPOINT_URL_S3": tokens.server.endpoint}
    run("teravalidate", location, **every, **own)
    assert len(tokens.asked) == 4


def test_a_container_has_its_token_in_a_variable_too(bucket: Bucket, tokens: Tokens) -> None:
    full = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{tokens.endpoint}/keys"}
    run(
        "teragen",
        "1",
        bucket.url("in"),
        AWS_CONTAINER_AUTHORIZATION_TOKEN="token-secret-0",
        **full,
    )
    tokens.tokens.append("")  # nobody needs one
    run("teravalidate", bucket.url("in"), **full)
    assert tokens.asked == [{"path": "/keys"}, {"path": "/keys"}]
    far = "http://192.0.2.1/keys"
    error = failure("teravalidate", bucket.url("in"), AWS_CONTAINER_CREDENTIALS_FULL_URI=far)
    assert "http:// of another machine" in error


#: A job of some seconds, one request after another.
LONG = ("--files", "60", "--workers", "1")
SLOW = {"GRISTMILL_OBJECTS_FAULTS": "throttled=0.25,seed=1"}


@SERVICES
def test_what_ends_soon_is_renewed_for_the_token_of_that_time(
    variables: Given, bucket: Bucket, tokens: Tokens
) -> None:
    tokens.seconds = 2
    run("teragen", "60k", bucket.url("in"), *LONG, **SLOW, **variables(tokens))
    run("teragen", "60k", "in", *LONG)
    assert bucket.objects("in") == parts(Path("in"))
    assert len(tokens.asked) >= 3


@SERVICES
def test_a_service_may_fail_while_credentials_are_good(
    variables: Given, bucket: Bucket, tokens: Tokens
) -> None:
    tokens.until, tokens.how, tokens.seconds = 1, "refused", 200
    run("teragen", "60k", bucket.url("in"), *LONG, **SLOW, **variables(tokens))
    assert len(tokens.asked) >= 2
    tokens.seconds, tokens.until = 2, len(tokens.asked) + 1
    command = ["teragen", "60k", bucket.url("again"), *LONG]
    error = run(*command, status=1, **SLOW, **variables(tokens)).stderr
    assert "there are no credentials for S3" in error
    assert "403 AccessDenied" in error
    no_secret(error, tokens)


@SERVICES
@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("refused", "403 AccessDenied"),
        ("expired", "400 ExpiredToken"),
        ("garbage", "answered with something else than credentials"),
        ("elsewhere", "it answered 307"),
        ("silent", "gave no answer"),
    ],
)
def test_a_service_that_gives_nothing_is_named(
    variables: Given, how: str, says: str, bucket: Bucket, tokens: Tokens, home: Path
) -> None:
    tokens.how = how
    error = failure("teragen", "10", bucket.url("in"), "--history", **variables(tokens))
    assert "there are no credentials for S3" in error
    assert says in error
    assert tokens.endpoint in error
    assert ("AWS_" in error) or how == "expired"
    no_secret(error, tokens)
    for path in home.rglob("*"):
        if path.is_file():
            no_secret(path.read_bytes(), tokens)
    assert bucket.files() == []


def test_what_is_missing_is_named(bucket: Bucket, tokens: Tokens) -> None:
    location, given = bucket.url("in"), of_identity(tokens)
    tokens.seconds = -5
    error = failure("teravalidate", location, **given)
    assert "expired already" in error
    assert "clock" in error
    tokens.file.write_text(" \n")
    assert "is empty" in failure("teravalidate", location, **given)
    tokens.file.unlink()
    error = failure("teravalidate", location, **given)
    assert f"the token file {tokens.file} cannot be read" in error
    odd = {**given, "AWS_ENDPOINT_URL_STS": "sts:1"}
    error = failure("teravalidate", location, status=2, **odd)
    assert "AWS_ENDPOINT_URL_STS" in error
    del given["AWS_ROLE_ARN"]
    assert "AWS_ROLE_ARN is not" in failure("teravalidate", location, **given)
