"""Jobs from and to S3: the bytes are those of a job on a disk, and no text shows a secret.

The server is versitygw, on this machine, started once for all tests.
"""

import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from .harness import GRISTMILL, failure, only_object, report, run
from .in_stores import MEMORIES, RUNS, begun, parts, sorts_as_on_a_disk
from .own_code import Bench
from .resuming import killed_in_a_store
from .s3_server import Bucket, Server

KILLS = 4


@pytest.mark.parametrize("memory", MEMORIES.values(), ids=MEMORIES)
def test_terasort(memory: tuple[str, ...], bucket: Bucket) -> None:
    sorts_as_on_a_disk(memory, bucket)


@pytest.mark.parametrize("files", [200, 2], ids=["small", "large"])
@pytest.mark.parametrize("pattern", ["in", "in/part-*"])
def test_requests_are_few(files: int, pattern: str, bucket: Bucket) -> None:
    """A listing says all of its objects that a HEAD would: each is asked for its bytes alone."""
    rows = 20_000 if files == 200 else 400_000
    run("teragen", str(rows), bucket.url("in"), "--files", str(files))
    stretches = 512  # of a sample of 16,384 keys
    most = max(files, rows * 100 // 8_000_000) + stretches + 20
    for more in (("--memory", "400M"), (*RUNS, "--runner", "processes")):
        found = report("terasort", bucket.url(pattern), "out", "--overwrite", "--no-sync", *more)
        assert files <= found["counters"]["STORE_IO_REQUEST"] <= most
        assert "STORE_IO_RETRY" not in found["counters"]


def test_a_store_with_too_many_requests(bucket: Bucket) -> None:
    run("teragen", "20k", bucket.url("in"), "--files", "40")
    faults = {"GRISTMILL_OBJECTS_FAULTS": "throttled=0.2,seed=2"}
    done = run("wordcount", bucket.url("in"), "out", "--json", **faults)
    counters = only_object(done.stdout)["counters"]
    assert 0 < counters["STORE_IO_THROTTLED"] <= counters["STORE_IO_RETRY"]
    assert "the store had too many requests" in done.stderr


def test_options_say_where_the_store_is(
    bucket: Bucket, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the environment would, in all processes of a job."""
    bench = Bench.made(tmp_path / "bench", 100_000)
    run("sort", tmp_path / "bench" / "in.txt", "-o", bucket.url("in.txt"))
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setenv("AWS_REGION", "nowhere")
    given = [f"endpoint={server.endpoint}", "region=us-east-1", "max_concurrent_requests=2"]
    options = [word for one in given for word in ("--store-option", one)]
    for runner in ("threads", "processes"):
        more = ("--runner", runner, "--memory", "64M", *options)
        run("sort", bucket.url("in.txt"), "-o", bucket.url(runner), *more)
        run("wordcount", bucket.url("in.txt"), bucket.url(f"counted-{runner}"), *more)
    assert bucket.objects("counted-threads") == bucket.objects("counted-processes")
    run(*bench.command("function", tmp_path / "words"))
    run(*on_s3(bench, "function", bucket, "in.txt"), *options)
    assert bucket.objects("words") == parts(tmp_path / "words")
    job = ("streaming", "-mapper", "cat", "-numReduceTasks", "0", *options)
    run(*job, "-input", bucket.url("in.tx?"), "-output", bucket.url("streamed"))
    assert bucket.objects("streamed")
    listed = run("hadoop", "fs", *options, "-ls", bucket.url("")).stdout
    assert f" {time.strftime('%Y-%m-%d')} " in listed
    assert "1970" not in listed
    Path("job.py").write_text(
        "import sys\nimport gristmill as gm\n"
        "source, target, endpoint = sys.argv[1:]\n"
        "job = gm.Job(gm.text(source), map=lambda line: [(line[:1], 1)], reduce=gm.sum(),\n"
        "             output=gm.tsv(target))\n"
        "given = {'endpoint': endpoint, 'region': 'us-east-1'}\n"
        "print(len(list(job.run(store_option=given).read())) > 0)\n"
        "gm.sort(source, output=target + '.txt', store_option=given)\n"
    )
    python = str(GRISTMILL.with_name("python"))
    command = [python, "job.py", bucket.url("in.txt"), bucket.url("letters"), server.endpoint]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_options_of_stores_outlive_a_kill(
    bucket: Bucket, server: Server, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    option = ("--store-option", f"endpoint={server.endpoint}")
    run("teragen", "300k", bucket.url("in"), *option)
    command = ["terasort", bucket.url("in"), bucket.url("out"), *option, *RUNS]
    killed = killed_in_a_store(begun, [*command, "--history"], home, kills=2)
    assert killed > 0
    found = report("teravalidate", bucket.url("out"), "--against", bucket.url("in"), *option)
    assert found["records"] == 300_000
    assert bucket.uploads() == []


def test_explain_says_what_is_asked_and_how_the_store_answers(bucket: Bucket) -> None:
    run("teragen", "200k", bucket.url("in"), "--files", "2")
    for command in (("terasort",), ("wordcount",)):
        found = report("explain", *command, bucket.url("in"), bucket.url("out"))
        source = found["stores"][0]
        assert (source["place"], source["bytes"], source["requests"]) == (
            f"s3://{bucket.name}",
            20_000_000,
            4,
        )
        assert source["tried"]["read"] > 1e6
        assert source["tried"]["latency_s"] < 1
        assert [store["purpose"] for store in found["stores"]] == ["input", "output"]
    assert found["stores"][1]["bytes"] is None
    said = run("explain", "terasort", bucket.url("in"), bucket.url("out")).stdout
    assert f"to read from s3://{bucket.name}: it answers in" in said
    assert not (bucket.folder / "out").exists()


def test_explain_of_user_code_names_the_stores(bucket: Bucket) -> None:
    run("teragen", "200k", bucket.url("in"), "--files", "2")
    Path("job.py").write_text(
        "import gristmill as gm\n"
        f"inputs, output = gm.text('{bucket.url('in')}'), gm.tsv('{bucket.url('out')}')\n"
        "job = gm.Job(inputs, map=lambda line: [(line[:1], 1)], reduce=gm.sum(), output=output)\n"
    )
    script = ("-mapper", "cat", "-input", bucket.url("in"), "-output", bucket.url("out"))
    for command in (("run", "job.py"), ("streaming", *script)):
        said = run(*command, "--explain").stdout
        stores = [line for line in said.splitlines() if line.split()[0] == "store"]
        source, target = stores
        assert f"input in s3://{bucket.name}, 20.0 MB by about 4 requests; it answers in" in source
        assert f"output in s3://{bucket.name}" in target
        assert "free" not in target
    assert not (bucket.folder / "out").exists()


def test_options_that_make_no_sense(bucket: Bucket) -> None:
    for given, says in {
        "wings=2": "the options of stores are endpoint, region, profile",
        "region=a b": "region takes the name of a region",
        "secret_access_key=hush": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    }.items():
        option = ("--store-option", given)
        said = failure("wordcount", bucket.url("in"), "out", *option, status=2)
        assert says in said
        assert "hush" not in said
        job = ("streaming", "-mapper", "cat", "-input", bucket.url("in"), "-output", "out")
        assert says in failure(*job, *option, status=2)


def test_sort_python_and_word_count(bucket: Bucket, tmp_path: Path) -> None:
    bench = Bench.made(tmp_path / "bench", 1_500_000)
    text = tmp_path / "bench" / "in.txt"
    run("sort", text, "-o", "wanted")
    run("sort", text, "-o", bucket.url("a key/in.txt"))
    assert bucket.objects("a key/in.txt") == {"": Path("wanted").read_bytes()}
    text.write_bytes(Path("wanted").read_bytes())
    run("sort", bucket.url("a key/in.txt"), "-o", bucket.url("out"), "--reverse")
    run("sort", text, "-o", "wanted", "--reverse")
    assert bucket.objects("out") == {"": Path("wanted").read_bytes()}
    run("wordcount", text, "counted", "--parts", "2")
    run("wordcount", bucket.url("a key"), bucket.url("counted"), "--parts", "2")
    assert bucket.objects("counted") == parts(Path("counted"))
    run(*bench.command("function", tmp_path / "words"))
    run(*on_s3(bench, "function", bucket, "a key/in.txt"))
    assert bucket.objects("words") == parts(tmp_path / "words")
    assert bucket.uploads() == []


def on_s3(bench: Bench, job: str, bucket: Bucket, key: str) -> list[str | Path]:
    """The command line of a Python job from and to a bucket."""
    local = bench.command(job, Path("words"))
    there = {str(bench.folder / "in.txt"): bucket.url(key), "words": bucket.url("words")}
    return [there.get(str(word), word) for word in local]


def test_python_reads_what_is_in_a_bucket(bucket: Bucket) -> None:
    Path("job.py").write_text(
        "import sys\nimport gristmill as gm\n"
        "source, target = sys.argv[1:]\n"
        "job = gm.Job(gm.text(source), map=lambda line: [(line[0], 1)], reduce=gm.sum(),\n"
        "             output=gm.tsv(target))\n"
        "print(sorted(job.run().read()))\n"
    )
    Path("lines").write_text("apple\nash\nbirch\n")
    run("sort", "lines", "-o", bucket.url("trees"))
    python = str(GRISTMILL.with_name("python"))
    command = [python, "job.py", bucket.url("trees"), bucket.url("letters")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "[('a', '2'), ('b', '1')]\n"), done.stderr


def test_scripts_and_patterns(bucket: Bucket) -> None:
    run("teragen", "30k", "in", "--layout", "ascii", "--files", "3")
    run("teragen", "30k", bucket.url("in"), "--layout", "ascii", "--files", "3")
    job = ("streaming", "-mapper", "cat", "-reducer", "uniq -c", "-numReduceTasks", "2", "-input")
    run(*job, "in/part-m-0000[01]", "-output", "out")
    assert len(parts(Path("out"))) == 2
    s3a = bucket.url("in/part-m-{00000,0000[1x]}").replace("s3:", "s3a:")
    run(*job, s3a, "-output", bucket.url("out"))
    assert bucket.objects("out") == parts(Path("out"))
    run("wordcount", "in/part-m-00001", "in/part-m-00002", "counted")
    run("wordcount", bucket.url("in/*-0000[!0]"), bucket.url("counted"))
    assert bucket.objects("counted") == parts(Path("counted"))
    nothing = bucket.url("in/x*")
    error = failure("wordcount", nothing, bucket.url("no"))
    assert "the pattern matches nothing" in error
    assert nothing in error
    run("sort", "in/part-m-00000", "-o", bucket.url("odd/[a]*"))
    run("sort", bucket.url("odd/[a]*"), "-o", f"file://{Path.cwd()}/sorted%20again")
    assert bucket.objects("odd/[a]*") == {"": Path("sorted again").read_bytes()}
    assert bucket.uploads() == []


FORMATS = """
import sys
from importlib.util import find_spec
from pathlib import Path
import gristmill as gm
top = sys.argv[1]
def rows(line):
    yield {"line": line, "n": len(line)}
def pairs(line):
    yield line, len(line)
def told(name, source):
    out = gm.tsv(f"{top}/told")
    job = gm.Job(source, map=lambda record: [(repr(record), 1)], reduce=gm.sum(), output=out)
    print(name, sorted(job.run(overwrite=True).read()))
for name in ("jsonl", "csv", "parquet", "arrow"):
    form, out = getattr(gm, name), f"{top}/{name}"
    result = gm.Job(gm.text(f"{top}/lines"), map=rows, output=form(out)).run()
    print(name, list(result.read()))
    if find_spec("pandas"):
        print(result.to_pandas().to_csv())
    told(name, form(Path(out) / "part-*"))
for codec in (None, "gzip", "bzip2", "xz", "zstd", "lz4", "snappy"):
    out = f"{top}/tsv-{codec}"
    result = gm.Job(gm.text(f"{top}/lines"), map=pairs, output=gm.tsv(out, codec=codec)).run()
    print(codec, list(result.read()))
    told(codec, gm.text(out))
    told(codec, gm.text(out, whole=True, encoding=None))
    told(codec, gm.delimited(out))
result = gm.Job(gm.text(f"{top}/lines"), map=pairs, output=gm.kv(f"{top}/kv")).run()
print("kv", list(result.read()))
told("kv", gm.kv([f"{top}/kv/part-*"]))
told("fixed", gm.fixed(f"{top}/lines", 4))
"""


@pytest.mark.parametrize("store", ["s3", "objects"])
def test_every_format_in_python(store: str, bucket: Bucket, tmp_path: Path) -> None:
    Path("formats.py").write_text(FORMATS)
    (tmp_path / "local").mkdir()
    (tmp_path / "local/lines").write_text("".join(f"{word}\n" for word in range(100, 400)))
    top = bucket.url("") if store == "s3" else f"objects://{tmp_path}/there/"
    run("sort", tmp_path / "local/lines", "-o", f"{top}top/lines")
    said = []
    for place in (str(tmp_path / "local"), f"{top}top"):
        command = [str(GRISTMILL.with_name("python")), "formats.py", place]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.replace(place, ""))
    assert said[0].count("\n") > 30
    assert said[1] == said[0]


def test_more_names_than_a_listing_holds(bucket: Bucket) -> None:
    """A listing has a thousand names."""
    (bucket.folder / "many").mkdir()
    for number in range(1200):
        (bucket.folder / "many" / f"{number}+ %41").write_text("word\n")
    run("wordcount", bucket.url("many"), bucket.url("counted"))
    assert bucket.objects("counted") == {"part-r-00000": b"word\t1200\n"}


@pytest.mark.parametrize("job", ["memory", "runs"])
def test_killed_at_any_moment(job: str, bucket: Bucket, home: Path) -> None:
    run("teragen", "300k", "in", "--files", "2", "--no-sync")
    run("terasort", "in", "out", "--partitions", "3", "--no-sync")
    memory = {"memory": ("--memory", "400M"), "runs": RUNS}[job]
    run("teragen", "300k", bucket.url("in"), "--files", "2")
    shutil.rmtree(home, ignore_errors=True)
    command = ["terasort", bucket.url("in"), bucket.url("out"), *memory, "--partitions", "3"]
    killed_in_a_store(begun, [*command, "--history"], home, kills=KILLS)
    assert bucket.objects("out") == parts(Path("out"))
    assert bucket.uploads() == []


def test_a_job_that_fails_or_is_ended_leaves_no_object_and_no_upload(bucket: Bucket) -> None:
    run("teragen", "300k", "in", "--no-sync")
    for end in (signal.SIGTERM, signal.SIGKILL):
        process = begun(
            "terasort", "in", bucket.url("out"), *RUNS, "--partitions", "3", "--history"
        )
        while process.poll() is None and not bucket.uploads():
            time.sleep(0.002)
        process.send_signal(end)
        process.communicate(timeout=60)
        assert process.returncode != 0
        if end == signal.SIGKILL:
            run("jobs", "prune", "--older-than", "0")
        assert (bucket.files(), bucket.uploads()) == ([], [])


def test_failures_are_one_paragraph_with_what_to_do(
    bucket: Bucket, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = bucket.url("made")
    run("teragen", "1k", here)
    wrong: dict[str, tuple[str, dict[str, str]]] = {
        "there is no bucket no-such-bucket": ("s3://no-such-bucket/in", {}),
        "no such file or directory": (bucket.url("missing"), {}),
        "the store does not know the access key": (here, {"AWS_ACCESS_KEY_ID": "AKNOBODY"}),
        "AWS_SECRET_ACCESS_KEY": (here, {"AWS_SECRET_ACCESS_KEY": "wrong"}),
        "there are no credentials for S3": (here, {"AWS_ACCESS_KEY_ID": ""}),
        "no answer from http://127.0.0.1:1": (here, {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}),
        "there is no profile": (here, {"AWS_PROFILE": "nobody"}),
        "it names no bucket": ("s3:///in", {}),
    }
    for says, (location, environment) in wrong.items():
        with monkeypatch.context() as changed:
            for name, value in environment.items():
                changed.setenv(name, value)
            error = failure("teravalidate", location, status=2 if says in USAGE else 1)
        assert says in error
        assert "What to do" in error or says == "no such file or directory"
        assert server.secret not in error
    assert "there is no bucket" in failure("teragen", "1k", "s3://no-such-bucket/out")
    assert [name for name in bucket.files() if not name.startswith("made/")] == []


#: Failures that the command line is blamed for.
USAGE = ("there is no profile", "it names no bucket")


def test_a_reader_reads_one_version_also_in_a_fork(bucket: Bucket) -> None:
    run("teragen", "300k", bucket.url("in"))
    Path("replace.py").write_text(
        "import os, subprocess, sys\nfrom gristmill._core import RangeReader\n"
        "reader = RangeReader(sys.argv[1])\n"
        "first = reader.read_at(0, 100)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(reader.read_at(0, 100) != first)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "subprocess.run(sys.argv[2:], check=True)\n"
        "reader.read_at(100, 100)\n"
    )
    replace = [GRISTMILL, "teragen", "300k", bucket.url("in"), "--overwrite", "--skew"]
    python = GRISTMILL.with_name("python")
    done = subprocess.run(
        [python, "replace.py", bucket.url("in/part-m-00000"), *replace],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "it was replaced while the job read it" in done.stderr
    assert f"{bucket.url('in/part-m-00000')}" in done.stderr


def test_no_text_has_a_secret(bucket: Bucket, server: Server, home: Path) -> None:
    secrets = (server.secret, server.key)
    said = ""
    run("teragen", "20k", "in", "--files", "2")
    for runner in ("threads", "processes"):
        out = bucket.url(f"out-{runner}")
        command = ["in", out, "--memory", "64M", "--runner", runner]
        for more in ((), ("--json", "--overwrite")):
            done = run("terasort", *command, "--history", *more)
            said += done.stdout + done.stderr
        done = run("explain", "terasort", out, "sorted", "--runner", runner)
        said += done.stdout + done.stderr
    said += run("jobs").stdout + run("jobs", "show", "last").stdout
    out = bucket.url("out-threads")
    said += failure("teravalidate", out, AWS_ACCESS_KEY_ID="AKNOBODY")
    said += failure("teravalidate", out, AWS_ENDPOINT_URL="http://127.0.0.1:1")
    kept = [path for folder in (home, Path(), bucket.folder) for path in folder.rglob("*")]
    assert any(path.name == "events.jsonl" for path in kept)
    for text in (said.encode(), *(path.read_bytes() for path in kept if path.is_file())):
        assert not any(secret.encode() in text for secret in secrets)
