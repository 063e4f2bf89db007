"""Jobs from and to HDFS: the bytes are those of a job on a disk.

The server is Hadoop's MiniDFSCluster, on this machine, started once for all tests.
"""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gristmill import _core

from .harness import GRISTMILL, clean_environment, failure, report, run
from .hdfs_server import NOBODY, Cluster, file, files, is_there, local, nothing_staged, settings
from .own_code import Bench
from .resuming import killed_in_a_store

#: So little memory that 30 MB make runs.
RUNS = ("--memory", "39M", "--workers", "2")

#: One copy of each block: what these tests ask is the same with two, and slower.
ONE = ("--replication", "1")

KILLS = 3


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300,000 records in two files, `in`, and sorted in three, `out`; on the disk."""
    folder = tmp_path_factory.mktemp("generated")
    run("teragen", "300k", folder / "in", "--files", "2", "--no-sync")
    run("terasort", folder / "in", folder / "out", "--partitions", "3", "--no-sync")
    return folder


@pytest.mark.parametrize(
    "memory",
    [("--memory", "400M"), RUNS, ("--memory", "64M", "--runner", "processes")],
    ids=["memory", "runs", "processes"],
)
def test_terasort(memory: tuple[str, ...], generated: Path, there: str) -> None:
    wanted = local(generated / "out")
    run("teragen", "300k", f"{there}/deep/in", "--files", "2")
    assert files(f"{there}/deep/in") == local(generated / "in")
    command = ["terasort", f"{there}/deep/in", f"{there}/out", *memory, "--partitions", "3"]
    run(*command)
    assert files(f"{there}/out") == wanted
    assert "exists" in failure(*command)
    run(*command, "--overwrite", "--no-sync", *ONE)
    assert files(f"{there}/out") == wanted
    found = report("teravalidate", f"{there}/out", "--against", f"{there}/deep/in")
    assert found["records"] == 300_000
    assert nothing_staged(there, f"{there}/out", f"{there}/deep/in")


def test_overwrite_with_fewer_parts(there: str) -> None:
    run("teragen", "20k", f"{there}/in")
    for parts in ("4", "2"):
        run("terasort", f"{there}/in", f"{there}/out", "--partitions", parts, "--overwrite")
        assert len(files(f"{there}/out")) == int(parts)
    assert is_there(f"{there}/out/_SUCCESS")


def test_what_was_killed_between_two_renames_is_brought_to_its_end(
    there: str, cluster: Cluster
) -> None:
    folder = "/" + there.rsplit("/", 1)[1]
    command = ("terasort", f"{there}/in", f"{there}/out", "--partitions", "2")
    run("teragen", "10k", f"{there}/in")
    run(*command)
    old = files(f"{there}/out")
    run("terasort", f"{there}/in", f"{there}/new", "--partitions", "3")
    new = files(f"{there}/new")
    for kept, last in (("out", old), ("new", new)):
        # What is left beside a whole output is not believed; in the place of none it is the output.
        cluster.tell("rename", f"{folder}/out", f"{folder}/.out.gristmill-old")
        cluster.tell("rename", f"{folder}/new", f"{folder}/.out.gristmill-new")
        if kept == "out":
            cluster.tell("rename", f"{folder}/.out.gristmill-old", f"{folder}/out")
        assert "exists" in failure(*command)
        assert files(f"{there}/out") == last
        assert not beside(f"{there}/out")
        run("terasort", f"{there}/in", f"{there}/new", "--partitions", "3")
    run(*command, "--overwrite")
    assert files(f"{there}/out") == old
    assert not beside(f"{there}/out")


@pytest.mark.parametrize("parents", ["755", "1777"], ids=["closed", "sticky"])
def test_overwrite_where_the_parent_is_another_users(
    parents: str,
    generated: Path,
    there: str,
    cluster: Cluster,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The files are replaced one by one; until the new ones are whole, the old output stays."""
    folder, out = "/" + there.rsplit("/", 1)[1], f"{there}/out"
    run("teragen", "1k", out, "--files", "4")
    cluster.tell("mode", "777", f"{folder}/out")
    cluster.tell("mode", parents, folder)
    monkeypatch.setenv("HADOOP_USER_NAME", NOBODY)
    old, wanted = files(out), local(generated / "out")
    command = ["terasort", generated / "in", out, *RUNS, *ONE, "--partitions", "3"]
    command += ["--overwrite", "--history"]
    process = begun(*command)
    while process.poll() is None and not is_there(f"{out}/.gristmill-staging"):
        time.sleep(0.002)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert files(out) == old
    assert is_there(f"{out}/_SUCCESS")
    assert nothing_staged(out)

    def every_part_is_whole() -> None:
        if is_there(f"{out}/_SUCCESS"):
            assert files(out) in (old, wanted)
        assert not beside(out)

    shutil.rmtree(home)
    killed_in_a_store(begun, command, home, kills=KILLS, after=every_part_is_whole)
    assert files(out) == wanted
    assert is_there(f"{out}/_SUCCESS")
    assert nothing_staged(out)
    assert not beside(out)


