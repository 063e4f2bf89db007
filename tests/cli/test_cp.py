"""`gristmill cp`: copies are byte for byte those of the source, whatever the names are."""

import json
import os
import random
import shutil
import signal
import stat
import subprocess
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soak.copies import Place, campaign

import gristmill as gm

from .conftest import Mount
from .harness import end, failure, report, run, start, without_privileges
from .resuming import events_of, kill_when

NAMES = st.sampled_from(
    [
        *(b"a", b"b", b"A", b"_a", b".a", b"_SUCCESS", b"a b", b" ", b"a\nb", b"caf\xe9", b"-rf"),
        *(b"a:b", b"10:00.txt", b"+", b"%", b"%2F", b"#", b"?", b"*", b"[a]", b"{a,b}", b"\\"),
        *(b"s3:", b"~", b"x" * 200, b"y" * 255, b"part-r-00000", b"_temporary", b"file:"),
    ]
)
CONTENTS = {
    "none": b"",
    "x": b"x",
    "line": b"hello\n",
    "zeros": b"\0" * 5000,
    "all": bytes(range(256)) * 300,
}
TREES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=4).map(tuple),
    st.sampled_from(sorted(CONTENTS)),
    max_size=8,
)


def made(top: Path, files: dict[tuple[bytes, ...], bytes]) -> None:
    """Make files below a directory; where a name is a directory already, it stays one."""
    top.mkdir(exist_ok=True)
    for parts, content in files.items():
        path = top.joinpath(*map(os.fsdecode, parts))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except (IsADirectoryError, NotADirectoryError, FileExistsError):
            pass


def tree(top: Path) -> dict[bytes, bytes | None]:
    """All below a directory: files with their bytes, directories with nothing, links as text."""
    found: dict[bytes, bytes | None] = {}
    for path in top.rglob("*"):
        name = os.fsencode(path.relative_to(top))
        if path.is_symlink():
            found[name] = b"-> " + os.fsencode(path.readlink())
        else:
            found[name] = None if path.is_dir() else path.read_bytes()
    return found


