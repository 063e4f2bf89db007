"""`gristmill hadoop fs`: on local files, what Hadoop's own does, and in its words if it fails."""

import bz2
import grp
import gzip
import os
import pwd
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from gristmill.cli.streaming import fs_copy, hadoop_shim
from gristmill.locations import open_read

from .hadoop_fs import fs, home

__all__ = ["home"]


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
        (["-du", "-x", "folder"], 2, "fs -du has no option -x here; it has -s, -h. What to do: s"),
        (["-head", "-x", "a.txt"], 2, "fs -head has no option -x here: it takes none. What to do"),
        (["-rmdir", "--force", "folder"], 2, "fs -rmdir has no option --force here"),
        (["-rmdir", "a.txt"], 1, "rmdir: `a.txt': Is not a directory\n"),
        (["-head", "folder"], 1, "head: `folder': Is a directory"),
        (["-put", "-", "folder"], 1, "put: `folder': Is a directory"),
        (["-put", "-", "a.txt"], 1, "put: `a.txt': File exists"),
        (["-put", "-", "nodir/y"], 1, "put: `nodir': No such file or directory\n"),
        (["-put", "-f", "a.txt", "empty", "not.gz"], 1, "`not.gz': Is not a directory"),
        (["-get", "-f", "a.txt", "empty", "new"], 1, "`new': No such file or directory"),
        (["-moveFromLocal", "-f", "a.txt", "empty", "new"], 1, "`new': No such file"),
        (["-put", "a.txt", "nodir/y"], 1, "put: `nodir': No such file or directory\n"),
        (["-put", "folder", "nodir/y"], 1, "put: `nodir': No such file or directory\n"),
        (["-cp", "a.txt", "empty/y"], 1, "cp: `empty': Is not a directory\n"),
        (["-mv", "folder", "nodir/y"], 1, "mv: `nodir': No such file or directory\n"),
        (["-getmerge", "a.txt", "nodir/y"], 1, "getmerge: `nodir': No such file or directory\n"),
        (["-getmerge", "a.txt", "folder"], 1, "getmerge: `folder': Is a directory\n"),
        (["-put", "a.txt", "y" * 250], 1, f"put: `{'y' * 250}': File name too long\n"),
        (["-rm", "not-there"], 1, "rm: `not-there': No such file or directory\n"),
        (["-rm", "gopher://a/b"], 2, "gristmill hadoop: fs gopher://a/b: there is no gopher"),
    ],
)
def test_what_fails_is_said_in_hadoops_words(
    home: Path, words: list[str], code: int, said: str
) -> None:
    done = fs(home, *words)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "defect" not in done.stderr
    assert "_COPYING_" not in done.stderr
    assert not list(home.rglob("*_COPYING_"))
    assert not (home / "nodir").exists()
    assert (home / "a.txt").read_text() == "a\n"


@pytest.mark.parametrize("options", [[], ["-r"], ["-f"], ["-r", "-f"]])
def test_what_cannot_be_removed_keeps_nothing_else(home: Path, options: list[str]) -> None:
    (home / "folder" / "one").touch()
    done = fs(home, "-rm", *options, "a.txt", "not-there", "folder", "empty")
    stays = [] if "-r" in options else ["rm: `folder': Is a directory"]
    missing = [] if "-f" in options else ["rm: `not-there': No such file or directory"]
    assert done.stderr.splitlines() == [*missing, *stays]
    assert done.returncode == bool(stays or missing)
    left = sorted(path.name for path in home.iterdir())
    assert left == [*(["folder"] if stays else []), "not.gz"]


def test_a_directory_among_what_a_glob_leads_to_keeps_nothing_else(home: Path) -> None:
    done = fs(home, "-rm", "[a-z]*")
    assert (done.returncode, done.stderr) == (1, "rm: `folder': Is a directory\n")
    assert [path.name for path in home.iterdir()] == ["folder"]


