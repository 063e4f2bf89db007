"""What a command line of streaming means, without a job."""

from gristmill.streaming.parse import parse
from gristmill.streaming.resolved import ResolvedJob, resolve

PLAIN = ("-input", "in", "-output", "out", "-mapper", "cat", "-reducer", "cat")


def meant(*words: str) -> ResolvedJob:
    return resolve(parse([*words, *PLAIN]))
