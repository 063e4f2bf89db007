"""A signal that comes while a line is written: the line is given up only if nobody takes it."""

import subprocess
import sys

import pytest

from .harness import clean_environment

_SCRIPT = """
import io, os, signal, sys
from gristmill.terminal import console, signals

class Interrupting(io.TextIOWrapper):
    "The signal comes when the text is written, and before the write is said to be over."
    def flush(self):
        super().flush()
        if pending.signum is None:
            os.kill(os.getpid(), signal.SIGINT)

reader, writer = os.pipe()
stream = Interrupting(open(writer, "wb", buffering=0), write_through=True)
if sys.argv[1] == "full":
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 65536)
    except BlockingIOError:
        pass
with signals.deferred() as pending:
    try:
        console.draw(stream, "" if sys.argv[1] == "full" else "one")
        console.draw(stream, " two")
        said = os.read(reader, 100).decode()
    except BrokenPipeError:
        said = "given up"
print(said, pending.signum == signal.SIGINT)
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.parametrize(("pipe", "said"), [("read", "one two"), ("full", "given up")])
def test_a_write_is_given_up_only_if_nobody_takes_it(pipe: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, pipe],
        capture_output=True,
        encoding="utf-8",
        env=clean_environment(),
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == (f"{said} True\n", "")
