"""What must come of a job over records: records in an order, on standard output or in files."""

import gzip
import random
from dataclasses import replace

from tests.fuzz.campaign import Case, Outcome
from tests.fuzz.inputs import Input, one_in, run_options

__all__ = ["answered", "refused"]

READS_STREAMS = True
"""Whether the commands read standard input."""

PIECES: list[list[int]] = [[], [100, 5000, 70_000], [1, 7]]
"""How standard input comes: as a file, or from a pipe, so many bytes at a time."""

LITTLE = 50_000
"""Bytes that come one by one in no time."""


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
    named = [word for one in inputs for word in one.words]
    files = {path: data for one in inputs for path, data in one.files.items()}
    named, stdin = streamed(chosen, named, files, is_join=len(inputs) > 1)
    case = Case(
        [*command, *inputs[0].options, *options, *named],
        [],
        files,
        stdin,
        chosen.choice(PIECES if len(stdin) < LITTLE else PIECES[:2]),
        output,
        any_order=has_parts,
    )
    text = header + b"".join(records)
    takes_blanks = not inputs[0].options and command[0] != "shuf"
    is_plain = not inputs[0].is_table and not takes_blanks  # an LF in a line is a blank
    texts = [*files.values(), stdin]
    if is_plain and not any(b"\0" in unpacked(text) for text in texts) and one_in(chosen, 2):
        case = replace(
            case,
            ours=[*case.ours, "-z"],
            files={path: with_nuls(data) for path, data in files.items()},
            stdin=with_nuls(stdin),
        )
        text = with_nuls(text)
    if has_parts:
        text += header * (int(options[options.index("--parts") + 1]) - 1)
    if any(one.is_wrong for one in inputs):
        return replace(case, wanted=Outcome(1), any_order=False)
    is_file = output and not has_parts
    return replace(case, wanted=Outcome(0, b"", {output: text}) if is_file else Outcome(0, text))


def unpacked(text: bytes) -> bytes:
    return gzip.decompress(text) if text.startswith(b"\x1f\x8b") else text


def with_nuls(text: bytes) -> bytes:
    """The same lines, which NUL ends."""
    if text.startswith(b"\x1f\x8b"):
        return gzip.compress(with_nuls(gzip.decompress(text)), 1, mtime=0)
    return text.replace(b"\n", b"\0")


def streamed(
    chosen: random.Random, named: list[str], files: dict[str, bytes], *, is_join: bool
) -> tuple[list[str], bytes]:
    """The words for inputs of which one may be standard input, and what is in that."""
    if not READS_STREAMS or not one_in(chosen, 5):
        return named, b""
    at = chosen.randrange(len(named))
    if named[at] not in files:  # a directory
        return named, b""
    left = [*named[:at], "-", *named[at + 1 :]]
    return ([] if left == ["-"] and not is_join and one_in(chosen, 2) else left), files[named[at]]


def refused(command: list[str], made: Input) -> Case:
    """A case of a command line that is wrong."""
    words = [*command, *made.options, *made.words]
    return Case(words, [], made.files, wanted=Outcome(2))
