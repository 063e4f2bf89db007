"""What all tests share."""

import atexit
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings
from tests.cli import hdfs_server
from tests.cli.hdfs_server import Cluster, HdfsMissing
from tests.cli.s3_server import Server, serving
from tests.cli.servers import ServerMissing
from tests.optional import missing, show_missing

# Histories of the jobs under test stay out of the user's own.
os.environ["GRISTMILL_HOME"] = tempfile.mkdtemp(prefix="gristmill-home-")
atexit.register(shutil.rmtree, os.environ["GRISTMILL_HOME"], ignore_errors=True)

# Whoever runs the tests by nohup has this signal ignored, here and in all that is begun here; there
# are tests that send it.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# CI answers for a commit, so the same commit must give the same answer; at a desk, where somebody
# is there to look at what was found, every run tries other inputs. Deadlines per example only tell
# how busy the machine is: pytest-timeout bounds the whole test.
settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    show_missing(terminalreporter, config)


@pytest.fixture(scope="session")
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server that speaks as S3 does."""
    folder = tmp_path_factory.mktemp("s3") / "buckets"
    folder.mkdir()
    try:
        with serving(folder) as server:
            yield server
    except ServerMissing as problem:
        missing(request.config, "NOT TESTED: S3", str(problem))


@pytest.fixture(scope="session")
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """HDFS on this machine, for all tests."""
    folder = tmp_path_factory.mktemp("hdfs") / "data"
    folder.mkdir()
    try:
        with hdfs_server.serving(folder) as cluster:
            yield cluster
    except HdfsMissing as problem:
        missing(request.config, "NOT TESTED: HDFS", str(problem))
