"""A worker: the process in which user code runs, one task after another.

    driver ── frames ─▶ stdin    kind: 1 byte | payload length: u32 LE | payload
           ◀─ frames ── stdout   D definition, T task ─▶    ◀─ H hello, R report, F failure

The engine's side is crates/tasks/src/worker/. At its start a worker moves the two pipes to private
descriptors and puts /dev/null and a third pipe in their place, so that what user code prints goes
to the log of the task, apart from its stderr, and nothing that it reads or closes breaks the
protocol. It ends when its stdin does.

A definition is 32 bytes of key and a pickle; the task that follows begins with the key, then comes
the task itself, as JSON. What the pickle holds runs it: an object that has a method
`run_task(spec_json)`, or else the definition of a MapReduce job. The last `REMEMBERED` definitions
stay loaded; the engine counts them in the same way.

`command` starts this file by its path, with `-P`, and with the driver's `sys.path` as arguments: so
it finds what the driver finds, whatever lies in the current folder, and the children of user code
inherit the driver's environment. One variable is added, if it is not set: `OPENBLAS_NUM_THREADS=1`,
since NumPy would begin a thread for each processor in each worker (85 ms of CPU, too).
`python -m gristmill.worker STDOUT PULSE` does for a Python that finds all by itself. Little is
imported before the hello, and what tasks of MapReduce jobs need right after it, while the driver
may still plan the job.
"""

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["REMEMBERED", "command", "main"]

REMEMBERED = 4
"""Definitions that stay loaded; crates/tasks/src/worker/frame.rs has the same number."""

_KEY_BYTES = 32
_PIPE_BYTES = 1 << 20
_PRIVATE = 200
_OF_TASKS = "gristmill.mapreduce.worker.running"


def command() -> tuple[str, list[str], dict[str, str], str, str]:
    """Return how to start a worker that finds what this process finds.

    Returns:
        The program; its arguments, to which the engine adds two; its whole environment;
        the folder it starts in; and a folder for temporary files. Workers with equal commands are
        interchangeable: whoever changes `sys.path`, the environment or the folder gets new ones.

    Example:
        >>> program, arguments, environment, folder, scratch = command()
        >>> arguments[arguments.index("-P") + 1].endswith("worker.py")
        True
    """
    import tempfile
    from pathlib import Path

    from gristmill import _core

    flags = ["-O"] * sys.flags.optimize + ["-X", "utf8"] * sys.flags.utf8_mode
    flags += ["-E"] * sys.flags.ignore_environment + ["-s"] * sys.flags.no_user_site
    for option in sys.warnoptions:
        flags += ["-W", option]
    folder = str(Path.cwd())
    path = [entry or folder for entry in sys.path]  # "" is the current folder
    arguments = [*flags, "-P", str(Path(__file__).resolve()), *path]
    environment = dict(os.environ)
    options = _core.store_options()
    if options is not None:
        environment["GRISTMILL_STORE_OPTIONS"] = options
    return sys.executable, arguments, environment, folder, tempfile.gettempdir()


def main(arguments: list[str]) -> int:
    """Be a worker until stdin ends.

    Args:
        arguments: The program's name, the entries of `sys.path` if they are to be set, the
            descriptors of the pipe for what is printed, and of the pulse.
    """
    *path, stdout, pulse = arguments[1:]
    if path:
        sys.path[:] = path
    channel = _Channel.take_over(int(stdout))
    home = _Home()
    _watch_signals()
    sys.argv = arguments[:1]
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    from gristmill import _core

    _core.pulse_open(int(pulse))
    channel.send(b"H", _core.VERSION.encode())
    with suppress(BaseException):  # a file of the user's that is in the way: the task says so
        import_module(_OF_TASKS)
    _serve(channel, home)
    return 0


class _Channel:
    """The two pipes to the driver."""

    def __init__(self, read_from: int, write_to: int) -> None:
        self._from = read_from
        self._to = write_to

    @classmethod
    def take_over(cls, stdout: int) -> "_Channel":
        """Take the pipes away from where user code would find them; it has `stdout` instead."""
        channel = cls(_private(0), _private(1))
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(stdout, 1)
        os.close(stdout)
        # A log wants whole lines, as they are printed, whatever is in them.
        for stream in (sys.stdout, sys.stderr):
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:
                reconfigure(line_buffering=True, errors="backslashreplace")
        return channel

    def receive(self) -> tuple[bytes, bytearray] | None:
        """Return the next frame; `None` at the end."""
        header = self._read(5)
        if header is None:
            return None
        payload = self._read(int.from_bytes(header[1:], "little"))
        return None if payload is None else (bytes(header[:1]), payload)

    def send(self, kind: bytes, payload: bytes) -> None:
        """Send a frame."""
        left = memoryview(kind + len(payload).to_bytes(4, "little") + payload)
        while left:
            left = left[os.write(self._to, left) :]

    def _read(self, size: int) -> bytearray | None:
        found = bytearray()
        while len(found) < size:
            piece = os.read(self._from, min(size - len(found), _PIPE_BYTES))
            if not piece:
                return None
            found += piece
        return found