def beside(output: str) -> list[str]:
    """What lies beside an output that is being replaced."""
    folder, _, name = output.rpartition("/")
    names = (f"{folder}/.{name}.gristmill-{which}" for which in ("new", "old"))
    return [path for path in names if is_there(path)]


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


def test_requests_are_counted(there: str) -> None:
    """Calls to the name node, and a read of each block of 1 MB."""
    requests: list[int] = []
    for records in ("20k", "120k"):
        data = f"{there}/{records}"
        run("teragen", records, data, "--files", "1")
        run("terasort", data, f"{there}/{records}-out", "--partitions", "1")
        done = report("teravalidate", f"{there}/{records}-out", "--split-size", "64M")
        requests.append(done["counters"]["STORE_IO_REQUEST"])
    few, many = requests
    assert few >= 5
    assert few + 10 <= many <= few + 30


def test_the_places_of_blocks(there: str) -> None:
    """The name node says which data nodes hold them; the client of HDFS does not."""
    run("teragen", "30k", f"{there}/data", "--files", "1")
    found = _core.block_places(f"{there}/data/part-m-00000")
    assert [(start, end) for start, end, _ in found] == [
        (0, 1 << 20),
        (1 << 20, 2 << 20),
        (2 << 20, 3_000_000),
    ]
    for _, _, hosts in found:
        assert [address for address, _ in hosts] == ["127.0.0.1"] * 2
    assert _core.block_places(f"{there}/none") == []
    assert _core.block_places("hdfs://127.0.0.1:1/a") == []


def test_blocks_of_the_output(there: str, cluster: Cluster, tmp_path: Path) -> None:
    def blocks(name: str) -> list[str]:
        return cluster.tell("blocks", f"/{there.rsplit('/', 1)[1]}/{name}")

    run("teragen", "1k", f"{there}/plain")
    assert blocks("plain/part-m-00000") == ["2", "1048576"], "as the name node has it"
    wanted = ("--replication", "1", "--block-size", "64KiB")
    for command in (
        ("teragen", "1k", f"{there}/made"),
        ("terasort", f"{there}/made", f"{there}/processes", "--runner", "processes"),
        ("sort", "--format", "fixed:100", f"{there}/made", "-o", f"{there}/one"),
        ("wordcount", f"{there}/made", f"{there}/words"),
    ):
        run(*command, *wanted)
    Path("job.py").write_text(
        "import sys\nimport gristmill as gm\n"
        "text = gm.text(sys.argv[1], errors='replace')\n"
        "first = gm.Job(text, map=lambda line: [(line[:1], 1)], reduce=gm.sum())\n"
        "job = gm.Job(first, map=lambda pair: [pair], reduce=gm.sum(),\n"
        "             output=gm.tsv(sys.argv[2]), parts=1)\n"
        "job.run(replication=1, block_size=65536)\n"
    )
    subprocess.run([sys.executable, "job.py", f"{there}/made", f"{there}/job"], check=True)
    options = ["-D", "dfs.replication=1", "-D", "dfs.blocksize=64k", "-mapper", "cat"]
    run("streaming", *options, "-input", f"{there}/made", "-output", f"{there}/cat")
    for name in ("made/part-m-00000", "processes/part-r-00000", "one", "words/part-r-00000"):
        assert blocks(name) == ["1", "65536"], name
    (counts,) = files(f"{there}/job")
    assert blocks(f"job/{counts}") == blocks("cat/part-00000") == ["1", "65536"]
    settings(tmp_path / "conf", {"dfs.replication": 1, "dfs.blocksize": "128k"})
    run("teragen", "1k", f"{there}/configured", "--block-size", "256KiB")
    run("teragen", "1k", f"{there}/configured-too")
    assert blocks("configured/part-m-00000") == ["1", "262144"]
    assert blocks("configured-too/part-m-00000") == ["1", "131072"]


