"""`gristmill hadoop fs`: on local files, what Hadoop's own does, and in its words if it fails."""

import bz2
import gzip
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest


def fs(home: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gristmill", "hadoop", "fs", *map(str, words)]
    return subprocess.run(
        command, cwd=home, capture_output=True, text=True, check=False, timeout=100
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "not.gz").write_bytes(b"\x1f\x8b damaged")
    return tmp_path


def test_uris_of_files_are_paths_in_every_command(home: Path) -> None:
    base = f"file://{home}"
    for words in (
        ("-mkdir", "-p", f"{base}/made/below"),
        ("-put", f"{base}/a.txt", f"{base}/made/below"),
        ("-test", "-s", f"{base}/made/below/a.txt"),
        ("-touchz", f"{base}/made/new"),
        ("-get", f"{base}/made/below/a.txt", f"{base}/got.txt"),
        ("-rm", "-r", f"{base}/made/below"),
    ):
        done = fs(home, *words)
        assert done.returncode == 0, (words, done.stderr)
    assert sorted(path.name for path in home.iterdir()) == [
        "a.txt",
        "empty",
        "folder",
        "got.txt",
        "made",
        "not.gz",
    ]
    assert [path.name for path in (home / "made").iterdir()] == ["new"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["-rm", "folder"], 1, "rm: `folder': Is a directory"),
        (["-cat", "folder"], 1, "cat: `folder': Is a directory"),
        (["-cat", "not-there"], 1, "cat: `not-there': No such file or directory"),
        (["-mkdir", "folder"], 1, "mkdir: `folder': File exists"),
        (["-mkdir", "a.txt/below"], 1, "mkdir: `a.txt/below': Not a directory"),
        (["-put", "a.txt", "a.txt"], 1, "put: `a.txt': File exists"),
        (["-put", "-f", "a.txt", "a.txt"], 1, "`a.txt' to `a.txt': are identical"),
        (["-put", "a.txt"], 2, "-put needs a source and a target"),
        (["-cat"], 2, "-cat needs a path"),
        (["-ls", "hdfs://127.0.0.1:1/user"], 1, "no answer from 127.0.0.1:1"),
        (["-chown", "me", "a.txt"], 2, "fs -chown is not supported. What to do: use chown itself"),
        (["-appendToFile", "a.txt", "b"], 2, "fs -appendToFile is not supported"),
        (["-setrep", "3", "a.txt"], 0, "setrep: has no effect here: a disk has one copy"),
        (["-expunge"], 0, "expunge: has no effect here: there is no trash"),
        (["-frob", "a.txt"], 2, "there is no command fs '-frob'"),
        (["-tail", "folder"], 1, "tail: `folder': Is a directory"),
        (["-text", "not.gz"], 1, "text: cannot"),
        (["-getmerge", "not-there", "a.txt"], 1, "getmerge: `not-there': No such file"),
        (["-test", "-s", "empty"], 1, ""),
        (["-test", "-z", "a.txt"], 1, ""),
        (["-touchz", "a.txt"], 1, "touchz: `a.txt': Not a zero-length file"),
        (["-rm", "-r", ""], 2, "a path is empty"),
        (["-rm", "-r", "."], 1, "rm: `.': It holds the current directory"),
        (["-rm", "-r", "folder/../.."], 1, "It holds the current directory"),
        (["-ls", "-h", "folder"], 2, "fs -ls has no option -h here"),
        (["-put", "-f", "a.txt", "empty", "not.gz"], 1, "`not.gz': Is not a directory"),
        (["-get", "-f", "a.txt", "empty", "new"], 1, "`new': No such file or directory"),
        (["-moveFromLocal", "-f", "a.txt", "empty", "new"], 1, "`new': No such file"),
    ],
)
def test_what_fails_is_said_in_hadoops_words(
    home: Path, words: list[str], code: int, said: str
) -> None:
    done = fs(home, *words)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "defect" not in done.stderr
    assert (home / "a.txt").read_text() == "a\n"


