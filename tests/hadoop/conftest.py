"""The `hadoop` fixture: the tools of Apache Hadoop, for all tests of the session.

Without them the tests are skipped, with a banner at the end of the run; where CI=true they fail.
"""

import os

import pytest

from .harness import Hadoop, HadoopMissing

_MISSING = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def hadoop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Hadoop:
    missing = request.config.stash.get(_MISSING, None)
    if missing is None:
        try:
            return Hadoop.prepare(tmp_path_factory.mktemp("hadoop"))
        except HadoopMissing as missing_now:
            missing = request.config.stash[_MISSING] = str(missing_now)
    if os.environ.get("CI") == "true":
        pytest.fail(f"Hadoop is needed under CI: {missing}", pytrace=False)
    pytest.skip(f"no Hadoop: {missing}")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    missing = config.stash.get(_MISSING, None)
    if missing is not None:
        terminalreporter.section("NOT COMPARED WITH HADOOP", red=True, bold=True)
        terminalreporter.line(missing)