@given(TREES, TREES, st.booleans())
@settings(max_examples=25, deadline=None)
def test_any_tree_and_what_was_there(
    files: dict[tuple[bytes, ...], str], old: dict[tuple[bytes, ...], str], delete: bool
) -> None:
    with TemporaryDirectory() as folder:
        source, target = Path(folder, "source"), Path(folder, "target")
        made(source, {parts: CONTENTS[key] for parts, key in files.items()})
        gm.cp([source], f"{folder}/fresh/")
        wanted = tree(source)
        assert tree(Path(folder, "fresh", "source")) == wanted
        made(target, {parts: CONTENTS[key] for parts, key in old.items()})
        before = tree(target)
        try:
            done = gm.cp([f"{source}/"], target, update=True, delete=delete)
        except FileExistsError:
            # A file has the name of a directory, or the other way round.
            clash = before.keys() & wanted.keys()
            assert any((before[name] is None) != (wanted[name] is None) for name in clash)
            return
        assert tree(target) == (wanted if delete else {**before, **wanted})
        equal = [n for n in before.keys() & wanted.keys() if before[n] == wanted[n] is not None]
        assert done.counters["SKIP"] == len(equal)
        again = gm.cp([f"{source}/"], target)
        assert (again.counters["COPY"], again.counters["SKIP"]) == (
            0,
            sum(content is not None for content in wanted.values()),
        )


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of two files and an empty directory, in the current one."""
    monkeypatch.chdir(tmp_path)
    made(tmp_path / "s", {(b"f",): b"aaa\n", (b"d", b"g"): b"ggg\n"})
    (tmp_path / "s" / "empty").mkdir()
    return tmp_path / "s"


def test_what_a_source_names(source: Path, tmp_path: Path) -> None:
    for arguments, name in (
        (("s", "t1"), "t1/s"),
        (("s/", "t2"), "t2"),
        (("s/.", "t3"), "t3"),
        (("s", "t1"), "t1/s"),
    ):
        run("cp", *arguments)
        assert tree(tmp_path / name) == tree(source)
    run("cp", ".", "../elsewhere", cwd=source)
    assert tree(tmp_path / "elsewhere") == tree(source)
    run("cp", "s/f", "t4")
    run("cp", "s/f", "t5/")
    run("cp", "s/f", "s/d/g", "t6")
    run("cp", "s/f", "t6")
    assert Path("t4").read_bytes() == Path("t5/f").read_bytes() == b"aaa\n"
    assert tree(Path("t6")) == {b"f": b"aaa\n", b"g": b"ggg\n"}


def test_other_content_of_the_same_length_is_found(source: Path) -> None:
    run("cp", "s", "t")
    times = source.joinpath("f").stat()
    (source / "f").write_bytes(b"bbb\n")
    os.utime(source / "f", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "has other bytes (file t/s/f, source s/f)" in failure("cp", "s", "t")
    assert Path("t/s/f").read_bytes() == b"aaa\n"
    done = report("cp", "s", "t", "--update")
    assert Path("t/s/f").read_bytes() == b"bbb\n"
    assert [done["counters"][name] for name in ("COPY", "REPLACED_FILES", "SKIP")] == [1, 1, 1]
    done = report("cp", "s", "t", "--overwrite")
    assert [done["counters"][name] for name in ("COPY", "SKIP")] == [2, 0]


def test_a_dry_run_says_what_would_be_done(source: Path) -> None:
    assert run("cp", "s", "t", "--dry-run").stdout == "copy t/s/f\ncopy t/s/d/g\n"
    assert not Path("t").exists()
    run("cp", "s", "t")
    (source / "f").write_bytes(b"bbb\n")
    Path("t/s/gone").mkdir()
    Path("t/s/gone/x").write_bytes(b"x")
    before = tree(Path("t"))
    done = report("cp", "s", "t", "--update", "--delete", "--dry-run")
    assert done["report"] == ["replace t/s/f", "delete t/s/gone"]
    assert tree(Path("t")) == before
    run("cp", "s", "t", "--update", "--delete")
    assert tree(Path("t/s")) == tree(source)


def test_delete_leaves_what_is_excluded(source: Path) -> None:
    (source / "a.tmp").write_bytes(b"")
    run("cp", "s", "t", "--exclude", "*.tmp", "--exclude", "d/*")
    assert tree(Path("t/s")) == {b"f": b"aaa\n", b"d": None, b"empty": None}
    Path("t/s/b.tmp").write_bytes(b"mine")
    Path("t/s/d/h").write_bytes(b"mine")
    Path("t/s/x").write_bytes(b"gone")
    run("cp", "s", "t", "--exclude", "*.tmp", "--exclude", "d/*", "--delete")
    assert tree(Path("t/s")).keys() == {b"f", b"d", b"d/h", b"empty", b"b.tmp"}


@pytest.fixture
def deep(source: Path) -> Iterator[None]:
    """1,980 directories, each in the one before it, in source and target; there is a file more."""
    for top in (source, Path("t")):
        top.mkdir(exist_ok=True)
        os.chdir(top)
        for _ in range(1980):
            Path("d").mkdir(exist_ok=True)
            os.chdir("d")
        if top != source:
            Path("extra").touch()
        os.chdir(source.parent)
    yield
    subprocess.run(["rm", "-r", "s", "t"], check=True)  # Python cannot


@pytest.mark.usefixtures("deep")
def test_delete_in_a_tree_as_deep_as_a_path_may_be() -> None:
    """The stack of a thread does not suffice for a call in each of them."""
    done = report("cp", "s/", "t", "--delete", "--dry-run")
    ends = [line[-7:] for line in done["report"] if line.startswith("delete ")]
    assert ends == ["d/extra"]


@pytest.mark.usefixtures("source")
def test_delete_follows_no_link(tmp_path: Path) -> None:
    run("cp", "s", "t")
    outside = tmp_path / "outside"
    made(outside, {(b"kept",): b"kept"})
    shutil.rmtree("t/s/d")
    Path("t/s/d").symlink_to(outside)
    Path("t/s/link").symlink_to(outside)
    run("cp", "s", "t", "--delete", "--links", "nothing", status=2)
    run("cp", "s", "t", "--delete")
    assert tree(outside) == {b"kept": b"kept", b"g": b"ggg\n"}  # a directory of that name is used
    assert not Path("t/s/link").exists()


@pytest.mark.usefixtures("source")
def test_only_some_files() -> None:
    run("cp", "s", "t1", "--filter", "g*")
    assert tree(Path("t1/s")) == {b"d": None, b"d/g": b"ggg\n"}
    Path("names").write_bytes(b"f\n\nempty\n")
    run("cp", "s", "t2", "--files-from", "names")
    assert tree(Path("t2/s")) == {b"f": b"aaa\n", b"empty": None}
    Path("names").write_bytes(b"f\n../s/f\n")
    assert "it leads out of the source (file names, line 2)" in failure(
        "cp", "s", "t3", "--files-from", "names"
    )
    Path("names").write_bytes(b"none\n")
    assert "no such file or directory (file s/none)" in failure(
        "cp", "s", "t3", "--files-from", "names"
    )
    assert not Path("t3").exists()


@pytest.mark.usefixtures("source")
def test_regular_expressions_of_whole_paths() -> None:
    made(Path("s"), {(b"x\xff\n",): b"odd", (b"d", b"a.tmp"): b"t", (b"a.tmp",): b"t"})
    whole = tree(Path("s"))
    run("cp", "s", "t1", "--exclude-regex", "s/.*[.]tmp", "--exclude-regex", "tmp|d|.*/F|s/e.*y")
    assert tree(Path("t1/s")) == {
        name: data for name, data in whole.items() if name not in (b"a.tmp", b"d/a.tmp", b"empty")
    }
    run("cp", "s/", "t2", "--exclude-regex", ".*/(d|x.*)")
    assert tree(Path("t2")) == {
        name: data for name, data in whole.items() if not name.startswith((b"d", b"x"))
    }
    # What is excluded of the source stays in the target.
    made(Path("t2"), {(b"d", b"z"): b"z", (b"z",): b"z"})
    done = report("cp", "s/", "t2", "--exclude-regex", ".*/(d|x.*)", "--update", "--delete")
    assert done["counters"]["DELETED_FILES"] == 1
    assert Path("t2/d/z").exists()
    for wrong, why in (("a(", "unclosed group"), ("(?=a)", "look-around"), (")(", "unopened")):
        says = failure("cp", "s", "t3", "--exclude-regex", wrong, status=2)
        assert "is not a regular expression" in says
        assert why in says
    assert not Path("t3").exists()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ("s s/t", "one lies in the other"),
        ("s/d/ s", "one lies in the other"),
        ("s s s2", "two sources would make one file"),
        ("s/ other/ t", "two sources would make one file (file t/f, one source s/f, the other"),
        ("s/f other/f t", "two sources would make one file"),
        ("s f", "the target is a file"),
        ("s t --update --overwrite", "leave out one of the two"),
        ("s/f t --delete", "it needs one source, which is a directory"),
        ("s/f t --files-from f", "it needs one source, which is a directory"),
        ("s t --delete --files-from f", "--files-from"),
        ("s t --bandwidth 0", "it must be more than 0"),
        ("s t --preserve owner", "owner"),
        ("s objects:///tmp/none --preserve times", "source and target must be local"),
        ("s objects:///tmp/none --links copy", "stores have no links"),
        ("s http://127.0.0.1/x", "http"),
        ("s t --collect", "collect"),
    ],
)
def test_wrong_options(source: Path, arguments: str, what: str) -> None:
    made(source.parent / "other", {(b"f",): b"other", (b"h",): b"h"})
    Path("f").write_bytes(b"f")
    before = tree(source.parent)
    assert what in run("cp", *arguments.split(), status=2).stderr
    assert tree(source.parent) == before


def test_sources_that_merge(source: Path) -> None:
    made(source.parent / "other", {(b"h",): b"h", (b"d", b"k"): b"k"})
    run("cp", "s/", "other/", "t")
    assert tree(Path("t")) == {**tree(source), **tree(source.parent / "other")}


def test_links(source: Path) -> None:
    (source / "to-f").symlink_to("f")
    (source / "to-d").symlink_to("d")
    (source / "loop").symlink_to(".")
    assert "a link leads to a directory that it lies in (file s/loop)" in failure("cp", "s", "t1")
    (source / "loop").unlink()
    run("cp", "s", "t2")
    assert tree(Path("t2/s"))[b"to-f"] == b"aaa\n"
    assert tree(Path("t2/s"))[b"to-d/g"] == b"ggg\n"
    (source / "nowhere").symlink_to("none")
    assert "dangling link" in failure("cp", "s", "t3")
    run("cp", "s", "t4", "--links", "copy")
    run("cp", "s", "t4", "--links", "copy", "--update")
    assert tree(Path("t4/s")) == tree(source)
    done = report("cp", "s", "t5", "--links", "skip")
    assert done["counters"]["SKIPPED_LINKS"] == 3
    assert tree(Path("t5/s")).keys() == {b"f", b"d", b"d/g", b"empty"}


def test_special_files_and_failures_that_are_ignored(source: Path) -> None:
    os.mkfifo(source / "pipe")
    assert "it is neither a file nor a directory (file s/pipe)" in failure("cp", "s", "t1")
    (source / "shut").write_bytes(b"shut")
    (source / "shut").chmod(0)
    done = report(
        *("cp", "s", "t2", "--ignore-failures", "--delete"), status=1, preexec=without_privileges
    )
    assert tree(Path("t2/s")) == {b"f": b"aaa\n", b"d": None, b"d/g": b"ggg\n", b"empty": None}
    assert done["counters"]["FAIL"] == 2
    assert len(done["warnings"]) == 2
    assert "nothing was removed" in done["error"]["message"]
    done = report(
        *("cp", "s", "t3", "--ignore-failures", "--exclude", "pipe"),
        status=1,
        preexec=without_privileges,
    )
    assert "1 could not be copied, and 2 were" in done["error"]["message"]


def test_what_cannot_be_looked_at_is_one_failure(source: Path) -> None:
    """A link to itself, and what is in a directory that may be listed and not entered."""
    (source / "self").symlink_to("self")
    (source / "d").chmod(0o644)
    options = ("--ignore-failures", "--exclude", "empty")
    done = report("cp", "s", "t", *options, status=1, preexec=without_privileges)
    assert tree(Path("t/s")) == {b"f": b"aaa\n", b"d": None}
    assert len(done["warnings"]) == done["counters"]["FAIL"] == 2
    assert done["error"]["message"].count("What to do: ") <= 1
    run("cp", "s", "links", "--links", "copy")
    assert Path("links/s/self").readlink() == Path("self")


def test_special_files_of_the_target_stay(source: Path) -> None:
    """A copy that replaced `/dev/null` would break the machine."""
    Path("t").mkdir()
    os.mkfifo("t/f")
    (source / "to").symlink_to("f")
    os.mkfifo("t/to")
    for words in (["s/f", "t/f"], ["s/f", "t"], ["s/to", "t", "--links", "copy"]):
        for option in ("--overwrite", "--update", "--no-sync"):
            assert "a pipe, a socket or a device has its name" in failure("cp", *words, option)
    assert Path("t/f").is_fifo()
    assert Path("t/to").is_fifo()
    before = Path("/dev/null").stat()
    said = failure("cp", "s/f", "/dev/null", "--overwrite", "--dry-run")
    assert "What to do: name another target." in said
    assert Path("/dev/null").stat().st_ino == before.st_ino


def test_a_file_of_the_kernel_is_named(source: Path) -> None:
    """It says that it has no bytes, and has some: it did not change."""
    assert source.exists()
    said = failure("cp", "/proc/version", "t")
    assert "its length is not that of its bytes" in said
    assert "read it with cat" in said
    assert not Path("t").exists()


def test_failures_that_are_ignored_leave_nothing_staged(source: Path, mount: Mount) -> None:
    (source / "large").write_bytes(b"x" * 4_000_000)
    to = mount("size=2m") / "t"
    done = report("cp", "s/", str(to), "--ignore-failures", status=1)
    assert "no space left on device" in done["error"]["message"]
    assert tree(to) == {
        b"f": b"aaa\n",
        b"d": None,
        b"d/g": b"ggg\n",
        b"empty": None,
    }


def test_times_and_permissions(source: Path) -> None:
    (source / "f").chmod(0o754)
    os.utime(source / "f", ns=(10**18, 10**18 + 123456789))
    run("cp", "s", "t1")
    assert stat.S_IMODE(Path("t1/s/f").stat().st_mode) & 0o100 == 0
    run("cp", "s", "t2", "--preserve", "times,mode")
    found = Path("t2/s/f").stat()
    assert (stat.S_IMODE(found.st_mode), found.st_mtime_ns) == (0o754, 10**18 + 123456789)


def test_a_manifest_is_a_file_and_stays(source: Path) -> None:
    said = failure("cp", "s/", "t", "--manifest", "s", status=2)
    assert "cannot write the manifest: it is not a regular file (file s)" in said
    assert not Path("t").exists()
    for place in ("t/made.json", "t/../t/made.json"):
        run("cp", "s/", "t", "--delete", "--manifest", place)
        assert len(Path("t/made.json").read_text().splitlines()) == 2
    run("cp", "s/", "t", "--delete")
    assert tree(Path("t")) == tree(source)


def test_a_manifest_names_each_file(source: Path) -> None:
    (source / os.fsdecode(b"caf\xe9\n")).write_bytes(b"x")
    for _ in range(2):  # copied, and there already
        run("cp", "s/", "t", "--manifest", "made.json", "--verify")
        lines = [json.loads(line) for line in Path("made.json").read_text().splitlines()]
        found = {line["path"]: (line["bytes"], line["crc32"]) for line in lines}
        wanted = {
            name: (len(text), f"{zlib.crc32(text):08x}")
            for name, text in (("f", b"aaa\n"), ("d/g", b"ggg\n"), ("caf\0e9\n", b"x"))
        }
        assert found == wanted
        assert tree(Path("t")) == tree(source)


def test_many_files_in_rounds_by_processes(tmp_path: Path) -> None:
    rng = random.Random(7)
    files = {(b"%d" % (n % 40), b"%d" % n): rng.randbytes(n % 50) for n in range(5100)}
    made(tmp_path / "s", files)
    wanted = tree(tmp_path / "s")
    done = report("cp", f"{tmp_path}/s/", tmp_path / "t", "--no-sync", "--memory", "60M")
    assert tree(tmp_path / "t") == wanted
    assert [phase["name"] for phase in done["phases"]] == ["copy", "copy"]
    options = ("--runner", "processes", "--workers", "2", "--no-sync")
    run("cp", f"{tmp_path}/s/", tmp_path / "u", *options)
    assert tree(tmp_path / "u") == wanted


def test_a_long_file_with_a_limit_of_bytes(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(random.Random(1).randbytes(9_000_000))
    began_s = time.monotonic()
    run("cp", tmp_path / "long", tmp_path / "copy", "--bandwidth", "6M", "--workers", "1")
    assert time.monotonic() - began_s > 1.2
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "long").read_bytes()


def test_a_file_that_is_written_past_the_page_cache_is_verified(tmp_path: Path) -> None:
    with (tmp_path / "long").open("wb") as long:
        long.write(b"begins")
        long.truncate(70_000_000)
    run("cp", tmp_path / "long", tmp_path / "copy", "--verify", "--workers", "1", "--no-sync")
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "long").read_bytes()


def test_killed_and_resumed(tmp_path: Path, home: Path) -> None:
    made(tmp_path / "s", {(b"%d" % (n % 7), b"%d" % n): b"%d" % n * 99 for n in range(3000)})
    wanted = tree(tmp_path / "s")
    command: list[str | Path] = ["cp", str(tmp_path / "s") + "/", tmp_path / "t"]
    kill_when(command, home, lambda events: any(e["event"] == "attempt_finished" for e in events))
    assert tree(tmp_path / "t") != wanted
    job = events_of(home)[0]["job_id"]
    done = report("resume", job)
    assert tree(tmp_path / "t") == wanted
    counters = done["counters"]
    assert counters["SKIP"] > 0
    assert counters["COPY"] + counters["SKIP"] == 3000


def test_killed_and_run_again(tmp_path: Path, home: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "long").write_bytes(random.Random(1).randbytes(20_000_000))
    command: list[str | Path] = ["cp", tmp_path / "s", tmp_path / "t", "--bandwidth", "10M"]
    kill_when([*command, "--workers", "1"], home, lambda events: len(events) > 2)
    time.sleep(0.1)
    assert not (tmp_path / "t" / "s" / "long").exists()
    run(*command[:3], "--update")
    assert tree(tmp_path / "t" / "s") == tree(tmp_path / "s")


def test_killed_at_random(tmp_path: Path) -> None:
    campaign([0], 7, print, tmp_path, [Place("a disk", str(tmp_path / "disk"))])


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "long").write_bytes(random.Random(1).randbytes(30_000_000))
    process = start("cp", tmp_path / "s", tmp_path / "t", "--bandwidth", "1M")
    deadline_s = time.monotonic() + 20
    while not list(tmp_path.glob("t/s/.gristmill-staging*/*")):
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    began_s = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert end(process).status != 0
    assert time.monotonic() - began_s < 5
    assert not (tmp_path / "t" / "s" / "long").exists()
    assert not list(tmp_path.glob("t/**/.gristmill*"))


def test_to_an_object_store_and_back(source: Path, tmp_path: Path) -> None:
    (source / "a b:c%25=+?#").write_bytes(b"odd")
    place = f"objects://{tmp_path}/objects"
    Path("objects").mkdir()
    run("cp", "s", place)
    run("cp", f"{place}/s", "back")
    run("cp", f"{place}/s/", "back/s")
    wanted = {name: text for name, text in tree(source).items() if name != b"empty"}
    assert tree(Path("back/s")) == wanted
    (source / "f").write_bytes(b"bbb\n")
    run("cp", "s", place, "--update", "--delete")
    run("cp", f"{place}/s/f", "f")
    assert Path("f").read_bytes() == b"bbb\n"


@pytest.mark.usefixtures("source")
def test_explain_counts_files_and_bytes() -> None:
    plan = json.loads(run("explain", "cp", "s", "t", "--json").stdout)
    assert (plan["files"], plan["input_bytes"]) == (2, 8)
    assert "2 files" in run("explain", "cp", "s", "t").stdout
    assert not Path("t").exists()
