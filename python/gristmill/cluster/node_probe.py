"""What looks at a node for `gristmill doctor`, and tries there what a job will do.

    machine ─▶ versions, processors, memory, open files      directory ─▶ room, kind, a file written
    leave, see, clear ─▶ a small file in a shared directory, by every node, seen by all the others
    reach ─▶ a request to each agent                         now ─▶ the clock

This module goes to the nodes as it is, with `gristmill.cluster.actor`, and imports the standard
library alone. What it returns are plain dictionaries; the functions look at this machine, too.
"""

import http.client
import json
import os
import platform
import re
import resource
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from gristmill.cluster.actor import Agent, tls_files

__all__ = [
    "NodeProbe",
    "clear",
    "directory",
    "kind_of_mount",
    "leave",
    "machine",
    "place",
    "reach",
    "see",
]

REACH_S = 5.0
"""How long an agent may take to answer a request."""

AT_ONCE = 16
"""So many agents are asked at once."""

PLACE_S = 20.0
"""How long a store may take to say what is at a location."""

_ENGINE_S = 20.0
_AGAIN_S = 1.0
"""A client of a shared mount may see a new file a little later."""

_TRIAL = bytes(65_536)
_OF_TRIAL = "-trial"

_ENGINE = "import json, sys; sys.path.insert(0, sys.argv[1]); import _core; del sys.path[0]; "
_MACHINE = (
    "print(json.dumps({'version': _core.VERSION, 'cpus': _core.default_workers(),"
    " 'available_bytes': _core.available_memory(),"
    " 'held_bytes': int(open('/proc/self/status').read().partition('RssAnon:')[2].split()[0])"
    " * 1024}))"
)
_MOUNT = "print(json.dumps({'shared': _core.shared_mount(sys.argv[2])}))"
_PLACE = "print(json.dumps({'is_there': _core.exists(sys.argv[2])}))"


class NodeProbe(Agent):
    """A Ray actor: looks at its node, and begins an agent there."""

    def now(self) -> float:
        """What the node's clock says."""
        return time.time()

    def machine(self) -> dict[str, Any]:
        """Say what the node is."""
        return machine(self._folder())

    def directories(self, paths: list[str], name: str) -> list[dict[str, Any]]:
        """Say what directories are, on this node; without any, where runs go then."""
        folder = self._folder()
        return [directory(path, folder, name) for path in paths or [tempfile.gettempdir()]]

    def place(self, location: str, variables: dict[str, str]) -> dict[str, Any]:
        """Say whether a store answers when it is asked for a location."""
        return place(location, self._folder(), os.environ | variables)

    def leave(self, paths: list[str], name: str) -> dict[str, str]:
        """Leave a file in each directory; what went wrong, by directory."""
        return leave(paths, name)

    def see(self, paths: list[str], names: list[str]) -> dict[str, list[str]]:
        """Say which of these files are seen, by directory."""
        return see(paths, names)

    def begin_somewhere(self, spec: dict[str, Any], variables: dict[str, str]) -> dict[str, str]:
        """Begin the agent: elsewhere, if it cannot spill where it should."""
        said = self.begin(spec, variables)
        if "error" in said and spec["spill_dir"]:
            elsewhere = self.begin(spec | {"spill_dir": []}, variables)
            return {"spill_error": said["error"]} | elsewhere
        return said

    def reach(self, urls: dict[str, str], token: str) -> dict[str, float | str]:
        """Ask each agent something: the seconds that it takes, or what goes wrong."""
        return reach(urls, token)

    def end(self, paths: list[str], name: str) -> None:
        """Remove what was left, and end the agent."""
        clear(paths, [name])
        self.finish(over=True)
        self.ended()


def machine(engine: Path) -> dict[str, Any]:
    """Return what this machine is; `engine` is the folder in which the engine lies."""
    ray = sys.modules.get("ray")
    pages, page_bytes = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "python": platform.python_version(),
        "ray": getattr(ray, "__version__", None),
        "open_files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "total_bytes": pages * page_bytes,
        "engine": _asked(engine, _MACHINE),
    }


def directory(path: str, engine: Path, name: str) -> dict[str, Any]:
    """Return what a directory of this machine is, and whether a file can be written there.

    Its name begins with `name`, so that others can remove it, too.
    """
    found: dict[str, Any] = {"path": path}
    try:
        room = os.statvfs(path)
        if not Path(path).is_dir():
            return found | {"error": "Not a directory"}
        found["free_bytes"] = room.f_bavail * room.f_frsize
        found["free_names"] = room.f_favail if room.f_files else None
        found["kind"] = kind_of_mount(os.path.realpath(path), _mounts())
        found["shared"] = _asked(engine, _MOUNT, path).get("shared")
        try:
            with Path(path, name + _OF_TRIAL).open("xb") as file:
                file.write(_TRIAL)
                file.flush()
                os.fsync(file.fileno())
        finally:
            clear([path], [name])
    except OSError as error:
        found["error"] = error.strerror or str(error)
    return found


