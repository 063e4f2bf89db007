"""The `browser` fixture: headless Chromium, for all tests of the session."""

import shutil

import pytest
from tests.optional import missing

from .harness import Browser

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Browser:
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        problem = f"no browser: none of {', '.join(_NAMES)} is installed"
        missing("PAGES NOT LOOKED AT IN A BROWSER", problem)
    return Browser(found, tmp_path_factory.mktemp("browser"))
