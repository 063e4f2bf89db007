"""Jobs from and to Google's storage and Azure make the bytes of a disk, and no text shows a secret.

The servers are fake-gcs-server and Azurite, on this machine, started once for all tests.
"""

import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.optional import or_missing
from tests.soak.copies import Place, campaign

from .clouds import ACCOUNT, Cloud, CloudBucket, serving_azure, serving_gcs
from .harness import GRISTMILL, clean_environment, failure, only_object, report, run
from .in_stores import MEMORIES, RUNS, begun, parts, sorts_as_on_a_disk
from .resuming import Tree, killed_in_a_store

KILLS = 2

#: Files that the store copied, their bytes, and those of them that are not proved.
IN_STORE = ("STORE_COPIES", "STORE_COPIED_BYTES", "STORE_COPIES_UNPROVED")


@pytest.fixture(scope="module")
def gcs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """A server that speaks as Google's storage does."""
    with or_missing("GCS"), serving_gcs(tmp_path_factory.mktemp("gcs")) as cloud:
        yield cloud


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """A server that speaks as Azure's blobs do."""
    with or_missing("Azure"), serving_azure(tmp_path_factory.mktemp("azure")) as cloud:
        yield cloud


@pytest.fixture
def make(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Cloud], CloudBucket]:
    """Make an empty bucket, for whoever has the environment of this test, and nobody's home."""
    assert not home.exists()
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    def made(cloud: Cloud) -> CloudBucket:
        for name, value in {**cloud.environment, "NO_PROXY": "127.0.0.1"}.items():
            monkeypatch.setenv(name, value)
        name = f"b{random.randrange(1 << 40):x}"
        cloud.make_bucket(name)
        return CloudBucket(cloud, name)

    return made


@pytest.fixture
def in_gcs(gcs: Cloud, make: Callable[[Cloud], CloudBucket]) -> CloudBucket:
    """An empty bucket of Google's storage."""
    return make(gcs)


@pytest.fixture
def in_azure(azure: Cloud, make: Callable[[Cloud], CloudBucket]) -> CloudBucket:
    """An empty container of Azure."""
    return make(azure)


@pytest.fixture(params=["in_gcs", "in_azure"])
def bucket(request: pytest.FixtureRequest) -> CloudBucket:
    """An empty bucket of each."""
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("memory", MEMORIES.values(), ids=MEMORIES)
def test_terasort(memory: tuple[str, ...], bucket: CloudBucket) -> None:
    sorts_as_on_a_disk(memory, bucket)


NAMES = ("plain", "a b", "ü+%#?&=", "q'\"<>", "a,b;c:d", "-", "%2F", "x" * 200)


@pytest.mark.parametrize("name", NAMES)
def test_names_are_what_they_are(name: str, bucket: CloudBucket) -> None:
    Path("in.txt").write_text("b\na\n")
    run("sort", "in.txt", "-o", bucket.url(f"deep {name}/{name}"))
    assert bucket.objects(f"deep {name}") == {name: b"a\nb\n"}
    assert run("sort", "-r", bucket.url(f"deep {name}")).stdout == "b\na\n"


def test_a_tree_there_and_back(bucket: CloudBucket) -> None:
    for folder in ("tree", "tree/sub dir", "tree/deep/c+d"):
        Path(folder).mkdir(parents=True)
        for number, name in enumerate((*NAMES, "_hidden", ".hidden", "new\nline")):
            Path(folder, name).write_bytes(random.randbytes(1000 * number))
    run("cp", "tree/", bucket.url("tree"))
    run("cp", bucket.url("tree/"), "back")
    assert whole_tree(Path("back")) == whole_tree(Path("tree"))
    Path("tree/plain").write_bytes(b"was empty")
    Path("tree/sub dir/ü+%#?&=").write_bytes(random.randbytes(2000))  # of the same length
    Path("tree/deep/c+d/-").unlink()
    run("cp", "tree/", bucket.url("tree"), "--update", "--delete")
    run("cp", bucket.url("tree"), "again")
    assert whole_tree(Path("again/tree")) == whole_tree(Path("tree"))
    assert bucket.uploads() == []


