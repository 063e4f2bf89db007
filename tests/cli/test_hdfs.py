"""Jobs from and to HDFS: the bytes are those of a job on a disk.

The server is Hadoop's MiniDFSCluster, on this machine, started once for all tests.
"""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.optional import missing

from .harness import GRISTMILL, clean_environment, failure, report, run
from .hdfs_server import NOBODY, Cluster, HdfsMissing, local, serving, settings
from .own_code import Bench
from .resuming import killed_in_a_store

#: So little memory that 30 MB make runs.
RUNS = ("--memory", "39M", "--workers", "2")

KILLS = 3

#: What reads files as users' formats do: through the engine, in Python.
READ = (
    "import sys\nfrom gristmill import _core\nfrom gristmill.locations import open_read\n"
    "for path in _core.find_files(sys.argv[1]):\n"
    "    name = path.rsplit('/', 1)[1]\n"
    "    data = open_read(path).read()\n"
    "    sys.stdout.buffer.write(f'{name} {len(data)}\\n'.encode() + data)\n"
)


@pytest.fixture(scope="module")
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("hdfs") / "data"
    folder.mkdir()
    try:
        with serving(folder) as cluster:
            yield cluster
    except HdfsMissing as problem:
        missing(request.config, "NOT TESTED: HDFS", str(problem))


