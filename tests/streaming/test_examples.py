"""Hadoop's examples by `gristmill hadoop jar`: its arguments, and what comes of them."""

import subprocess
import sys
from pathlib import Path

import pytest

JAR = "lib/hadoop-mapreduce-examples-3.4.2.jar"


def jar(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gristmill", "hadoop", "jar", *words]
    return subprocess.run(
        command, cwd=home, capture_output=True, text=True, check=False, timeout=100
    )


def example(home: Path, *words: str) -> str:
    done = jar(home, JAR, *words)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRISTMILL_HOME", str(tmp_path / "kept"))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    (tmp_path / "in.txt").write_text("to be or not to be\n")
    return tmp_path


def test_words_are_counted_into_as_many_parts_as_there_are_reduces(home: Path) -> None:
    example(home, "wordcount", "in.txt", f"file://{home}/in.txt", "hdfs:///counts")
    parts = sorted((home / "kept/hdfs/counts").glob("part-*"))
    assert [path.name for path in parts] == ["part-r-00000"]
    assert parts[0].read_text() == "be\t4\nnot\t2\nor\t2\nto\t4\n"
    example(home, "wordcount", "-D", "mapred.reduce.tasks=3", "in.txt", "three")
    assert len(list((home / "three").glob("part-r-*"))) == 3


def test_matches_are_counted(home: Path) -> None:
    example(home, "grep", "in.txt", "out", "[bt][eo]")
    lines = (home / "out/part-r-00000").read_text().splitlines()
    assert sorted(lines) == ["2\tbe", "2\tto"]


def test_a_sort_is_made_and_checked(home: Path) -> None:
    said = example(home, "teragen", "-Dmapreduce.job.maps=2", "-D", "my.own=1", "500", "made")
    assert "my.own has no effect on teragen here\n" in said
    assert len(list((home / "made").glob("part-m-*"))) == 2
    example(home, "terasort", "-D", "mapreduce.job.reduces=2", "made", "sorted")
    assert len(list((home / "sorted").glob("part-r-*"))) == 2
    example(home, "teravalidate", "sorted", "report")
    (name, checksum) = (home / "report/part-r-00000").read_text().split()
    assert name == "checksum"
    assert int(checksum, 16) > 0
    assert (home / "report/_SUCCESS").read_bytes() == b""


def test_a_report_says_what_is_not_in_order(home: Path) -> None:
    example(home, "teragen", "500", "made")
    done = jar(home, JAR, "teravalidate", "made", "report")
    assert done.returncode == 1
    assert "cannot call the files sorted" in done.stderr
    lines = (home / "report/part-r-00000").read_text().splitlines()
    assert lines[0].startswith("checksum\t")
    assert lines[1].startswith("error\tmisorder in part-m-00000 between ")
    before = (home / "report/part-r-00000").read_bytes()
    done = jar(home, JAR, "teravalidate", "made", "report")
    assert (done.returncode, "file exists" in done.stderr) == (1, True)
    assert (home / "report/part-r-00000").read_bytes() == before


FIVE = "use one of wordcount, grep, teragen, terasort, teravalidate."


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "jar needs the name of a jar."),
        (["run.sh", "wordcount"], "jar run.sh: the name of a jar ends with .jar."),
        (["my.jar", "x"], "my.jar cannot be run: there is no Java here, only Streaming and Hadoop"),
        ([JAR], f"jar needs the name of an example. What to do: {FIVE}"),
        ([JAR, "pi", "10", "10"], f"there is no example 'pi' here. What to do: {FIVE}"),
        ([JAR, "wordcount", "in.txt"], "wordcount takes other arguments. What to do: give it IN"),
        ([JAR, "grep", "in.txt", "out", "b(.)", "1"], "grep cannot count a group of its pattern"),
        ([JAR, "terasort", "-files", "x", "a", "b"], "terasort has no option -files here"),
        ([JAR, "teragen", "-D", "maps", "5", "out"], "-D maps sets nothing: there is no = in it"),
        ([JAR, "teragen", "many", "out"], '"many" is not a number of rows'),
    ],
)
def test_what_is_not_here_is_refused(home: Path, words: list[str], said: str) -> None:
    done = jar(home, *words)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert sorted(path.name for path in home.iterdir()) == ["in.txt"]
