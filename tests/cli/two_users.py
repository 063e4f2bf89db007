"""Two other users of the machine: programs that each of them runs, and a directory they share.

    tests, as root ── mount namespace, closed folders opened ── setpriv ──▶ the program

Python and the project may lie where only root may look (/root). In the namespace of such a program
the closed folder is another one, with nothing in it but what the program needs. All else, also what
is mounted, is that of the machine.
"""

import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .harness import GRISTMILL, Done, clean_environment
from .servers import ServerMissing

__all__ = ["TwoUsers", "User", "two_users"]

_UIDS = (64_301, 64_302)


@dataclass(frozen=True)
class User:
    """A user who is not root and has no groups of others."""

    uid: int
    home: Path

    def command(self, *arguments: str | Path) -> list[str]:
        """The command line by which root runs a program as this user, in one process."""
        become = f"setpriv --reuid {self.uid} --regid {self.uid} --clear-groups --no-new-privs"
        program = shlex.join(map(str, arguments))
        script = f"set -e\n{_opened()}\nexec {become} {program}"
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]

    def environment(self, **more: str) -> dict[str, str]:
        """Variables of this user's programs."""
        own = {"HOME": str(self.home), "GRISTMILL_HOME": str(self.home / "gristmill")}
        return clean_environment(**{**own, "TMPDIR": str(self.home)} | more)

    def run(
        self, *arguments: str | Path, status: int = 0, cwd: Path | None = None, umask: int = 0o022
    ) -> Done:
        """Run `gristmill` to its end, and expect an exit status."""
        done = subprocess.run(
            self.command(GRISTMILL, *arguments),
            capture_output=True,
            encoding="utf-8",
            cwd=cwd or self.home,
            env=self.environment(),
            umask=umask,
            timeout=60,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == status, f"{arguments}: {done.returncode}\n{done.stderr}"
        return Done(done.returncode, done.stdout, done.stderr)

    def start(
        self, *arguments: str | Path, cwd: Path | None = None, umask: int = 0o022
    ) -> subprocess.Popen[str]:
        """Start `gristmill`: signals to what is returned go to it."""
        return subprocess.Popen(
            self.command(GRISTMILL, *arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            cwd=cwd or self.home,
            env=self.environment(),
            umask=umask,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )

    def shell(self, script: str, status: int | None = 0) -> str:
        """Run a script of the shell; returns what it prints on either stream."""
        done = subprocess.run(
            self.command("sh", "-c", script),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            cwd=self.home,
            env=self.environment(),
            umask=0o022,
            timeout=60,
            check=False,
        )
        assert status is None or done.returncode == status, done.stdout
        return done.stdout


@dataclass(frozen=True)
class TwoUsers:
    """Two users, and a directory like /tmp: both make files there and keep their own."""

    alice: User
    bob: User
    shared: Path


@contextmanager
def two_users() -> Generator[TwoUsers]:
    """Make homes for two users, and a directory that they share; all of it goes at the end.

    Raises:
        ServerMissing: Users cannot be changed here.
    """
    lacking = [name for name in ("setpriv", "unshare", "mount") if shutil.which(name) is None]
    if os.geteuid() != 0 or lacking:
        raise ServerMissing(
            f"programs of two users take root, setpriv, unshare and mount; {lacking=}"
        )
    top = Path(tempfile.mkdtemp(prefix="gristmill-users-"))
    try:
        top.chmod(0o755)
        users: list[User] = []
        for uid in _UIDS:
            home = top / str(uid)
            home.mkdir(mode=0o755)
            home.chmod(0o755)
            os.chown(home, uid, uid)
            users.append(User(uid, home))
        shared = top / "shared"
        shared.mkdir()
        shared.chmod(0o1777)
        try:
            users[0].shell("true")
        except AssertionError as problem:
            raise ServerMissing(f"a mount namespace of another user: {problem}") from None
        alice, bob = users
        yield TwoUsers(alice, bob, shared)
    finally:
        shutil.rmtree(top, ignore_errors=True)


@cache
def _opened() -> str:
    """A script, in a mount namespace of its own, that opens what the program needs to all users."""
    needed = {Path(path).resolve() for path in (sys.base_prefix, sys.prefix, GRISTMILL.parent)}
    needed.add(Path(__file__).resolve().parents[2])
    closed: dict[Path, list[Path]] = {}
    for path in sorted(needed):
        for one in _open_below(path):
            top = next((above for above in reversed(one.parents) if not _is_open(above)), None)
            if top is not None:
                closed.setdefault(top, []).append(one)
    return "\n".join(_covered(top, paths) for top, paths in closed.items())


def _is_open(path: Path) -> bool:
    return bool(path.stat().st_mode & stat.S_IXOTH)


def _open_below(path: Path) -> Iterable[Path]:
    """The path, or what is in it where nobody else may enter it."""
    return [path] if not path.is_dir() or _is_open(path) else list(path.iterdir())


def _covered(top: Path, paths: Iterable[Path]) -> str:
    """Lines that put a folder with these paths alone in the place of one that is closed."""
    hold = "/kept"  # on a file system that only this namespace has
    lines = ["mount -t tmpfs -o mode=755 tmpfs /mnt", f"mkdir -p /mnt{hold}"]
    kept = {path: f"/mnt{hold}/{number}" for number, path in enumerate(paths)}
    for path, held in kept.items():
        make = "mkdir" if path.is_dir() else "touch"
        lines += [f"{make} {held}", f"mount --rbind {shlex.quote(str(path))} {held}"]
    lines.append(f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(top))}")
    for path, held in kept.items():
        quoted = shlex.quote(str(path))
        make = f"mkdir -p {quoted}" if path.is_dir() else f"touch {quoted}"
        lines += [
            f"mkdir -p {shlex.quote(str(path.parent))}",
            make,
            f"mount --rbind {held} {quoted}",
        ]
    lines.append("umount --lazy /mnt")
    return "\n".join(lines)
