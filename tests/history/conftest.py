"""The `browser` fixture: headless Chromium, for all tests of the session.

Without it the tests are skipped, with a banner at the end of the run; where CI=true they fail.
"""

import os
import shutil

import pytest

from .harness import Browser

_MISSING = pytest.StashKey[str]()
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="session")
def browser(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Browser:
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is not None:
        return Browser(found, tmp_path_factory.mktemp("browser"))
    missing = request.config.stash[_MISSING] = f"none of {', '.join(_NAMES)} is installed"
    if os.environ.get("CI") == "true":
        pytest.fail(f"a browser is needed under CI: {missing}", pytrace=False)
    pytest.skip(f"no browser: {missing}")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    missing = config.stash.get(_MISSING, None)
    if missing is not None:
        terminalreporter.section("PAGES NOT LOOKED AT IN A BROWSER", red=True, bold=True)
        terminalreporter.line(missing)
