"""`gristmill cp` of long objects within one store, of stubs that say what they were asked."""

import json
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

import pytest
from tests.optional import or_missing

from .clouds import ACCOUNT, CloudBucket, serving_azure
from .copy_stubs import PART, S3, Azure, Gcs, serving
from .harness import failure, run
from .stub_server import as_s3

GB = 1 << 30


@pytest.fixture(autouse=True)
def nobody(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's home, and an empty directory to work in."""
    assert not home.exists()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.chdir(tmp_path)


def counters(*words: str, **environment: str) -> dict[str, int]:
    done = run("cp", *words, "--json", **environment)
    return json.loads(done.stdout)["counters"]


def test_s3_copies_a_long_object_in_parts() -> None:
    with serving(S3, GB + PART) as store:
        words = ("s3://bucket/in/long", "s3://bucket/out/long")
        counted = counters(*words, **as_s3(store.endpoint))
    assert (counted["STORE_COPIES"], counted["STORE_COPIED_BYTES"]) == (1, GB + PART)
    begun, *parts, completed = store.asked
    assert (begun[0], completed[0]) == ("POST uploads", "POST uploadId")
    assert [question for question, _ in parts] == ["PUT partNumber uploadId"] * 17
    said = [headers for _, headers in parts]
    assert {headers["x-amz-copy-source"] for headers in said} == {"/bucket/in/long"}
    assert {headers["x-amz-copy-source-if-match"] for headers in said} == {'"in/long"'}
    ranges = sorted(headers["x-amz-copy-source-range"] for headers in said)
    wanted = [f"bytes={at}-{at + PART - 1}" for at in range(0, GB + PART, PART)]
    assert ranges == sorted(wanted)


def test_s3_that_gives_wrong_sums_of_parts_makes_nothing_of_them() -> None:
    with serving(S3, GB + PART, is_wrong=True) as store:
        words = ("s3://bucket/in/long", "s3://bucket/out/long")
        said = failure("cp", *words, **as_s3(store.endpoint))
    assert "does not permit" in said  # to read it
    asked = store.questions()
    assert "POST uploadId" not in asked
    assert asked.count("DELETE uploadId") == asked.count("POST uploads")


STUBS = {"s3": S3, "gs": Gcs, "az": Azure}


@pytest.mark.parametrize("scheme", STUBS)
def test_a_source_that_changes_is_named_and_nothing_is_made(scheme: str) -> None:
    with serving(STUBS[scheme], 2 * GB, changes=True) as store:
        environment = {
            "s3": as_s3(store.endpoint),
            "gs": {"STORAGE_EMULATOR_HOST": store.endpoint},
            "az": {
                "AZURE_STORAGE_ACCOUNT": ACCOUNT,
                "AZURE_STORAGE_KEY": "aHVzaA==",
                "AZURE_STORAGE_ENDPOINT": f"{store.endpoint}/{ACCOUNT}",
            },
        }[scheme]
        words = (f"{scheme}://bucket/in/long", f"{scheme}://bucket/out/long")
        said = failure("cp", *words, **environment)
    assert "it was replaced" in said
    assert words[0] in said
    assert not store.is_made
    asked = store.questions()
    assert asked.count("DELETE uploadId") == asked.count("POST uploads")


def test_gcs_copies_in_steps() -> None:
    with serving(Gcs, 3 * GB) as store:
        words = ("gs://bucket/in/long", "gs://bucket/out/long")
        counted = counters(*words, STORAGE_EMULATOR_HOST=store.endpoint)
    assert (counted["STORE_COPIES"], counted["STORE_COPIED_BYTES"]) == (1, 3 * GB)
    first, then = "ifSourceGenerationMatch", "ifSourceGenerationMatch rewriteToken"
    assert store.questions() == [f"POST {first}", f"POST {then}", f"POST {then}"]


def test_azure_copies_a_long_blob_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with or_missing("Azure"), serving_azure(tmp_path) as cloud, serving(Azure, 300 << 20) as store:
        environment = cloud.environment | {"AZURE_STORAGE_ENDPOINT": f"{store.endpoint}/{ACCOUNT}"}
        words = ("az://box/in/long", "az://box/out/long")
        counted = counters(*words, **environment)
        names = ("STORE_COPIES", "STORE_COPIES_UNPROVED")
        assert [counted[name] for name in names] == [1, 1]
        assert store.questions() == ["PUT blockid comp"] * 5 + ["PUT comp"]
        *parts, (_, completed) = store.asked
        assert completed["x-ms-meta-crc32"] == "0000002a"  # as the source has it
        assert {headers["x-ms-source-if-match"] for _, headers in parts} == {'"0x1"'}
        last = {headers["x-ms-source-range"] for _, headers in parts}
        assert f"bytes={4 * PART}-{(300 << 20) - 1}" in last
        # A real server lets whoever has such a URL read the blob, and nobody without.
        cloud.make_bucket("box")
        for name, value in cloud.environment.items():
            monkeypatch.setenv(name, value)
        Path("in.txt").write_text("a\n")
        run("cp", "in.txt", CloudBucket(cloud, "box").url("in/long"))
        url = urlsplit(parts[0][1]["x-ms-copy-source"])
        there = url._replace(netloc=urlsplit(cloud.endpoint).netloc)
        opener = build_opener(ProxyHandler({}))
        with opener.open(there.geturl(), timeout=10) as reply:
            assert reply.read() == b"a\n"
        with pytest.raises(HTTPError):
            opener.open(there.geturl().replace("sig=", "sig=A"), timeout=10)