@pytest.mark.parametrize(
    ("output", "option", "says"),
    [
        ("local", ("--replication", "1"), "--replication is of outputs in HDFS"),
        ("s3://bucket/out", ("--block-size", "1MiB"), "--block-size is of outputs in HDFS"),
        ("hdfs://127.0.0.1:1/out", ("--block-size", "1000"), "512 does not divide"),
        ("hdfs://127.0.0.1:1/out", ("--replication", "70000"), "from 1 to 32767"),
    ],
)
def test_blocks_that_no_output_can_have(output: str, option: tuple[str, str], says: str) -> None:
    assert says in failure("teragen", "1k", output, *option, status=2)
    assert not Path(output).exists()


@pytest.mark.parametrize("job", ["memory", "runs"])
def test_killed_at_any_moment(job: str, generated: Path, there: str, home: Path) -> None:
    wanted = local(generated / "out")
    memory = {"memory": ("--memory", "400M"), "runs": RUNS}[job]
    command = ["terasort", generated / "in", f"{there}/out", *memory, *ONE, "--partitions", "3"]

    old = dict[str, bytes]()
    if job == "memory":
        command.append("--overwrite")
        # On a busy machine it takes so long that it would leave a history, which is then the last.
        run("teragen", "1k", f"{there}/out", "--files", "2", GRISTMILL_HOME=str(home / "of-old"))
        old = files(f"{there}/out")

    def every_part_is_whole() -> None:
        if is_there(f"{there}/out/_SUCCESS"):
            assert files(f"{there}/out") in (old, wanted)
        elif is_there(f"{there}/out"):
            assert not old, "the old output stays until it is replaced"
            found = files(f"{there}/out")
            assert all(wanted[name] == data for name, data in found.items())
        else:
            assert not old or len(beside(f"{there}/out")) == 2

    command.append("--history")
    killed_in_a_store(begun, command, home, kills=KILLS, after=every_part_is_whole)
    assert files(f"{there}/out") == wanted
    assert nothing_staged(f"{there}/out")
    assert not beside(f"{there}/out")