def place(location: str, engine: Path, environment: dict[str, str]) -> dict[str, Any]:
    """Return whether something is at a location in a store, or why that cannot be said."""
    return _asked(engine, _PLACE, location, environment=environment, limit_s=PLACE_S)


def leave(paths: Iterable[str], name: str) -> dict[str, str]:
    """Leave a new file in each directory, with its name in it; what went wrong, by directory."""
    wrong: dict[str, str] = {}
    for path in paths:
        try:
            with Path(path, name).open("x", encoding="ascii") as file:
                file.write(name)
        except FileExistsError as error:  # it is somebody else's, or a link
            wrong[path] = error.strerror or str(error)
        except OSError as error:
            wrong[path] = error.strerror or str(error)
            clear([path], [name])
    return wrong


def see(paths: Iterable[str], names: Iterable[str]) -> dict[str, list[str]]:
    """Return which of these files are seen, by directory."""
    wanted = list(names)
    found = {path: [name for name in wanted if _is_seen(path, name)] for path in paths}
    if any(len(seen) < len(wanted) for seen in found.values()):
        time.sleep(_AGAIN_S)
        for path, seen in found.items():
            found[path] = [name for name in wanted if name in seen or _is_seen(path, name)]
    return found


def clear(paths: Iterable[str], names: Iterable[str]) -> None:
    """Remove files that were left, and those of a trial."""
    for path in paths:
        for name in names:
            for file in (name, name + _OF_TRIAL):
                with suppress(OSError):
                    Path(path, file).unlink()


def reach(urls: dict[str, str], token: str) -> dict[str, float | str]:
    """Ask each agent for a run that it has not: the seconds that it takes, or what goes wrong."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = threads.map(partial(_reached, token), urls.values())
        return dict(zip(urls, answers, strict=True))


def kind_of_mount(path: str, table: str) -> str:
    r"""Return the kind of the file system that a path lies in, by the text of /proc/self/mountinfo.

    Example:
        >>> table = (
        ...     "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        ...     "40 22 0:50 / /my\\040disk rw shared:7 - nfs4 server:/a rw\n"
        ... )
        >>> kind_of_mount("/my disk/a", table), kind_of_mount("/my disks", table)
        ('nfs4', 'ext4')
    """
    point, kind = "", ""
    for line in table.splitlines():
        own, _, rest = line.partition(" - ")
        fields = own.split(" ")
        if len(fields) < 5:
            continue
        mounted = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[4])
        is_over = f"{path}/".startswith(f"{mounted.rstrip('/')}/")
        if is_over and len(mounted) >= len(point):  # the last of several counts
            point, kind = mounted, rest.split(" ")[0]
    return kind


def _mounts() -> str:
    try:
        return Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape")
    except OSError:
        return ""


def _is_seen(path: str, name: str) -> bool:
    try:
        return Path(path, name).read_text(encoding="ascii") == name
    except (OSError, ValueError):
        return False


def _connection(url: str) -> http.client.HTTPConnection:
    """A connection to an agent, with TLS where agents use it."""
    scheme, _, address = url.partition("://")
    tls = tls_files(os.environ)
    if scheme == "http" or tls is None:
        return http.client.HTTPConnection(address, timeout=REACH_S)
    trusted = ssl.create_default_context(cafile=tls["authorities"])
    return http.client.HTTPSConnection(address, timeout=REACH_S, context=trusted)


def _reached(token: str, url: str) -> float | str:
    """An agent refuses a request without the token, and has no such run for one with it."""
    began_s = time.monotonic()
    connection = _connection(url)
    try:
        for headers, expected in ({}, 401), ({"Authorization": f"Bearer {token}"}, 404):
            connection.request("HEAD", "/runs/0/none", headers=headers)
            reply = connection.getresponse()
            reply.read()
            if reply.status != expected:
                return f"something else answers there ({reply.status} {reply.reason})"
        return (time.monotonic() - began_s) / 2
    except TimeoutError:
        return f"no answer within {REACH_S:.0f} s"
    except (OSError, http.client.HTTPException) as error:
        return getattr(error, "strerror", None) or str(error) or type(error).__name__
    finally:
        connection.close()


def _asked(
    engine: Path,
    question: str,
    *words: str,
    environment: dict[str, str] | None = None,
    limit_s: float = _ENGINE_S,
) -> dict[str, Any]:
    """What the engine answers, in an interpreter of its own; an error that it ends with."""
    command = [sys.executable, "-I", "-S", "-c", _ENGINE + question, str(engine), *words]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            text=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no answer within {limit_s:.0f} s"}
    if done.returncode == 0:
        return json.loads(done.stdout)
    lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
    kind, _, text = lines[-1].partition(": ")
    return {"error": text or kind}