def _private(number: int) -> int:
    """A descriptor of our own, which the children of user code do not inherit.

    It is beyond those that code closes which closes all that it may have, as daemons do.
    """
    from fcntl import F_DUPFD_CLOEXEC, fcntl

    try:
        return fcntl(number, F_DUPFD_CLOEXEC, _PRIVATE)
    except OSError:  # the system lets a process have fewer
        return os.dup(number)


def _watch_signals() -> None:
    """Ctrl-C is the driver's to act on; a crash, and SIGUSR1, write the stacks to the log."""
    import faulthandler
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stderr = _private(2)  # user code may close or replace its own
    faulthandler.enable(file=stderr)
    faulthandler.register(signal.SIGUSR1, file=stderr)


class _Definition:
    """A definition, loaded for its first task, which can say why it cannot be."""

    def __init__(self, pickled: bytearray) -> None:
        self._pickled: bytearray | None = pickled
        self._loaded: object = None

    def load(self) -> object:
        if self._pickled is not None:
            import pickle

            self._loaded = pickle.loads(self._pickled)  # noqa: S301 - from the driver, our parent
            self._pickled = None
        return self._loaded


class _Home:
    """What a worker is when it starts, whatever user code does to it."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._folder = os.getcwd()  # noqa: PTH109 - pathlib takes 4 ms to import
        self._logs = (_private(2), _private(1), _private(2))

    def go(self) -> None:
        """Undo what the task before has done: the folder is the driver's, what is printed is log.

        A file that is opened while stdout is closed takes its number, and gets what is printed.
        """
        for number in range(3):
            try:
                os.fstat(number)
            except OSError:
                os.dup2(self._logs[number], number)
        try:
            os.chdir(self._folder)
        except OSError:  # it is gone, and nobody wants it
            return

    def end_if_forked(self, error: BaseException | None = None) -> None:
        """End a process that user code forked and that came back from there.

        It is no worker: what it said would be taken for what its parent does.
        """
        if os.getpid() == self._process:
            return
        left = error
        while (
            left is not None and left.__cause__ and type(left).__module__.startswith("gristmill.")
        ):
            left = left.__cause__  # ours only tells of the user's
        code = left.code if isinstance(left, SystemExit) else left
        if isinstance(left, Exception):
            sys.excepthook(left.__class__, left, left.__traceback__)
        _flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


def _serve(channel: _Channel, home: _Home) -> None:
    """Do what the driver asks until it asks no more."""
    definitions: dict[bytes, _Definition] = {}  # the one used last at the end
    while (frame := channel.receive()) is not None:
        kind, payload = frame
        key = bytes(payload[:_KEY_BYTES])
        del payload[:_KEY_BYTES]
        known = definitions.pop(key, None)
        if kind == b"D":
            definitions[key] = _Definition(payload)
            for old in list(definitions)[:-REMEMBERED]:
                del definitions[old]
        elif kind == b"T" and known is not None:
            definitions[key] = known
            home.go()
            channel.send(*_answer(known, payload, home))
        else:
            from gristmill.worker_failure import encoded, of_bug

            channel.send(b"F", encoded(of_bug(f"the worker cannot use a frame {kind!r}")))


def _answer(definition: _Definition, spec: bytearray, home: _Home) -> tuple[bytes, bytes]:
    """Run a task; whatever it raises is its failure and not the worker's."""
    doing = "load the job's functions in a worker"
    try:
        loaded = definition.load()
        doing = "run the job's functions"
        report = _runner(loaded)(spec.decode()).encode()
        home.end_if_forked()
        _flush()
    except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt of user code too
        home.end_if_forked(error)
        from gristmill.worker_failure import describe, encoded

        return b"F", encoded(describe(error, doing))
    return b"R", report


def _flush() -> None:
    """Let the log have what was printed; user code may have put anything in the place of stdout."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # noqa: BLE001, S112 - closed, None, or an object of the user's
            continue


def _runner(loaded: object) -> "Callable[[str], str]":
    run: Callable[[str], str] | None = getattr(loaded, "run_task", None)
    if run is not None:
        return run
    run_task = import_module(_OF_TASKS).run_task
    return lambda spec: run_task(loaded, spec)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
