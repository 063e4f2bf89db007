"""A directory of this machine, seen through two mounts of sshfs: as two machines see a shared one.

    data ◀── sftp-server ◀── sshfs, a    what one machine writes
         ◀── sftp-server ◀── sshfs, b    another one reads

Each mount has caches and locks of its own. The servers are begun by the mounts, and talk to them by
pipes: no port is open.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .servers import ServerMissing

_SERVERS = ("openssh/sftp-server", "ssh/sftp-server", "sftp-server")
_MOUNT_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Mounts:
    """A directory, and where it is mounted."""

    data: Path
    a: Path
    b: Path
    pids: tuple[int, int]
    """Who answers for each mount: one that is stopped hangs."""


def _programs() -> tuple[str, str, Path]:
    """The programs that mount and unmount, and the server."""
    sshfs = shutil.which("sshfs")
    unmount = shutil.which("fusermount3") or shutil.which("fusermount")
    if sshfs is None or unmount is None:
        raise ServerMissing("no sshfs: install it (Debian: sshfs)")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise ServerMissing("/dev/fuse may not be used here")
    folders = (Path("/usr/lib"), Path("/usr/libexec"))
    found = (folder / name for folder in folders for name in _SERVERS)
    server = next((path for path in found if path.is_file()), None)
    if server is None:
        raise ServerMissing("no sftp-server: install it (Debian: openssh-sftp-server)")
    return sshfs, unmount, server


@contextmanager
def mounted_for_all(folder: Path) -> Generator[tuple[Path, Path, "subprocess.Popen[bytes]"]]:
    """Mount `folder/data` at `folder/a` for all users, and unmount it; also the process of sshfs.

    All files there belong to the user of the server, who is root.
    """
    sshfs, unmount, server = _programs()
    data, place, begin = folder / "data", folder / "a", folder / "begin"
    begin.write_text(f"#!/bin/sh\nexec {server}\n")
    begin.chmod(0o755)
    data.mkdir()
    place.mkdir()
    options = f"ssh_command={begin},allow_other"
    process = subprocess.Popen([sshfs, "-f", "-o", options, f"localhost:{data}", str(place)])
    try:
        deadline_s = time.monotonic() + _MOUNT_TIMEOUT_S
        while not place.is_mount():
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise ServerMissing("sshfs does not mount for other users")
            time.sleep(0.01)
        yield data, place, process
    finally:
        subprocess.run([unmount, "-u", "-z", str(place)], capture_output=True, check=False)
        process.kill()
        process.wait()


@contextmanager
def mounted(folder: Path) -> Generator[Mounts]:
    """Mount `folder/data` at two places beside it, and unmount it."""
    sshfs, unmount, server = _programs()
    data, places = folder / "data", (folder / "a", folder / "b")
    begin = folder / "begin"
    begin.write_text(f"#!/bin/sh\nexec {server}\n")
    begin.chmod(0o755)
    data.mkdir()
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for place in places:
            place.mkdir()
            command = [sshfs, "-f", "-o", f"ssh_command={begin}", f"localhost:{data}"]
            with (folder / "sshfs.log").open("a") as log:
                process = subprocess.Popen([*command, str(place)], stdout=log, stderr=log)
            processes.append(process)
            deadline_s = time.monotonic() + _MOUNT_TIMEOUT_S
            while not place.is_mount():
                if process.poll() is not None or time.monotonic() > deadline_s:
                    said = (folder / "sshfs.log").read_text()
                    raise ServerMissing(f"sshfs does not mount: {said}")
                time.sleep(0.01)
        first, second = processes
        yield Mounts(data, *places, (first.pid, second.pid))
    finally:
        for place, process in zip(places, processes, strict=False):
            subprocess.run([unmount, "-u", "-z", str(place)], capture_output=True, check=False)
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()
