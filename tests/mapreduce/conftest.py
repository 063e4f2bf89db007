"""Texts that jobs read, and functions that reach the workers as those of a script would."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest

WORDS = [
    "to",
    "be",
    "or",
    "not",
    "that",
    "is",
    "the",
    "question",
    "whether",
    "tis",
    "nobler",
    "in",
    "mind",
    "suffer",
    "slings",
]


@pytest.fixture(autouse=True, scope="module")
def _by_value(request: pytest.FixtureRequest) -> Iterator[None]:
    """Test modules are no installed package: workers cannot import them."""
    cloudpickle.register_pickle_by_value(request.module)
    yield
    cloudpickle.unregister_pickle_by_value(request.module)


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of five files, about 300 kB; one is empty, two end without a newline."""
    folder = tmp_path_factory.mktemp("text")
    random_words = random.Random(5)
    for number in range(4):
        lines = (
            " ".join(random_words.choices(WORDS, k=random_words.randrange(12)))
            for _ in range(3000 * number + 200)
        )
        (folder / f"{number}.txt").write_text("\n".join(lines) + "\n" * (number % 2))
    (folder / "empty.txt").write_text("")
    (folder / "_ignored.txt").write_text("never\n")
    return folder


@pytest.fixture(scope="session")
def lines(text: Path) -> list[str]:
    """All lines of `text`, in order."""
    return [
        line
        for path in sorted(text.glob("[!_]*.txt"))
        for line in path.read_text().split("\n")[: None if path.name in "0.txt2.txt" else -1]
        if path.name != "empty.txt"
    ]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call() -> None:
    """Workers stay warm while the environment is the same; pytest writes each test's name to it."""
    os.environ.pop("PYTEST_CURRENT_TEST", None)