def begun(*command: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [GRISTMILL, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=clean_environment(),
    )


def wait_until_staged(process: subprocess.Popen[str], output: str) -> None:
    while process.poll() is None and not is_there(f"{output}/.gristmill-staging-new"):
        time.sleep(0.002)


def test_a_job_that_fails_or_is_ended_leaves_nothing(generated: Path, there: str) -> None:
    command = ["terasort", generated / "in", f"{there}/out", *RUNS, *ONE, "--partitions", "3"]
    for end in (signal.SIGTERM, signal.SIGKILL):
        process = begun(*command, "--history")
        wait_until_staged(process, f"{there}/out")
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
    settings(tmp_path / "conf", {"fs.defaultFS": f"hdfs://127.0.0.1:{cluster.port}"})
    name = there.rsplit("/", 1)[1]
    run("teragen", "1k", f"hdfs:///{name}/in")
    run("teragen", "1k", "in")
    assert files(f"{there}/in") == local(Path("in"))


def test_a_reader_reads_one_version_also_in_a_fork(there: str) -> None:
    run("teragen", "30k", f"{there}/in")
    Path("replace.py").write_text(
        "import os, subprocess, sys, time\nfrom gristmill._core import RangeReader\n"
        "reader = RangeReader(sys.argv[1])\n"
        "first = reader.read_at(0, 100)\n"
        "began = time.monotonic()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    for at in range(50):\n"
        "        same = RangeReader(sys.argv[1]).read_at(0, 100) == first\n"
        "        assert same and time.monotonic() - began < 2\n"
        "    os._exit(0)\n"
        "for at in range(50):\n"
        "    assert reader.read_at(0, 100) == first\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "assert reader.read_at(0, 100) == first and time.monotonic() - began < 4\n"
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


def test_a_data_node_dies_while_it_is_read_and_while_it_is_written_to(
    generated: Path, there: str, cluster: Cluster
) -> None:
    """What the name node still believes to be alive is given for new blocks: attempts may fail."""
    wanted = local(generated / "out")
    run("teragen", "300k", f"{there}/in", "--files", "2")
    reads = ["terasort", f"{there}/in", "read", *RUNS, "--partitions", "3", "--no-sync"]
    writes = ["terasort", generated / "in", f"{there}/out", *RUNS, "--partitions", "3"]
    writing = begun(*writes, "--history")
    wait_until_staged(writing, f"{there}/out")
    reading = begun(*reads)
    time.sleep(0.3)
    cluster.tell("stop-data-node")
    try:
        _, errors = reading.communicate(timeout=60)
        assert reading.returncode == 0, errors
        _, errors = writing.communicate(timeout=60)
    finally:
        cluster.tell("start-data-node")
    assert local(Path("read")) == wanted
    if writing.returncode != 0:
        assert "data node" in errors
        assert not is_there(f"{there}/out")
        run(*writes)
    assert files(f"{there}/out") == wanted
    assert nothing_staged(f"{there}/out")


def test_safe_mode_and_a_name_node_that_is_away(there: str, cluster: Cluster) -> None:
    run("teragen", "1k", f"{there}/in")
    cluster.tell("safe-mode", "ENTER")
    try:
        process = begun("teragen", "1k", f"{there}/waits")
        time.sleep(0.6)
        assert process.poll() is None
    finally:
        cluster.tell("safe-mode", "LEAVE")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    held, here = Path("held.sh").absolute(), Path.cwd()
    wait = f"while [ ! -e {here}/gate ]; do sleep .02; done"
    held.write_text(f"#!/bin/sh\ntouch {here}/begun\n{wait}\ncat\n")
    held.chmod(0o755)
    job = ["streaming", "-mapper", held, "-numReduceTasks", "0"]
    process = begun(*job, "-input", f"{there}/in", "-output", f"{there}/out")
    while process.poll() is None and not Path("begun").exists():
        time.sleep(0.002)
    cluster.tell("stop-name-node")
    try:
        Path("gate").touch()
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 1
        assert "no answer from" in errors
    finally:
        cluster.tell("start-name-node")
    assert not is_there(f"{there}/out/_SUCCESS")
    run("terasort", f"{there}/in", f"{there}/sorted")


@pytest.mark.usefixtures("there")
def test_a_name_node_that_stands_in(generated: Path, cluster: Cluster, tmp_path: Path) -> None:
    """A job goes on when its active name node stops and the other one becomes active."""
    first, second = cluster.tell("start-pair")
    try:
        service = {
            "dfs.nameservices": "mill",
            "dfs.ha.namenodes.mill": "nn1,nn2",
            "dfs.namenode.rpc-address.mill.nn1": f"127.0.0.1:{first}",
            "dfs.namenode.rpc-address.mill.nn2": f"127.0.0.1:{second}",
            "dfs.client.failover.max.attempts": 15,
            "dfs.client.failover.sleep.base.millis": 50,
            "dfs.client.failover.sleep.max.millis": 500,
        }
        settings(tmp_path / "conf", service)
        run("teragen", "300k", "hdfs://mill/in", "--files", "2", *ONE)
        process = begun("terasort", "hdfs://mill/in", "hdfs://mill/out", *RUNS, "--partitions", "3")
        near = f"hdfs://127.0.0.1:{first}/out"
        wait_until_staged(process, near)
        cluster.tell("fail-over")
        _, errors = process.communicate(timeout=90)
        assert process.returncode == 0, errors
        assert files(f"hdfs://127.0.0.1:{second}/out") == local(generated / "out")
        found = report("teravalidate", "hdfs://mill/out", "--against", "hdfs://mill/in")
        assert found["records"] == 300_000
    finally:
        cluster.tell("stop-pair")