def test_the_page_has_every_command() -> None:
    page = (Path(__file__).parents[2] / "docs/from-hadoop.md").read_text()
    shown = subprocess.run(
        [sys.executable, "-m", "gristmill", "hadoop", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    commands = re.findall("-[a-zA-Z]+", shown.rpartition("The commands are:")[2])
    assert len(commands) > 20
    assert [name for name in commands if f"`{name}`" not in page] == []


def test_files_are_merged_and_moved(home: Path) -> None:
    for name, content in (("part-1", "b\n"), ("part-0", "a\n"), ("part-2", "")):
        (home / "folder" / name).write_text(content)
    (home / "folder" / "below").mkdir()
    (home / "folder" / "_SUCCESS").write_text("the proof")
    assert fs(home, "-getmerge", "folder", "merged").returncode == 0
    assert (home / "merged").read_text() == "a\nb\n"
    assert fs(home, "-getmerge", "-nl", "-skip-empty-file", "folder", "merged").returncode == 0
    assert (home / "merged").read_text() == "a\n\nb\n\n"
    assert fs(home, "-moveFromLocal", "a.txt", "folder").returncode == 0
    assert not (home / "a.txt").exists()
    assert (home / "folder/a.txt").read_text() == "a\n"


def test_what_is_known_of_files(home: Path) -> None:
    (home / "folder" / "much").write_text("x" * 2000 + "y" * 1024)
    (home / "folder" / "below").mkdir()
    assert fs(home, "-tail", "folder/much").stdout == "y" * 1024
    assert fs(home, "-count", "folder").stdout.split() == ["2", "1", "3024", "folder"]
    assert fs(home, "-dus", "folder").stdout.split() == ["3024", "3024", "folder"]
    os.utime(home / "a.txt", (0, 0))
    assert fs(home, "-stat", "a.txt").stdout == "1970-01-01 00:00:00\n"
    assert fs(home, "-stat", "%F of %b: %n %Y%%", "a.txt").stdout == "regular file of 2: a.txt 0%\n"


def test_a_listing_has_what_is_there(home: Path) -> None:
    (home / "folder" / "one").touch()
    (home / "folder" / "two").touch()
    done = fs(home, "-ls", "folder", "not-there", f"file://{home}/a.txt")
    assert (done.returncode, done.stderr) == (1, "ls: `not-there': No such file or directory\n")
    lines = done.stdout.splitlines()
    assert lines[0] == "Found 2 items"
    names = ["folder/one", "folder/two", f"file://{home}/a.txt"]
    assert [line.split()[-1] for line in lines[1:]] == names
    assert "Found" not in fs(home, "-ls", "-R", "folder").stdout


def test_a_listing_goes_on_behind_a_link_that_leads_nowhere(home: Path) -> None:
    (home / "folder" / "link").symlink_to("nowhere")
    (home / "folder" / "more").write_text("x")
    names = [line.split()[-1] for line in fs(home, "-ls", "folder").stdout.splitlines()[1:]]
    assert names == ["folder/link", "folder/more"]
    assert fs(home, "-ls", "-d", "folder").stdout.split()[-1] == "folder"
    (home / "folder" / "link").unlink()
    (home / "folder" / "below").mkdir()
    assert fs(home, "-du", "folder").stdout == "0  0  folder/below\n1  1  folder/more\n"
    assert fs(home, "-du", "-s", "folder").stdout == "1  1  folder\n"


def test_the_folder_of_hdfs_is_made(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRISTMILL_HOME", str(home / "kept"))
    assert fs(home, "-ls", "hdfs:///").returncode == 0
    assert fs(home, "-put", "a.txt", "hdfs:///").returncode == 0
    assert fs(home, "-cat", "hdfs:///a.txt").stdout == "a\n"


def test_paths_of_hdfs_keep_their_scheme(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRISTMILL_HOME", str(home / "kept"))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    assert fs(home, "-mkdir", "-p", "hdfs:///user/me").returncode == 0
    assert fs(home, "-put", "a.txt", "hdfs:///user/me").returncode == 0
    assert (home / "kept/hdfs/user/me/a.txt").exists()
    for given, name in (
        ("hdfs:///user/me", "hdfs:///user/me/a.txt"),
        ("hdfs:/", "hdfs:///user"),
    ):
        assert fs(home, "-ls", given).stdout.split()[-1] == name
    assert "`hdfs:///none': No such file" in fs(home, "-cat", "hdfs:///none").stderr


def test_text_is_decoded(home: Path) -> None:
    written = {
        "a.gz": gzip.compress(b"gz\n"),
        "a.bz2": bz2.compress(b"bz2\n"),
        "a.deflate": zlib.compress(b"deflate\n"),
        "no-suffix": gzip.compress(b"by magic\n"),
    }
    for name, data in written.items():
        (home / name).write_bytes(data)
    words = ("a.gz", "a.bz2", "a.deflate", "no-suffix", "a.txt")
    done = fs(home, "-text", *words)
    assert (done.returncode, done.stdout) == (0, "gz\nbz2\ndeflate\nby magic\na\n"), done.stderr


def test_text_of_a_sequence_file_is_keys_and_values(home: Path) -> None:
    (home / "in.txt").write_text("k\tv w\nl\tx\n")
    command = [sys.executable, "-m", "gristmill", "streaming", "-input", "in.txt", "-output", "out"]
    command += ["-mapper", "cat", "-outputformat", "SequenceFileOutputFormat"]
    subprocess.run(command, cwd=home, check=True, capture_output=True, timeout=100)
    (home / "odd,{name}*").write_bytes((home / "out/part-00000").read_bytes())
    for name in ("out/part-00000", "odd,{name}*"):
        literal = name.replace("{", "\\{").replace("}", "\\}").replace("*", "\\*")
        done = fs(home, "-text", literal)
        assert (done.returncode, done.stdout) == (0, "k\tv w\nl\tx\n"), done.stderr
