"""Many names of files on the command line: each counts, in its order, and soon."""

import time
from typing import Any

import pytest

from gristmill.cli.generated import command_of
from gristmill.options import commands

NAMES = [f"dir/file-{number}" for number in range(100_000)]


def parsed(command: str, *words: str) -> dict[str, Any]:
    context = command_of(commands()[command]).make_context(command, list(words))
    return {name: value for name, value in context.params.items() if value}


@pytest.mark.parametrize("many", [3, 999, 1000, 1001, 5000])
def test_each_name_counts_wherever_the_options_stand(many: int) -> None:
    names = NAMES[:many]
    for words in (
        ["-r", "-o", "out", *names],
        [*names, "-r", "-o", "out"],
        [*names[:2], "-r", *names[2:], "--output", "out"],
        ["-ro", "out", "--", *names],
    ):
        found = parsed("sort", *words)
        assert list(found["inputs"]) == names, words[:4]
        assert (found["reverse"], found["output"]) == (True, "out")
    found = parsed("terasort", *names, "out", "--memory", "1G")
    assert list(found["inputs"]) == names
    assert (found["output"], found["memory"]) == ("out", "1G")
    found = parsed("terasort", *names, "--memory", "1G", "out")
    assert (len(found["inputs"]), found["output"]) == (many, "out")


def test_100_000_names_take_no_time() -> None:
    began = time.process_time()
    parsed("sort", *NAMES, "-o", "out")
    assert time.process_time() - began < 0.5