@pytest.fixture
def there(cluster: Cluster, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty folder in HDFS, for whoever has the environment of this test."""
    assert not home.exists()
    monkeypatch.setenv("HADOOP_CONF_DIR", str(settings(tmp_path / "conf")))
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return cluster.url(f"t{random.randrange(1 << 40):x}")


def files(location: str) -> dict[str, bytes]:
    """What is in HDFS at a location: of an output, its parts."""
    found, rest = dict[str, bytes](), python(READ, location)
    while rest:
        line, _, rest = rest.partition(b"\n")
        name, _, length = line.rpartition(b" ")
        found[name.decode()], rest = rest[: int(length)], rest[int(length) :]
    return found


def file(location: str) -> bytes:
    """What is in a file in HDFS."""
    return python(
        "import sys\nfrom gristmill.locations import open_read\n"
        "sys.stdout.buffer.write(open_read(sys.argv[1]).read())\n",
        location,
    )


def is_there(location: str) -> bool:
    """Whether something is there; what is staged does not count, but by its own name."""
    script = "import sys\nfrom gristmill import _core\nprint(_core.exists(sys.argv[1]))"
    return python(script, location) == b"True\n"


def python(script: str, location: str) -> bytes:
    """Run a script about a location; returns what it wrote."""
    done = subprocess.run(
        [sys.executable, "-c", script, location], capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def nothing_staged(*locations: str) -> bool:
    names = (".gristmill-staging", ".gristmill-staging-new")
    return not any(is_there(f"{location}/{name}") for location in locations for name in names)


@pytest.mark.parametrize(
    "memory",
    [("--memory", "400M"), RUNS, ("--memory", "64M", "--runner", "processes")],
    ids=["memory", "runs", "processes"],
)
def test_terasort(memory: tuple[str, ...], there: str) -> None:
    run("teragen", "300k", "in", "--files", "2", "--no-sync")
    run("terasort", "in", "out", "--partitions", "3", "--no-sync")
    run("teragen", "300k", f"{there}/deep/in", "--files", "2")
    assert files(f"{there}/deep/in") == local(Path("in"))
    command = ["terasort", f"{there}/deep/in", f"{there}/out", *memory, "--partitions", "3"]
    run(*command)
    assert files(f"{there}/out") == local(Path("out"))
    assert "exists" in failure(*command)
    run(*command, "--overwrite", "--no-sync")
    assert files(f"{there}/out") == local(Path("out"))
    found = report("teravalidate", f"{there}/out", "--against", f"{there}/deep/in")
    assert found["records"] == 300_000
    assert nothing_staged(there, f"{there}/out", f"{there}/deep/in")


def test_overwrite_with_fewer_parts(there: str) -> None:
    run("teragen", "20k", f"{there}/in")
    for parts in ("4", "2"):
        run("terasort", f"{there}/in", f"{there}/out", "--partitions", parts, "--overwrite")
        assert len(files(f"{there}/out")) == int(parts)
    assert is_there(f"{there}/out/_SUCCESS")


def test_sort_python_and_word_count(there: str, tmp_path: Path) -> None:
    bench = Bench.made(tmp_path / "bench", 1_500_000)
    text, name = tmp_path / "bench" / "in.txt", "ein Schlüssel +%41"
    run("sort", text, "-o", "wanted")
    run("sort", text, "-o", f"{there}/{name}/in.txt")
    assert files(f"{there}/{name}") == {"in.txt": Path("wanted").read_bytes()}
    text.write_bytes(Path("wanted").read_bytes())
    run("sort", f"{there}/{name}/in.txt", "-o", f"{there}/out", "--reverse")
    run("sort", text, "-o", "wanted", "--reverse")
    assert file(f"{there}/out") == Path("wanted").read_bytes()
    run("wordcount", text, "counted", "--parts", "2")
    run("wordcount", f"{there}/{name}", f"{there}/counted", "--parts", "2")
    assert files(f"{there}/counted") == local(Path("counted"))
    run(*bench.command("function", tmp_path / "words"))
    given = bench.command("function", Path("words"))
    moved = {str(text): f"{there}/{name}/in.txt", "words": f"{there}/words"}
    run(*(moved.get(str(word), word) for word in given))
    assert files(f"{there}/words") == local(tmp_path / "words")
    assert nothing_staged(there, f"{there}/{name}", f"{there}/words")


@pytest.mark.parametrize("job", ["memory", "runs"])
def test_killed_at_any_moment(job: str, there: str, home: Path) -> None:
    run("teragen", "300k", "in", "--files", "2", "--no-sync")
    run("terasort", "in", "out", "--partitions", "3", "--no-sync")
    memory = {"memory": ("--memory", "400M"), "runs": RUNS}[job]
    command = ["terasort", "in", f"{there}/out", *memory, "--partitions", "3", "--history"]
    for path in home.glob("jobs/*"):
        assert not list(path.glob("events.jsonl"))

    def every_part_is_whole() -> None:
        wanted = local(Path("out"))
        if is_there(f"{there}/out") and not is_there(f"{there}/out/_SUCCESS"):
            found = files(f"{there}/out")
            assert all(wanted[name] == data for name, data in found.items())

    killed_in_a_store(begun, [*command], home, kills=KILLS, after=every_part_is_whole)
    assert files(f"{there}/out") == local(Path("out"))
    assert nothing_staged(f"{there}/out")


def begun(*command: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [GRISTMILL, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=clean_environment(),
    )


def test_a_job_that_fails_or_is_ended_leaves_nothing(there: str) -> None:
    run("teragen", "300k", "in", "--no-sync")
    for end in (signal.SIGTERM, signal.SIGKILL):
        process = begun("terasort", "in", f"{there}/out", *RUNS, "--partitions", "3", "--history")
        while process.poll() is None and not is_there(f"{there}/out/.gristmill-staging-new"):
            time.sleep(0.002)
        process.send_signal(end)
        process.communicate(timeout=60)
        assert process.returncode != 0
        assert not is_there(f"{there}/out"), "what is staged is no output"
        if end == signal.SIGKILL:
            run("jobs", "prune", "--older-than", "0")
        assert not is_there(f"{there}/out/.gristmill-staging-new")


def test_failures_are_one_paragraph_with_what_to_do(
    there: str, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("teragen", "1k", f"{there}/in")
    wrong = {
        "no such file or directory": f"{there}/missing",
        "no answer from 127.0.0.1:1": "hdfs://127.0.0.1:1/in",
        "no default file system is configured": "hdfs:///in",
    }
    for says, location in wrong.items():
        error = failure("teravalidate", location, status=2 if says.startswith("no d") else 1)
        assert says in error
        assert "What to do" in error or says == "no such file or directory"
    with monkeypatch.context() as changed:
        changed.setenv("HADOOP_USER_NAME", NOBODY)
        cluster.tell("mode", "755", "/" + there.rsplit("/", 1)[1])
        error = failure("teragen", "1k", f"{there}/out")
        assert "HDFS does not permit it" in error
        assert "HADOOP_USER_NAME" in error
    cluster.tell("space-quota", "1000000", "/" + there.rsplit("/", 1)[1])
    assert "quota" in failure("teragen", "30k", f"{there}/out")
    assert not is_there(f"{there}/out")


def test_the_default_file_system(there: str, cluster: Cluster, tmp_path: Path) -> None:
    settings(tmp_path / "conf", fs_defaultFS=f"hdfs://127.0.0.1:{cluster.port}")
    name = there.rsplit("/", 1)[1]
    run("teragen", "1k", f"hdfs:///{name}/in")
    assert files(f"{there}/in") == files(f"hdfs:///{name}/in")


def test_a_reader_reads_one_version_also_in_a_fork(there: str) -> None:
    run("teragen", "30k", f"{there}/in")
    Path("replace.py").write_text(
        "import os, subprocess, sys\nfrom gristmill._core import RangeReader\n"
        "reader = RangeReader(sys.argv[1])\n"
        "first = reader.read_at(0, 100)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(RangeReader(sys.argv[1]).read_at(0, 100) != first)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "subprocess.run(sys.argv[2:], check=True)\n"
        "reader.read_at(100, 100)\n"
    )
    replace = [GRISTMILL, "teragen", "30k", f"{there}/in", "--overwrite", "--skew"]
    done = subprocess.run(
        [sys.executable, "replace.py", f"{there}/in/part-m-00000", *replace],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "it was replaced while the job read it" in done.stderr
    assert f"{there}/in/part-m-00000" in done.stderr


def test_a_data_node_dies_while_it_is_read(there: str, cluster: Cluster) -> None:
    run("teragen", "300k", f"{there}/in", "--files", "2")
    run("teragen", "300k", "in", "--files", "2", "--no-sync")
    run("terasort", "in", "out", "--partitions", "3", "--no-sync")
    process = begun("terasort", f"{there}/in", "read", *RUNS, "--partitions", "3", "--no-sync")
    time.sleep(0.3)
    cluster.tell("stop-data-node")
    try:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert local(Path("read")) == local(Path("out"))
    finally:
        cluster.tell("start-data-node")


def test_a_data_node_dies_while_it_is_written_to(there: str, cluster: Cluster) -> None:
    """What the name node still believes to be alive is given for new blocks: attempts may fail."""
    run("teragen", "300k", "in", "--files", "2", "--no-sync")
    run("terasort", "in", "out", "--partitions", "3", "--no-sync")
    process = begun("terasort", "in", f"{there}/out", *RUNS, "--partitions", "3", "--history")
    while process.poll() is None and not is_there(f"{there}/out/.gristmill-staging-new"):
        time.sleep(0.002)
    cluster.tell("stop-data-node")
    try:
        _, errors = process.communicate(timeout=60)
    finally:
        cluster.tell("start-data-node")
    if process.returncode != 0:
        assert "data node" in errors
        assert not is_there(f"{there}/out")
        run("terasort", "in", f"{there}/out", *RUNS, "--partitions", "3")
    assert files(f"{there}/out") == local(Path("out"))
    assert nothing_staged(f"{there}/out")


def test_safe_mode_and_a_name_node_that_is_away(there: str, cluster: Cluster) -> None:
    run("teragen", "1k", f"{there}/in")
    cluster.tell("safe-mode", "ENTER")
    try:
        assert "safe mode" in failure("teragen", "1k", f"{there}/out")
    finally:
        cluster.tell("safe-mode", "LEAVE")
    process = begun("teragen", "3000k", f"{there}/out")
    while process.poll() is None and not is_there(f"{there}/out/.gristmill-staging-new"):
        time.sleep(0.002)
    cluster.tell("stop-name-node")
    try:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 1
        assert "no answer from" in errors
    finally:
        cluster.tell("start-name-node")
    assert not is_there(f"{there}/out/_SUCCESS")
    run("terasort", f"{there}/in", f"{there}/sorted")
