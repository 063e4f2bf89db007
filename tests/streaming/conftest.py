"""What the tests of scripts share: how a job is run, and Hadoop's own outputs, made once."""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.hadoop.harness import Hadoop, HadoopMissing
from tests.optional import missing

from . import case, cases, fixtures, formats
from .case import Case
from .cases import CASES
from .fixtures import make_inputs, make_scripts

_SCRIPT = re.compile(r"\./(\w+\.py)")


@dataclass(frozen=True)
class Yard:
    """Where jobs of both sides run: inputs, scripts, outputs."""

    home: Path

    @property
    def cwd(self) -> Path:
        return self.home / "cwd"

    @property
    def scripts(self) -> Path:
        return self.home / "scripts"

    @property
    def inputs(self) -> Path:
        return self.home / "in"

    def words(self, case: Case, side: str) -> list[str]:
        """A case's command line: `side` is whose output it is."""
        places = {
            "{in}": str(self.inputs),
            "{out}": str(self.home / side / case.name),
            "{hadoop}": str(self.home / "hadoop"),
            "{cuts}": f"file://{self.inputs}/cuts.seq",
        }
        words = list(case.words)
        for place, path in places.items():
            words = [word.replace(place, path) for word in words]
        # Hadoop wants -D, -files and -archives first, and one -files at most.
        generic: list[str] = []
        rest: list[str] = []
        files = [str(self.scripts / name) for name in _SCRIPT.findall(" ".join(words))]
        while words:
            word = words.pop(0)
            if word == "-files":
                files += words.pop(0).split(",")
            elif word in ("-D", "-archives"):
                generic += [word, words.pop(0)]
            else:
                rest.append(word)
        shipped = ["-files", ",".join(dict.fromkeys(files))] if files else []
        return [*generic, *shipped, *rest]


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Yard:
    made = Yard(tmp_path_factory.mktemp("streaming"))
    for name in ("cwd", "in", "scripts", "hadoop", "ours"):
        (made.home / name).mkdir()
    make_inputs(made.inputs)
    make_scripts(made.scripts)
    return made


@pytest.fixture(scope="session")
def streaming(yard: Yard) -> Run:
    """Runs `gristmill streaming`, in an empty folder unless told otherwise."""

    def run(*words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gristmill", "streaming", *map(str, words)]
        return subprocess.run(
            command, cwd=cwd or yard.cwd, capture_output=True, text=True, check=False, timeout=100
        )

    return run


@pytest.fixture(scope="session")
def hadoops(yard: Yard, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of all cases in Hadoop: exit codes and counters, a file for each."""
    try:
        hadoop = Hadoop.prepare(tmp_path_factory.mktemp("hadoop"))
    except HadoopMissing as problem:
        missing("SCRIPTS NOT COMPARED WITH HADOOP", str(problem))
    results = yard.home / "results"
    # The same jobs on the same inputs give the same: once for each version of the table.
    sources = [module.__file__ for module in (case, cases, fixtures, formats)]
    told = hashlib.sha256(b"".join(Path(source).read_bytes() for source in sources)).hexdigest()
    kept = hadoop.cache / f"streaming-{told[:16]}"
    if not kept.is_dir():
        _run_all(hadoop, yard, results)
        new = kept.with_name(f"new-{os.getpid()}")
        for name in ("hadoop", "results"):
            shutil.copytree(yard.home / name, new / name)
        with contextlib.suppress(OSError):  # another session was as quick
            new.rename(kept)
        shutil.rmtree(new, ignore_errors=True)
    for name in ("hadoop", "results"):
        shutil.copytree(kept / name, yard.home / name, dirs_exist_ok=True)
    return results


def _run_all(hadoop: Hadoop, yard: Yard, results: Path) -> None:
    results.mkdir()
    jobs = {case.name: yard.words(case, "hadoop") for case in CASES}
    cwd = yard.home / "hadoop-cwd"  # it leaves links in it
    cwd.mkdir()
    log = hadoop.streaming(jobs, results, cwd)
    (yard.home / "hadoop.log").write_text(log, encoding="utf-8")
