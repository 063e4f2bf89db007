"""What runs on a node: unpacks what came along, starts the agent, and says what it says.

This module goes to the nodes as it is, and imports the standard library alone: Ray is all that
they have.
"""

import glob
import hashlib
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypedDict

__all__ = ["Agent", "Packed", "digest", "machine", "tls_files"]

_PROGRAM = (
    "import os, sys; os.fork() and os._exit(0); "
    "sys.excepthook = lambda kind, error, _: print(getattr(error, 'gristmill_told', ''), "
    "f'{kind.__name__}: {error}', sep=chr(10), file=sys.stderr); "
    "sys.path.insert(0, sys.argv[1]); import _core; del sys.path[0]; "
    "_core.run_agent(sys.stdin.readline(), lambda said: print(said, flush=True))"
)
"""What the interpreter of an agent runs: the engine alone, without the package.

Its last two lines say why it ended: the engine's error in parts, as JSON, and the sentence.

A fork of it, since Ray kills the children of an actor that ends: this one removes its runs first.
"""

_KEPT_S = 7 * 24 * 3600
"""How long a copy stays on a node that no job asks for."""


class Packed(TypedDict):
    """Files of a folder of the driver's machine, or a large file by itself."""

    path: str
    names: list[str]
    """The files, by their paths below the folder; of one by itself that is empty."""
    files: dict[str, tuple[int, bytes]]
    """Mode and content of each; of none if Ray keeps them, or if they are too large to go along."""
    kept: list[Any]
    """The object of Ray that is `files`: a node that lacks them gets it."""
    sha256: str


def digest(contents: Iterable[tuple[str, bytes]]) -> str:
    """Return a hash of files, with their names.

    Example:
        >>> digest([("a", b"1")]) == digest([("a", b"1")]) != digest([("a1", b"")])
        True
    """
    found = hashlib.sha256()
    for name, content in contents:
        found.update(f"{len(os.fsencode(name))} {len(content)} ".encode())
        found.update(os.fsencode(name))
        found.update(content)
    return found.hexdigest()


def machine() -> str:
    """Return what tells this machine, or this container, from others.

    Example:
        >>> machine() == machine()
        True
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return f"{socket.gethostname()} {boot}"


def tls_files(environment: Mapping[str, str]) -> dict[str, str] | None:
    """Return the files of this node's identity where Ray uses TLS: agents use it then, too.

    Example:
        >>> tls_files({"RAY_USE_TLS": "0"}) is None
        True
        >>> tls_files({"RAY_USE_TLS": "1", "RAY_TLS_CA_CERT": "ca.pem"})["authorities"]
        'ca.pem'
    """
    if environment.get("RAY_USE_TLS", "").lower() not in {"1", "true"}:
        return None
    return {
        "certificate": environment.get("RAY_TLS_SERVER_CERT", ""),
        "key": environment.get("RAY_TLS_SERVER_KEY", ""),
        "authorities": environment.get("RAY_TLS_CA_CERT", ""),
    }


class Agent:
    """A Ray actor: begins an agent, which ends when the actor does.

    One that is not told that the job is over leaves its runs, for a driver that resumes the job.
    """

    def __init__(self, packed: list[Packed], driver: str) -> None:
        """Be told what came along.

        No secret is among this: Ray keeps it for all clients of the cluster to read.

        Args:
            packed: What came along; the engine is in the first.
            driver: The machine of the driver.
        """
        self._packed = packed
        self._driver = driver
        self._moved: dict[str, str] = {}
        self._process: subprocess.Popen[str] | None = None
        self._tried = threading.Event()

    def begin(self, spec: dict[str, Any], variables: dict[str, str]) -> dict[str, str]:
        """Start the agent; what it says of itself, or the error that it ended with.

        Args:
            spec: What it is told.
            variables: What it has in its environment besides that of this node.
        """
        try:
            return self._begin(spec, os.environ | variables)
        finally:
            self._tried.set()

    def _begin(self, spec: dict[str, Any], environment: dict[str, str]) -> dict[str, str]:
        try:
            engine = self._folder()
        except OSError as error:
            return {"error": f"cannot begin an agent: {error}."}
        spill = spec["spill_dir"] or [tempfile.gettempdir()]
        spec = spec | {"spill_dir": spill, "here": self._of_node(environment)}
        spec["tls"] = tls_files(os.environ)
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, str(engine)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                text=True,
                start_new_session=True,
            )
            self._process = process
            if process.stdin is None or process.stdout is None:
                return {"error": "the agent has no pipes"}
            process.stdin.write(_as_json(spec) + "\n")
            process.stdin.flush()
            hello = process.stdout.readline()
            process.wait()
            if hello:
                return {"hello": hello}
            errors.seek(0)
            lines = errors.read().strip().splitlines()
        said = lines[-1].partition(": ") if lines else ("", "", "")
        told = {"told": lines[-2]} if lines[-2:-1] and lines[-2].startswith("{") else {}
        return {"error": said[2] or said[0] or "the agent ended without a word"} | told

    def ended(self) -> None:
        """Wait for the end of the agent, or for the word that none has begun."""
        self._tried.wait()
        if self._process is not None and self._process.stdout is not None:
            self._process.stdout.read()

    def finish(self, *, over: bool) -> None:
        """Tell the agent that the job is over, or nothing more: it ends soon."""
        if self._process is None or self._process.stdin is None:
            return
        with suppress(OSError):  # it has ended
            if over:
                self._process.stdin.write("over\n")
            self._process.stdin.close()

    def _folder(self) -> Path:
        """The folder of the engine on this node, on which all that came along is then."""
        if not self._moved:
            self._moved = {one["path"]: _here(one) for one in self._packed}
            self._packed.clear()
        return Path(next(iter(self._moved.values())), "gristmill")

    def _of_node(self, environment: dict[str, str]) -> dict[str, Any]:
        """What user code finds here in the place of what it was started with."""
        moved = self._moved
        is_other = self._driver != machine()
        ray = Path(getattr(sys.modules.get("ray"), "__file__", None) or sys.prefix).parent
        return {
            # All of them: what is the same may lie below what is not.
            "moved": [*moved.items()] if any(a != b for a, b in moved.items()) else [],
            "python": sys.executable,
            "python_path": [one for one in sys.path if one and not Path(one).is_relative_to(ray)],
            "environment": environment if is_other else {},
        }


def _here(packed: Packed) -> str:
    """Where something is on this node: as on the driver's machine, or a copy of it."""
    path = packed["path"]
    if not packed["files"] and not packed["kept"]:
        _must_be_there(path, packed["names"])
        return path
    if _is_it(path, packed):
        return path
    folder = _home() / packed["sha256"][:24]
    if not _is_it(folder, packed):
        new = Path(tempfile.mkdtemp(dir=folder.parent))
        for name, (mode, content) in _files(packed).items():
            file = new / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            file.chmod(mode)
        _put_in_place(new, folder, is_whole=lambda: _is_it(folder, packed))
    os.utime(folder)
    return str(folder)