def test_the_store_copies_its_own(bucket: CloudBucket) -> None:
    names = ("long", "a b/ü+%#?&=")
    for name in names:
        Path("tree", name).parent.mkdir(parents=True, exist_ok=True)
        Path("tree", name).write_bytes(random.randbytes(20_000_000))
    run("cp", "tree/", bucket.url("tree"))
    words = ("cp", bucket.url("tree/"), bucket.url("copy"))
    (_, planned) = report("explain", *words)["stores"]
    done = report(*words, "--manifest", "made")
    is_proved = bucket.cloud.name == "gcs"
    unproved = 0 if is_proved else len(names)
    counted = {name: done["counters"].get(name, 0) for name in IN_STORE}
    assert counted == dict(zip(IN_STORE, (2, 40_000_000, unproved), strict=True))
    assert planned["copies"] == {"files": 2, "bytes": 40_000_000, "proved": is_proved}
    assert (planned["bytes"], planned["requests"]) == (0, 2 * 3)
    assert any("gives no checksum" in said for said in done["warnings"]) is not is_proved
    assert ("null" in Path("made").read_text()) is not is_proved
    run("cp", bucket.url("copy/"), "back", "--verify")
    assert whole_tree(Path("back")) == whole_tree(Path("tree"))
    # With --verify the bytes come here, and all is proved.
    done = report(*words, "--overwrite", "--verify")
    assert (done["counters"]["COPY"], done["counters"].get("STORE_COPIES")) == (2, None)
    assert bucket.uploads() == []


def test_no_key_leads_out_of_the_target_or_is_left_out(in_gcs: CloudBucket) -> None:
    bucket = in_gcs
    for name in ("in/fine", "in/../../out", "in/./dot"):
        bucket.put(name, b"x")
    Path("deep/target").mkdir(parents=True)
    assert "no directory can have" in failure("cp", bucket.url("in/"), "deep/target", status=1)
    run("cp", bucket.url("in/"), "deep/target", "--ignore-failures", status=1)
    assert list(whole_tree(Path("deep"))) == ["target/fine"]
    bucket.put("slashes//two", b"x")
    assert "no empty names" in failure("cp", bucket.url("slashes/"), "deep/target", status=1)


def whole_tree(top: Path) -> Tree:
    return {str(one.relative_to(top)): one.read_bytes() for one in top.rglob("*") if one.is_file()}


def test_an_empty_file_is_one(bucket: CloudBucket) -> None:
    Path("in.txt").touch()
    run("sort", "in.txt", "-o", bucket.url("none"))
    assert run("sort", bucket.url("none")).stdout == ""
    assert "none" in run("hadoop", "fs", "-ls", bucket.url("none")).stdout


def test_a_file_of_many_parts(bucket: CloudBucket) -> None:
    """More than what is composed at once."""
    run("teragen", "2800k", bucket.url("in"), "--files", "1")
    found = report("teravalidate", bucket.url("in"), status=1)
    assert found["records"] == 2_800_000
    run("teragen", "2800k", "in", "--files", "1", "--no-sync")
    assert report("teravalidate", "in", status=1)["checksum"] == found["checksum"]
    assert bucket.uploads() == []


def test_requests_that_fail_are_made_again(bucket: CloudBucket) -> None:
    run("teragen", "50k", "in", "--files", "4", "--no-sync")
    run("terasort", "in", "out", "--partitions", "2", "--no-sync")
    faults = {"GRISTMILL_OBJECTS_FAULTS": "refused=0.1,lost=0.05,throttled=0.05,seed=3"}
    run("teragen", "50k", bucket.url("in"), "--files", "4", **faults)
    done = run(
        "terasort", bucket.url("in"), bucket.url("out"), "--partitions", "2", "--json", **faults
    )
    assert only_object(done.stdout)["counters"]["STORE_IO_RETRY"] > 0
    assert bucket.objects("out") == parts(Path("out"))


@pytest.mark.parametrize("seed", range(KILLS))
def test_killed_and_resumed(seed: int, bucket: CloudBucket, home: Path) -> None:
    run("teragen", "300k", bucket.url("in"), "--files", "2")
    shutil.rmtree(home, ignore_errors=True)
    command = ["terasort", bucket.url("in"), bucket.url("out"), *RUNS, "--partitions", "3"]
    killed = killed_in_a_store(begun, [*command, "--history"], home, kills=seed + 1)
    assert killed > 0
    found = report("teravalidate", bucket.url("out"), "--against", bucket.url("in"))
    assert found["records"] == 300_000
    assert bucket.uploads() == []


