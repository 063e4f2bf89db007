"""Scripts over data in an object store: bytes, counters and words are those of a disk."""

import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from .harness import GRISTMILL, clean_environment, failure, run
from .resuming import kept, kill_when

WORDS = "the ox and the mill turn and turn\nthe wheel turns the stone\n" * 300


@pytest.fixture
def folder(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with inputs, which is both a disk's and a store's."""
    assert not home.exists()
    (tmp_path / "in").mkdir()
    for name in ("a-1", "a-2", "b-1", "_hidden"):
        (tmp_path / "in" / name).write_text(f"{name} {WORDS}")
    (tmp_path / "words.sh").write_text(
        "#!/bin/sh\n"
        'echo "reporter:counter:words,files,1" >&2\n'
        'case "$mapreduce_map_input_file-$mapreduce_map_input_start" in *b-1-0)\n'
        "while [ ! -e $GATE ]; do sleep .02; done;; esac\n"
        "tr ' ' '\\n'\n"
    )
    (tmp_path / "words.sh").chmod(0o755)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("GATE", str(tmp_path / "gate"))
    return tmp_path


def command(folder: Path, scheme: str, *more: str, reduces: int = 2) -> list[str]:
    inputs = [f"{scheme}{folder}/in/{name}" for name in ("a-*", "{b,c}-[0-9]")]
    return [
        *("streaming", "-D", "mapreduce.job.maps=6", "-files", str(folder / "words.sh")),
        *("-mapper", "words.sh", "-reducer", "uniq -c", "-numReduceTasks", str(reduces)),
        *("-input", inputs[0], "-input", inputs[1], "-output", f"{scheme}{folder}/out", *more),
    ]


def parts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("part-*")}


def counters(said: str) -> dict[str, str]:
    """Those that do not tell how long it took, or where bytes went."""
    found = dict(re.findall(r"^\t\t(\w+)=(\d+)$", said, re.MULTILINE))
    unlike = ("CPU", "MILLIS", "FILE_BYTES", "DEVICE", "STORE")
    return {name: value for name, value in found.items() if not any(map(name.count, unlike))}


def test_bytes_and_counters_are_those_of_a_disk(folder: Path) -> None:
    (folder / "gate").touch()
    local = run(*command(folder, "")).stderr
    (folder / "out").rename(folder / "wanted")
    there = run(*command(folder, "objects://")).stderr
    wanted = parts(folder / "wanted")
    assert len(wanted) == 2
    assert parts(folder / "out") == wanted
    assert counters(there) == counters(local)
    assert int(counters(there)["files"]) >= 3
    again = failure(*command(folder, "objects://"), status=5)
    assert f"objects://{folder}/out already exists" in again
    run(*command(folder, "objects://", "--overwrite"))
    assert parts(folder / "out") == wanted


def test_killed_and_resumed(folder: Path, home: Path) -> None:
    job = command(folder, "objects://", reduces=0)
    kill_when([*job], home, lambda events: kept(events, "work") >= 2)
    assert not list(folder.glob("out/part-*"))
    (folder / "gate").touch()
    run("resume", "last")
    there = parts(folder / "out")
    (folder / "out").rename(folder / "there")
    run(*command(folder, "", reduces=0))
    assert there == parts(folder / "out")


def test_scripts_are_told_where_their_input_is(folder: Path) -> None:
    top = f"objects://{folder}"
    options = ["-mapper", "env", "-numReduceTasks", "0"]
    run("streaming", *options, "-input", f"{top}/in/a-1", "-output", f"{top}/told")
    told = b"".join(parts(folder / "told").values()).decode()
    assert f"mapreduce_map_input_file={top}/in/a-1" in told
    assert f"mapreduce_output_fileoutputformat_outputdir={top}/told" in told


def test_files_of_a_store_are_shipped(folder: Path, home: Path) -> None:
    top = f"objects://{folder}"
    (folder / "upper.sh").write_text("#!/bin/sh\ncat $(dirname $0)/head - | tr a-z A-Z\n")
    (folder / "head").write_text("head\n")
    job = ["-files", f"{top}/upper.sh,{top}/head", "-mapper", "./upper.sh", "-numReduceTasks", "0"]
    for text in ("head", "another"):
        (folder / "head").write_text(f"{text}\n")
        run("streaming", *job, "-input", f"{top}/in/a-1", "-output", f"{text}")
        made = b"".join(parts(Path(text)).values())
        assert made.startswith(f"{text.upper()}\t\nA-1 THE OX".encode())
    assert len(list((home / "shipped").glob("*/upper.sh"))) == 1


def test_what_cannot_be_is_refused(folder: Path) -> None:
    top = f"objects://{folder}"
    job = ["streaming", "-mapper", "cat", "-output", f"{top}/no"]
    assert "does not exist" in failure(*job, "-input", f"{top}/nothing", status=5)
    assert "matches 0 files" in failure(*job, "-input", f"{top}/in/z*", status=5)
    assert "no gopher file system" in failure(*job, "-input", "gopher://a/b", status=2)
    for name, says in (("nothing", "no such file"), ("in", "it is a directory in a store")):
        assert says in failure(*job, "-input", f"{top}/in", "-files", f"{top}/{name}", status=2)
    total = ("-partitioner", "TotalOrderPartitioner", "-D")
    cuts = (*total, f"mapreduce.totalorderpartitioner.path={top}/in/a-1")
    refused = failure("streaming", *cuts[2:], *cuts[:2], *job[1:], "-input", f"{top}/in", status=2)
    assert "must be a local path" in refused
    assert not (folder / "no").exists()


def fs(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [GRISTMILL, "hadoop", "fs", *words],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env=clean_environment(),
    )


def test_hadoop_fs_works_in_stores(folder: Path) -> None:
    top = f"objects://{folder}/store"
    Path("a.txt").write_text("a\n")
    for words in (
        ("-mkdir", "-p", f"{top}/new"),
        ("-put", "a.txt", f"{top}/new/"),
        ("-put", str(folder / "in"), f"{top}/in"),
        ("-test", "-s", f"{top}/new/a.txt"),
        ("-test", "-d", f"{top}/new"),
        ("-touchz", f"{top}/new/empty"),
        ("-test", "-z", f"{top}/new/empty"),
        ("-get", f"{top}/in", "got"),
        ("-get", f"{top}/new/a*", "got"),
        ("-rm", "-r", f"{top}/in"),
    ):
        done = fs(*words)
        assert done.returncode == 0, (words, done.stderr)
    assert sorted(path.name for path in Path("got").iterdir()) == [
        "_hidden",
        "a-1",
        "a-2",
        "a.txt",
        "b-1",
    ]
    assert Path("got/a-1").read_bytes() == (folder / "in/a-1").read_bytes()
    assert fs("-cat", f"{top}/new/a.*").stdout == "a\n"
    listed = fs("-ls", "-R", top).stdout.splitlines()
    assert [line.split()[-1] for line in listed] == [
        f"{top}/new",
        f"{top}/new/a.txt",
        f"{top}/new/empty",
    ]
    for words, code, said in (
        (("-put", "a.txt", f"{top}/new"), 1, "File exists"),
        (("-cat", f"{top}/in"), 1, "No such file or directory"),
        (("-rm", f"{top}/new"), 1, "Is a directory"),
        (("-test", "-e", f"{top}/in"), 1, ""),
        (("-ls", "gopher://a/b"), 2, "no gopher file system"),
    ):
        done = fs(*words)
        assert done.returncode == code, (words, done.stderr)
        assert said in done.stderr


def test_hadoop_fs_does_the_rest_in_stores(folder: Path) -> None:
    top = f"objects://{folder}/store"
    assert fs("-put", "-", f"{top}/new/a.txt", stdin="piped\n" * 300).returncode == 0
    assert fs("-cat", f"{top}/new/a.txt").stdout == "piped\n" * 300
    assert fs("-head", f"{top}/new/a.txt").stdout == ("piped\n" * 300)[:1024]
    assert fs("-touch", f"{top}/new/b.txt").returncode == 0
    assert fs("-ls", "-h", f"{top}/new/a.txt").stdout.split()[4:6] == ["1.8", "K"]
    run("wordcount", f"{top}/new/a.txt", f"{top}/out")
    assert "_SUCCESS" in fs("-ls", f"{top}/out").stdout
    for command in ("-cat", "-text"):
        assert fs(command, f"{top}/out/*", f"{top}/out/_SUCCESS").stdout == "piped\t300\n"
    for words, said in (
        (("-put", "-", f"{top}/new/a.txt"), "File exists"),
        (("-put", "-", f"{top}/new"), "Is a directory"),
        (("-touch", f"{top}/new/a.txt"), "A store does not let its times be set"),
        (("-rmdir", f"{top}/new"), "Directory is not empty"),
        (("-rmdir", f"{top}/new/a.txt"), "Is not a directory"),
    ):
        done = fs(*words)
        assert done.returncode == 1, (words, done.stderr)
        assert said in done.stderr
    assert fs("-cat", f"{top}/new/*").stdout == "piped\n" * 300


def _has_begun(folder: Path) -> bool:
    with suppress(FileNotFoundError):  # a folder that was there for a moment
        return bool(list(folder.glob("work/.*/**/*")))
    return False


def test_a_job_that_is_ended_leaves_nothing(folder: Path) -> None:
    process = subprocess.Popen(
        [GRISTMILL, *command(folder, "objects://")],
        stderr=subprocess.PIPE,
        env=clean_environment(),
    )
    while not _has_begun(folder) and process.poll() is None:
        pass
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert not (folder / "out").exists()
