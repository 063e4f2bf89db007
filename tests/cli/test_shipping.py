"""Nodes need Ray and nothing else: what user code is in goes along with the job.

The second node of the cluster sees neither Gristmill nor the folder in which all of this lies
(`ray_cluster`).
"""

import shutil
import stat
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.optional import missing

import gristmill
from gristmill.cluster import actor, packing
from gristmill.cluster.actor import Packed
from gristmill.cluster.user_code import UserCode

from .harness import report, run
from .ray_cluster import RayCluster
from .resuming import tree

JOB = """
import gristmill as gm
import beside
from pack.age import named

def pairs(line, context):
    from lazily import least
    import os
    known = context.file("known.txt").read_text().split()
    more = context.file("more.txt").read_text().split()
    context.count("nodes", "sees" if os.path.exists(known_at) else "sees not")
    for word in line.split():
        if word in known + more and len(word) >= least:
            yield named(word), beside.one()

known_at = __file__

def job(input, output):
    files = [HERE + "/known.txt", HERE + "/folder/deep/more.txt"]
    return gm.Job(gm.text(input), map=pairs, reduce=gm.sum(), files=files,
                  output=gm.tsv(output), parts=2, split_max="64k")
"""

MAPPER = """#!/usr/bin/env python3
import os, sys
from words import known
more = open("archive/deep/more.txt").read().split()
sees = "sees" if os.path.exists(os.environ["known_at"]) else "sees not"
sys.stderr.write(f"reporter:counter:nodes,{sees},1\\n")
for line in sys.stdin:
    for word in line.split():
        if word in known or word in more:
            print(word + "\\t1")
"""


@pytest.fixture
def home_of_head(ray: RayCluster, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with user code that only the head's node has."""
    if not ray.is_apart:
        missing("NOT TESTED: nodes with Ray alone", "no mount namespaces (root)")
    for name, value in ray.environment.items():
        monkeypatch.setenv(name, value)
    folder = ray.of_head / "job"
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in {
        "job.py": f"HERE = {str(folder)!r}\n{JOB}",
        "beside.py": "def one():\n    return 1\n",
        "lazily.py": "least = 3\n",
        "pack/__init__.py": "",
        "pack/age.py": (
            "from pathlib import Path\n"
            "PREFIX = Path(__file__).with_name('prefix.txt').read_text()\n"
            "def named(word):\n    return PREFIX + word\n"
        ),
        "pack/prefix.txt": "a-",
        "known.txt": "one two three",
        "folder/deep/more.txt": "seven",
        "mapper.py": MAPPER,
        "words.py": "known = ['one', 'two', 'three']\n",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "mapper.py").chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What all nodes see."""
    path = tmp_path_factory.mktemp("lines") / "in.txt"
    path.write_text("one two three four five six seven\nno one\n" * 30_000)
    return path


def test_functions_with_their_modules_and_files(
    home_of_head: Path, lines: Path, tmp_path: Path
) -> None:
    job = ["run", home_of_head / "job.py", "--input", lines, "--output"]
    run(*job, tmp_path / "wanted")
    found = report(*job, tmp_path / "out", "--on", "ray")
    assert tree(tmp_path / "out") == tree(tmp_path / "wanted")
    text = "".join(part.read_text() for part in sorted((tmp_path / "out").glob("part-*")))
    assert sorted(text.splitlines()) == [
        "a-one\t60000",
        "a-seven\t30000",
        "a-three\t30000",
        "a-two\t30000",
    ]
    assert set(found["user_counters"]["nodes"]) == {"sees", "sees not"}


def test_scripts_with_their_files(home_of_head: Path, lines: Path, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(home_of_head / "archive"), "zip", home_of_head / "folder")
    files = ",".join(str(home_of_head / name) for name in ("mapper.py", "words.py"))
    job = [
        *("streaming", "-D", "mapreduce.job.reduces=2"),
        *("-D", "mapreduce.input.fileinputformat.split.maxsize=65536"),
        *("-files", files, "-archives", f"{archive}#archive"),
        *("-cmdenv", f"known_at={home_of_head / 'words.py'}", "-input", lines),
        *("-mapper", "mapper.py", "-reducer", "uniq -c", "-output"),
    ]
    run(*job, tmp_path / "wanted")
    found = report(*job, tmp_path / "out", "--on", "ray")
    assert tree(tmp_path / "out") == tree(tmp_path / "wanted")
    assert set(found["user_counters"]["nodes"]) == {"sees", "sees not"}


def test_what_is_there_stays_and_what_was_changed_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actor, "_home", lambda: tmp_path)
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o750)
    _, packed = packing.packed(UserCode(files=(str(script),)))
    assert actor._here(packed) == str(script.parent)
    script.unlink()
    copy = Path(actor._here(packed), "script")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o750
    copy.write_text("other")
    assert Path(actor._here(packed), "script").read_text() == "#!/bin/sh\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["bin", copy.parent.name])


def test_what_is_too_large_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = tmp_path / "large"
    large.write_bytes(b"x" * 100)
    monkeypatch.setattr(packing, "_FILE_BYTES_MAX", 50)
    packed = packing.packed(UserCode(files=(str(large),)))[-1]
    assert packed == Packed(path=str(large), names=[""], files={}, kept=[], sha256="")
    assert actor._here(packed) == str(large)
    large.unlink()
    with pytest.raises(FileNotFoundError, match="too large to go along"):
        actor._here(packed)


def test_a_full_object_store_is_one_sentence() -> None:
    exceptions = pytest.importorskip("ray").exceptions
    along = Packed(
        path="/there", names=["one"], files={"one": (0o644, b"12345")}, kept=[], sha256=""
    )
    for full in (exceptions.OutOfDiskError, exceptions.ObjectStoreFullError):
        ray = Mock(exceptions=exceptions)
        ray.put.side_effect = full("Local disk is full")
        with pytest.raises(OSError, match=r"no room for the 5 B that .* --object-store-memory"):
            packing.kept_by(ray, [along])


def test_our_package_goes_along_with_functions_only() -> None:
    (engine,) = packing.packed(UserCode())
    assert len(engine["files"]) == 1
    ours = packing.packed(UserCode(modules=()))[0]["files"]
    assert {"gristmill/worker.py", "gristmill/mapreduce/worker/running.py"} <= ours.keys()
    assert not any("__pycache__" in name for name in ours)
    assert Path(gristmill.__file__).read_bytes() == ours["gristmill/__init__.py"][1]
