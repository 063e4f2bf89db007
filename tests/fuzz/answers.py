"""What must come of a job over records: records in an order, on standard output or in files."""

import random

from tests.fuzz.campaign import Case, Outcome
from tests.fuzz.inputs import Input, run_options

__all__ = ["answered", "refused"]


def answered(
    chosen: random.Random,
    command: list[str],
    inputs: list[Input],
    header: bytes,
    records: list[bytes],
    *,
    parts: bool = True,
) -> Case:
    """A case of a command whose output is a header and records, which have their ends."""
    options, output, has_parts = run_options(chosen, parts=parts)
    words = [
        *command,
        *inputs[0].options,
        *options,
        *(word for one in inputs for word in one.words),
    ]
    files = {path: data for one in inputs for path, data in one.files.items()}
    if any(one.is_wrong for one in inputs):
        return Case(words, [], files, output=output, wanted=Outcome(1))
    text = header + b"".join(records)
    if has_parts:
        count = int(options[options.index("--parts") + 1])
        text += header * (count - 1)
        return Case(words, [], files, output=output, wanted=Outcome(0, text), any_order=True)
    wanted = Outcome(0, b"", {output: text}) if output else Outcome(0, text)
    return Case(words, [], files, output=output, wanted=wanted)


def refused(command: list[str], made: Input) -> Case:
    """A case of a command line that is wrong."""
    words = [*command, *made.options, *made.words]
    return Case(words, [], made.files, wanted=Outcome(2))
