"""The end of a connection to Ray whose head is gone: no call of Ray is cut off under its thread."""

import subprocess
import sys
import threading
from types import SimpleNamespace

from tests.cli.harness import clean_environment

from gristmill.cluster.connection import connected
from gristmill.cluster.head import at_most, ray_is_called

#: Nothing listens there.
GONE = "127.0.0.1:1"


def ray_that_counts(ends: list[str]) -> SimpleNamespace:
    """A connected Ray without a head, which notes when it is shut down."""
    state = SimpleNamespace(is_connected=False)

    def init(**_options: object) -> None:
        state.is_connected = True

    def shutdown() -> None:
        ends.append("shut down")
        state.is_connected = False

    return SimpleNamespace(
        init=init,
        shutdown=shutdown,
        is_initialized=lambda: state.is_connected,
        get_runtime_context=lambda: SimpleNamespace(gcs_address=GONE),
    )


def test_ray_is_shut_down_when_nothing_waits_for_it() -> None:
    ends: list[str] = []
    with connected(ray_that_counts(ends)):
        pass
    assert ends == ["shut down"]


def test_ray_is_left_alone_while_a_call_waits() -> None:
    ends: list[str] = []
    over = threading.Event()
    with connected(ray_that_counts(ends)):
        assert not at_most(0.01, over.wait)
    assert ray_is_called()
    over.set()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and thread.name == "gristmill-ray":
            thread.join(10)
    assert not ray_is_called()
    assert ends == []


PROGRAM = """
import atexit, sys, threading
from gristmill.cli.main import main
from gristmill.cluster.head import at_most
atexit.register(print, "Python has ended")
if sys.argv[1] == "waits":
    at_most(0.01, threading.Event().wait)
sys.exit(main(sys.argv[2:]))
"""


def ended(*words: str) -> tuple[int, str]:
    """The exit code of a command, and the last line that its process wrote."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        capture_output=True,
        text=True,
        check=False,
        env=clean_environment(),
    )
    return done.returncode, done.stdout.strip().splitlines()[-1]


def test_a_command_ends_at_once_while_a_call_waits() -> None:
    code, last = ended("waits", "--version")
    assert code == 0
    assert last.startswith("gristmill")
    assert ended("waits", "sort", "--help")[0] == 0
    assert ended("does not", "--version") == (0, "Python has ended")