def _files(packed: Packed) -> dict[str, tuple[int, bytes]]:
    """The files themselves, from where Ray keeps them."""
    if not packed["kept"]:
        return packed["files"]
    ray = sys.modules["ray"]  # an actor runs in it
    return ray.get(packed["kept"][0])


def _must_be_there(path: str, names: list[str]) -> None:
    for file in (Path(path, name) for name in names):
        if not file.exists():
            raise FileNotFoundError(
                f"{file} is not there, and too large to go along with the job. What to do: put it"
                " into a place that all nodes see"
            )


def _home() -> Path:
    """The folder of copies on this node, without those that no job asks for.

    Another user may have taken its name, where all may make files: then it has a longer one.
    """
    top, name = tempfile.gettempdir(), f"gristmill-{os.getuid()}"
    with suppress(FileExistsError):
        Path(top, name).mkdir(mode=0o700)
    named = [Path(top, name), *sorted(Path(top).glob(f"{glob.escape(name)}-*"))]
    home = next(filter(_is_private, named), None)
    home = home or Path(tempfile.mkdtemp(prefix=f"{name}-", dir=top))
    for folder in home.iterdir():
        with suppress(FileNotFoundError):  # another agent was faster
            if time.time() - folder.stat().st_mtime > _KEPT_S:
                shutil.rmtree(folder, ignore_errors=True)
    return home


def _is_private(path: Path) -> bool:
    """Whether a path is a folder of this user's that nobody else may look into."""
    try:
        found = path.lstat()
    except OSError:
        return False
    is_closed = stat.S_ISDIR(found.st_mode) and found.st_mode & 0o077 == 0
    return is_closed and found.st_uid == os.getuid()


def _put_in_place(new: Path, folder: Path, is_whole: Callable[[], bool]) -> None:
    """Give a copy its name, unless another agent was faster; one that was changed goes."""
    old = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        if folder.exists() and not is_whole():
            folder.rename(old)
        new.rename(folder)
    except OSError:
        if not is_whole():
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)
        shutil.rmtree(new, ignore_errors=True)


def _is_it(path: str | Path, packed: Packed) -> bool:
    """Whether a path of this node has what came along."""
    try:
        contents = ((name, Path(path, name).read_bytes()) for name in packed["names"])
        return digest(contents) == packed["sha256"]
    except OSError:
        return False


def _as_json(value: object) -> str:
    """As the engine reads it, which spells bytes of names that are no UTF-8 (`gristmill.names`)."""
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[\udc80-\udcff]", lambda one: f"\\u0000{ord(one[0]) - 0xDC00:02x}", text)