def test_the_page_has_every_command() -> None:
    page = (Path(__file__).parents[2] / "docs/from-hadoop.md").read_text()
    shown = subprocess.run(
        [sys.executable, "-m", "gristmill", "hadoop", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    commands = re.findall(r"(?m)^      (-[a-zA-Z]+)", shown.rpartition("The commands are")[2])
    assert len(commands) > 20
    assert [name for name in commands if f"`{name}`" not in page] == []


def test_files_are_merged_and_moved(home: Path) -> None:
    for name, content in (("part-1", "b\n"), ("part-0", "a\n"), ("part-2", "")):
        (home / "folder" / name).write_text(content)
    (home / "folder" / "below").mkdir()
    (home / "folder" / "_SUCCESS").write_text("the proof")
    (home / "folder" / ".part-1.crc").write_text("a checksum of Hadoop's")
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


def test_sizes_are_readable(home: Path) -> None:
    (home / "folder" / "much").write_text("x" * 1280)
    (home / "folder" / "more").write_text("x" * 2048)
    shown = fs(home, "-du", "-h", "folder").stdout
    assert shown == "2 K  2 K  folder/more\n1.3 K  1.3 K  folder/much\n"
    assert fs(home, "-du", "-s", "-h", "folder").stdout == "3.3 K  3.3 K  folder\n"
    assert fs(home, "-count", "-h", "folder").stdout.split() == ["1", "2", "3.3", "K", "folder"]
    lines = fs(home, "-ls", "-h", "folder").stdout.splitlines()
    assert [line.split()[4:6] for line in lines[1:]] == [["2", "K"], ["1.3", "K"]]


def test_without_a_path_it_is_the_folder_where_relative_paths_begin(home: Path) -> None:
    (home / "folder" / "below").write_text("x")
    for command in ("-ls", "-du", "-count"):
        done = fs(home / "folder", command)
        assert done.returncode == 0, done.stderr
        assert done.stdout == fs(home / "folder", command, ".").stdout
    assert fs(home / "folder", "-ls").stdout.split()[-1] == "below"


def test_a_listing_says_whose_files_are(home: Path) -> None:
    (home / "a.txt").chmod(0o640)
    words = fs(home, "-ls", "a.txt").stdout.split()
    found = (home / "a.txt").stat()
    owner, group = pwd.getpwuid(found.st_uid).pw_name, grp.getgrgid(found.st_gid).gr_name
    assert words[:4] == ["-rw-r-----", "1", owner, group]


def test_who_has_no_name_is_a_number(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unknown(number: int) -> None:
        raise KeyError(number)

    found = (home / "a.txt").stat()
    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.setattr("grp.getgrgid", unknown)
    monkeypatch.chdir(home)
    assert hadoop_shim.main(["fs", "-ls", "a.txt"]) == 0
    assert capsys.readouterr().out.split()[2:4] == [str(found.st_uid), str(found.st_gid)]


def test_standard_input_is_put(home: Path) -> None:
    command = [sys.executable, "-m", "gristmill", "hadoop", "fs", "-put", "-f", "-", "a.txt"]
    data = b"b\0\n" * 500_000
    done = subprocess.run(command, cwd=home, input=data, check=False, timeout=100)
    assert done.returncode == 0
    assert (home / "a.txt").read_bytes() == data
    assert not list(home.rglob("*_COPYING_"))


def test_only_empty_directories_go_with_rmdir(home: Path) -> None:
    (home / "full").mkdir()
    (home / "full" / "file").touch()
    done = fs(home, "-rmdir", "full")
    assert (done.returncode, done.stderr) == (1, "rmdir: `full': Directory is not empty\n")
    assert fs(home, "-rmdir", "--ignore-fail-on-non-empty", "full", "folder").returncode == 0
    assert (home / "full" / "file").exists()
    assert not (home / "folder").exists()


def test_a_file_begins_with_its_head_and_is_touched(home: Path) -> None:
    (home / "much").write_text("x" * 1024 + "y")
    assert fs(home, "-head", "much").stdout == "x" * 1024
    os.utime(home / "a.txt", (0, 0))
    assert fs(home, "-touch", "a.txt", "new").returncode == 0
    assert (home / "a.txt").stat().st_mtime > 0
    assert (home / "a.txt").read_text() == "a\n"
    assert (home / "new").read_bytes() == b""


@pytest.fixture
def output(home: Path) -> Path:
    """An output of Gristmill, with its proof."""
    command = [sys.executable, "-m", "gristmill", "wordcount", "a.txt", "out"]
    subprocess.run(command, cwd=home, check=True, capture_output=True, timeout=100)
    assert (home / "out/_SUCCESS").stat().st_size > 0
    return home / "out"


def test_a_proof_does_not_get_into_data(home: Path, output: Path) -> None:
    names = [f"out/{path.name}" for path in sorted(output.iterdir())]
    assert "out/_SUCCESS" in names
    for given in (names, ["out/*"], ["out/part-r-00000"]):
        for command in ("-cat", "-text"):
            assert fs(home, command, *given).stdout == "a\t1\n"
        assert fs(home, "-getmerge", *given, "merged").returncode == 0
        assert (home / "merged").read_text() == "a\t1\n"
    assert fs(home, "-cat", "out/_SUCCESS").stdout == ""
    counted = fs(home, "-count", "out").stdout.split()
    assert counted == ["1", "2", str(4 + (output / "_SUCCESS").stat().st_size), "out"]


def test_another_file_of_that_name_is_data(home: Path) -> None:
    (home / "folder" / "_SUCCESS").write_text("data\n")
    for command in ("-cat", "-text"):
        assert fs(home, command, "folder/_SUCCESS").stdout == "data\n"
    assert fs(home, "-getmerge", "folder/_SUCCESS", "merged").returncode == 0
    assert (home / "merged").read_text() == "data\n"


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


@pytest.fixture
def vanishing(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which `gone` vanishes when it is listed, and `soon` before it can be read."""
    folder = home / "vanishing"
    for file in ("gone/file", "soon/file", "stays/gone", "stays/text"):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("x\n")
    listed = Path.iterdir

    def iterdir(path: Path) -> Iterator[Path]:
        if path.name == "soon":
            remove(path)
        for child in list(listed(path)):
            if child.name == "gone":
                remove(child)
            yield child

    def remove(path: Path) -> None:
        subprocess.run(["rm", "-r", path], check=True)

    monkeypatch.chdir(home)
    monkeypatch.setattr(Path, "iterdir", iterdir)
    return folder


def test_a_listing_goes_on_behind_what_vanishes(
    vanishing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hadoop_shim.main(["fs", "-ls", "vanishing"]) == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert (lines[0], [line.split()[-1] for line in lines[1:]], said.err) == (
        "Found 2 items",
        ["vanishing/soon", "vanishing/stays"],
        "",
    )
    assert hadoop_shim.main(["fs", "-count", "vanishing"]) == 0
    assert capsys.readouterr().out.split() == ["3", "1", "2", "vanishing"]
    (vanishing / "soon").mkdir()
    assert hadoop_shim.main(["fs", "-ls", "-R", "vanishing"]) == 0
    said = capsys.readouterr()
    names = [line.split()[-1] for line in said.out.splitlines()]
    assert (names, said.err) == (["vanishing/stays", "vanishing/stays/text"], "")


def test_a_merge_is_of_the_files_that_stay(
    vanishing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hadoop_shim.main(["fs", "-getmerge", str(vanishing / "stays"), "merged"]) == 0
    assert capsys.readouterr().err == ""
    assert Path("merged").read_text() == "x\n"


def test_a_file_that_vanishes_when_it_is_to_be_merged_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A merge without it would be no merge: what was there stays."""
    (home / "folder" / "one").write_text("x")
    (home / "folder" / "two").write_text("x")

    def vanished(path: str) -> BinaryIO:
        (home / "folder" / "two").unlink(missing_ok=True)
        return open_read(path)

    monkeypatch.chdir(home)
    monkeypatch.setattr(f"{fs_copy.__name__}.open_read", vanished)
    assert hadoop_shim.main(["fs", "-getmerge", "folder", "a.txt"]) == 1
    said = capsys.readouterr().err
    assert said == "getmerge: `folder/two': No such file or directory\n"
    assert Path("a.txt").read_text() == "a\n"
    assert not list(home.rglob("*_COPYING_"))


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
