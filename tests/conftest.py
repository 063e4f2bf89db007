"""What all tests share."""

import atexit
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import settings
from tests.cli import hdfs_server, ray_cluster
from tests.cli.hdfs_server import Cluster
from tests.cli.ray_cluster import RayCluster
from tests.cli.s3_server import Server, serving
from tests.history.invariants import broken
from tests.optional import or_missing, show_missing
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# Histories of the jobs under test stay out of the user's own.
os.environ["GRISTMILL_HOME"] = tempfile.mkdtemp(prefix="gristmill-home-")
atexit.register(shutil.rmtree, os.environ["GRISTMILL_HOME"], ignore_errors=True)

# A Ray that is begun without an address leaves a token in the home. Where there is one, the head of
# a cluster asks for it, and nodes that join by an address do not send it.
os.environ["RAY_AUTH_MODE"] = "disabled"

# `env python3` in a script is this interpreter, as in an environment that is activated, and no shim
# of a manager of versions, whose start takes four times as long: tests start thousands.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

# Whoever runs the tests by nohup has this signal ignored, here and in all that is begun here; there
# are tests that send it.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# CI answers for a commit, so the same commit must give the same answer; at a desk, where somebody
# is there to look at what was found, every run tries other inputs. Deadlines per example only tell
# how busy the machine is: pytest-timeout bounds the whole test.
settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


#: Files whose tests share a server that takes long to start.
OF_RAY = ("test_cluster", "test_doctor", "test_shipping", "test_places")
OF_HDFS = ("test_hdfs", "test_s3_and_hdfs", "test_streaming_stores", "test_hadoop_fs")


class ByServer(LoadScopeScheduling):
    """Which tests run in one process, of several: those of a server, or of a file."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        name = file.rpartition("/")[2]
        if name.startswith(OF_RAY):
            return "Ray"
        return "HDFS" if name.startswith(OF_HDFS) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByServer:
    return ByServer(config, log)


class AtOnce:
    """Says what failed when it failed: a run that is ended from outside comes to no summary."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome not in ("failed", "rerun"):
            return
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        assert isinstance(terminal, pytest.TerminalReporter)
        crash = getattr(report.longrepr, "reprcrash", None)
        why = " ".join((crash.message if crash else report.longreprtext).split())
        when = f"{report.when}, {report.duration:.0f} s"
        terminal.ensure_newline()
        terminal.write_line(f"{report.outcome}: {report.nodeid} ({when}): {why[:400]}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--seconds`: what `make quick` has for all tests."""
    parser.addoption("--seconds", type=float, default=None, help="skip tests that begin later")


_BEGAN_S = time.monotonic()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    most_s = item.config.getoption("--seconds")
    if most_s is not None and time.monotonic() - _BEGAN_S > most_s:
        pytest.skip(f"{most_s:.0f} s are over")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # one of several processes has no terminal
        config.pluginmanager.register(AtOnce(config))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter,
) -> None:
    show_missing(terminalreporter)


@pytest.fixture(autouse=True)
def sound_histories(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test whose jobs wrote a history with figures that do not agree."""
    homes = [Path(os.environ["GRISTMILL_HOME"])]
    has_folder = "tmp_path" in request.fixturenames
    folder: Path | None = request.getfixturevalue("tmp_path") if has_folder else None
    yield
    if folder is not None:
        homes += [folder, *(entry for entry in _few(folder) if entry.is_dir())]
    for home in homes:
        for job in _few(home / "jobs"):
            if _WRITTEN.fullmatch(job.name) and str(job) not in _LOOKED_AT:
                _LOOKED_AT.add(str(job))
                with suppress(ValueError):  # a test has damaged it
                    found = broken(job)
                    assert not found, f"the history {job}: {'; '.join(found)}"


#: Names of jobs, but for those that tests make up.
_WRITTEN = re.compile(r"job_\d{14}_\d{10,}(_\d+)?")
_LOOKED_AT: set[str] = set()


def _few(folder: Path) -> list[Path]:
    """What is in a folder that can be read, if that is not thousands."""
    try:
        return list(islice(folder.iterdir(), 1000))
    except OSError:
        return []


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that speaks as S3 does."""
    folder = tmp_path_factory.mktemp("s3") / "buckets"
    folder.mkdir()
    with or_missing("S3"), serving(folder) as server:
        yield server


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """HDFS on this machine, for all tests."""
    folder = tmp_path_factory.mktemp("hdfs") / "data"
    folder.mkdir()
    with or_missing("HDFS"), hdfs_server.serving(folder) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def ray() -> Iterator[RayCluster]:
    """A Ray cluster of two nodes on this machine, for all tests."""
    with or_missing("Ray"), ray_cluster.serving() as cluster:
        yield cluster