def test_python_and_streaming_read_and_write(bucket: CloudBucket) -> None:
    Path("in.txt").write_text("b\na\nb\n")
    run("sort", "in.txt", "-o", bucket.url("in/one.txt"))
    Path("job.py").write_text(
        "import sys\nimport gristmill as gm\n"
        "source, target = sys.argv[1:]\n"
        "job = gm.Job(gm.text(source), map=lambda line: [(line, 1)], reduce=gm.sum(),\n"
        "             output=gm.tsv(target))\n"
        "print(sorted(job.run().read()))\n"
    )
    python = str(GRISTMILL.with_name("python"))
    command = [python, "job.py", bucket.url("in/*.txt"), bucket.url("counted")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "[('a', '1'), ('b', '2')]\n"), done.stderr
    job = ("streaming", "-mapper", "cat", "-numReduceTasks", "0")
    run(*job, "-input", bucket.url("in"), "-output", bucket.url("streamed"))
    assert b"".join(bucket.objects("streamed").values()).count(b"\n") == 3
    run("hadoop", "fs", "-cp", bucket.url("in/one.txt"), bucket.url("copied"))
    assert run("hadoop", "fs", "-cat", bucket.url("copied")).stdout == "a\nb\nb\n"
    run("hadoop", "fs", "-rm", bucket.url("copied"))
    assert "No such file" in run("hadoop", "fs", "-ls", bucket.url("copied"), status=1).stderr
    assert run("grep", "-c", "b", bucket.url("in/one.txt")).stdout == "2\n"


def test_options_say_where_the_store_is(
    bucket: CloudBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("in.txt").write_text("b\na\n")
    run("sort", "in.txt", "-o", bucket.url("in.txt"))
    cloud = bucket.cloud
    if cloud.name == "azure":
        monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", "http://127.0.0.1:1")
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "another")
        given = [f"azure_endpoint={cloud.endpoint}", f"azure_account={ACCOUNT}"]
    else:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:1")
        given = [f"gcs_endpoint={cloud.endpoint}"]
    options = [word for one in given for word in ("--store-option", one)]
    assert run("sort", bucket.url("in.txt"), *options).stdout == "a\nb\n"
    assert "no answer" in failure("sort", bucket.url("in.txt"), status=1)


def test_what_is_not_there_is_named(bucket: CloudBucket) -> None:
    assert "no such file" in failure("sort", bucket.url("none"), status=1)
    nobody = failure("sort", f"{bucket.cloud.scheme}://nobody/a", status=1)
    assert "nobody" in nobody
    assert "names no bucket" in failure("sort", f"{bucket.cloud.scheme}:///a", status=2)


def test_no_text_shows_a_secret(in_azure: CloudBucket, home: Path) -> None:
    Path("in.txt").write_text("b\na\n")
    bucket, secret = in_azure, in_azure.cloud.secret
    signed = {"AZURE_STORAGE_KEY": "", "AZURE_STORAGE_SAS_TOKEN": f"sig={secret}&sp=r"}
    wrong = {"AZURE_STORAGE_KEY": secret[:-4] + "AAAA"}
    said = []
    for environment in (signed, wrong, {}):
        for command in (
            ("sort", "in.txt", "-o", bucket.url("out"), "--history", "--json"),
            ("explain", "sort", bucket.url("out")),
            ("doctor",),
        ):
            done = subprocess.run(
                [GRISTMILL, *command],
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
                env=clean_environment(**environment),
            )
            said.append(done.stdout + done.stderr)
    kept = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert any("credentials" in text or "does not permit" in text for text in said)
    assert secret[:40] not in "".join(said)
    assert secret[:40].encode() not in kept


def test_copies_killed_at_random(bucket: CloudBucket, tmp_path: Path) -> None:
    campaign([3], 7, print, tmp_path, [Place("a cloud", bucket.url("c"), bucket.uploads)])
