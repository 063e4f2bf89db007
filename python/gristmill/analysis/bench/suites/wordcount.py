"""`wordcount`: counts the words of text that it makes: lines of ten words, by Zipf's law."""

from collections.abc import Sequence
from functools import partial

from gristmill.analysis.bench.bench_request import BenchRequest, Config
from gristmill.analysis.bench.suites.suite import Step, Suite, command_line
from gristmill.analysis.bench.suites.text import write_text

__all__ = ["SUITE"]


def _prepare(asked: BenchRequest, _config: Config, folder: str) -> Sequence[Step]:
    text = f"{folder}/text"
    return (Step(name="text", call=partial(write_text, asked.rows, text), makes=text),)


def _steps(asked: BenchRequest, config: Config, folder: str) -> Sequence[Step]:
    text, counts = f"{folder}/text", f"{folder}/counts"
    words = (*command_line("wordcount", asked, config), text, counts)
    return (Step(name="wordcount", words=words, reads=(text,), makes=counts),)


SUITE = Suite(commands=("wordcount",), rows=1_000_000, steps=_steps, prepare=_prepare)
