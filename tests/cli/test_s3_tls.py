"""S3 over TLS: whose certificates are trusted, and what a job says of a server that is not."""

from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.optional import missing

from .certificates import Authority
from .harness import failure, run
from .s3_server import Bucket, Server, serving
from .servers import HERE, ServerMissing
from .test_s3 import parts
from .token_server import giving


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who has signed the certificate of the server."""
    return Authority(tmp_path_factory.mktemp("tls") / "authority")


@pytest.fixture(scope="module")
def server(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Generator[Server]:
    """A server with TLS, whose certificate is for 127.0.0.1 and not for localhost."""
    folder = tmp_path_factory.mktemp("s3-tls") / "buckets"
    folder.mkdir()
    own = authority.identity("127.0.0.1", "store.test")
    words = ("--cert", str(own.certificate), "--key", str(own.key))
    try:
        with serving(folder, HERE, *words, authority=authority.file) as server:
            yield server
    except ServerMissing as problem:
        missing("NOT TESTED: S3", str(problem))


@pytest.fixture(autouse=True)
def of_the_system(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is trusted but those whom the system trusts."""
    assert bucket.name
    for name in ("AWS_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("runner", ["threads", "processes"])
@pytest.mark.parametrize("variable", ["AWS_CA_BUNDLE", "SSL_CERT_FILE"])
def test_an_authority_of_ones_own(
    variable: str, runner: str, bucket: Bucket, authority: Authority, tmp_path: Path
) -> None:
    # As people keep them: with words between the certificates, and others beside.
    bundle = tmp_path / "certificates.pem"
    other = Authority(tmp_path / "other").file.read_text()
    bundle.write_text(f"# another one\n{other}\n# ours\n{authority.file.read_text()}")
    trusting = {variable: str(bundle)}
    more = ("--memory", "64M", "--runner", runner)
    run("teragen", "50k", "in", "--files", "2")
    run("terasort", "in", "out", *more)
    run("teragen", "50k", bucket.url("in"), "--files", "2", **trusting)
    run("terasort", bucket.url("in"), bucket.url("out"), *more, **trusting)
    assert bucket.objects("out") == parts(Path("out"))
    run("terasort", bucket.url("in"), "back", *more, **trusting)
    assert parts(Path("back")) == parts(Path("out"))
    run("teravalidate", bucket.url("out"), "--against", "in", **trusting)


def test_a_profile_names_certificates_too(bucket: Bucket, authority: Authority) -> None:
    folder = Path("../.aws")
    folder.mkdir()
    (folder / "config").write_text(f"[default]\nca_bundle = {authority.file}\n")
    run("teragen", "1", bucket.url("in"))
    (folder / "config").write_text("[default]\nca_bundle = /none.pem\n")
    assert "ca_bundle names /none.pem" in failure("teravalidate", bucket.url("in"), status=2)
    # The variable comes first.
    run("teravalidate", bucket.url("in"), AWS_CA_BUNDLE=str(authority.file))


def test_a_server_that_nobody_vouches_for_is_not_trusted(
    bucket: Bucket, server: Server, authority: Authority, tmp_path: Path
) -> None:
    location = bucket.url("in")
    error = failure("teragen", "10", location)
    assert f"no connection to {server.endpoint}" in error
    assert "no authority that this system trusts has signed it" in error
    assert "AWS_CA_BUNDLE" in error
    wrong = Authority(tmp_path / "wrong").file
    error = failure("teragen", "10", location, AWS_CA_BUNDLE=str(wrong))
    assert f"no authority in {wrong} has signed it" in error
    assert "AWS_CA_BUNDLE" in error
    # As with AWS's own programs, it stands in place of those of the system.
    error = failure(
        "teragen", "10", location, AWS_CA_BUNDLE=str(wrong), SSL_CERT_FILE=str(authority.file)
    )
    assert f"no authority in {wrong} has signed it" in error
    assert bucket.files() == []


def test_a_server_of_another_name_is_not_trusted(
    bucket: Bucket, server: Server, authority: Authority
) -> None:
    elsewhere = server.endpoint.replace("127.0.0.1", "localhost")
    trusting = {"AWS_CA_BUNDLE": str(authority.file), "NO_PROXY": "localhost"}
    error = failure("teragen", "10", bucket.url("in"), AWS_ENDPOINT_URL=elsewhere, **trusting)
    assert "it is for 127.0.0.1, store.test" in error
    assert elsewhere in error
    assert "AWS_ENDPOINT_URL" in error
    assert bucket.files() == []


def test_a_server_without_tls(bucket: Bucket, server: Server, authority: Authority) -> None:
    with giving(server, Path("token")) as service:
        address = service.endpoint.replace("http:", "https:")
        given = {"AWS_ENDPOINT_URL": address, "AWS_CA_BUNDLE": str(authority.file)}
        error = failure("teragen", "10", bucket.url("in"), **given)
    assert "does not speak TLS" in error
    assert "http://" in error


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "cannot be read"),
        ("nothing\n", "holds no certificate"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "holds no certificate"),
        ("-----BEGIN CERTIFICATE-----\n???\n-----END CERTIFICATE-----\n", "is not a PEM file"),
    ],
)
def test_a_file_that_holds_no_certificates_is_named(
    text: str | None, says: str, bucket: Bucket, tmp_path: Path
) -> None:
    bundle = tmp_path / "own.pem"
    if text is not None:
        bundle.write_text(text)
    error = failure("teragen", "10", bucket.url("in"), status=2, AWS_CA_BUNDLE=str(bundle))
    assert f"AWS_CA_BUNDLE names {bundle}, which {says}" in error


def test_a_certificate_that_has_ended_is_not_trusted(
    bucket: Bucket, server: Server, authority: Authority, tmp_path: Path
) -> None:
    ended = authority.identity("127.0.0.1", lasts=timedelta(days=-2))
    folder = tmp_path / "ended"
    folder.mkdir()
    with giving(server, tmp_path / "token", ended) as service:
        given = {"AWS_ENDPOINT_URL": service.endpoint, "AWS_CA_BUNDLE": str(authority.file)}
        error = failure("teragen", "10", bucket.url("in"), **given)
    assert "it has ended, or is not valid yet" in error
    assert "clock" in error


def test_sts_is_trusted_by_the_same_certificates(
    bucket: Bucket,
    server: Server,
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    own = authority.identity("127.0.0.1")
    with giving(server, tmp_path / "token", own) as service:
        given = {
            "AWS_WEB_IDENTITY_TOKEN_FILE": str(service.file),
            "AWS_ROLE_ARN": "arn:aws:iam::1:role/r",
            "AWS_ENDPOINT_URL_STS": service.endpoint,
        }
        error = failure("teragen", "10", bucket.url("in"), **given)
        assert f"STS at {service.endpoint} was told nothing" in error
        assert "AWS_CA_BUNDLE" in error
        assert service.asked == []
        run("teragen", "1", bucket.url("in"), AWS_CA_BUNDLE=str(authority.file), **given)
        assert len(service.asked) == 1
    assert bucket.files() == ["in/_SUCCESS", "in/part-m-00000"]
