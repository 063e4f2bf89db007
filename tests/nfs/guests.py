"""Two machines that share a directory by NFS: guests of QEMU, and NFS-Ganesha on this machine.

    data ◀── ganesha ◀── NFS 4.1 ◀── guest "one"     Debian's kernel; its root is this machine's,
       / ◀──         ◀── NFS 4.1 ◀── guest "two"     read-only, by NFS, too
squashed ◀──                                         one owner for all (all_squash)

The guests are emulated (TCG). Server and guests have a network of their own, a namespace with a
loopback and nothing else: no other program reaches the server, and they reach nothing. Commands go
to a guest by its second serial port.
"""

import gzip
import os
import re
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli.servers import ServerMissing

TOP = Path(__file__).parent.parent.parent
CACHE = TOP / ".cache" / "nfs"

#: The kernel's modules, with what each needs before it.
MODULES = ("virtio_pci", "virtio_net", "nfsv4", "nfs", "virtio_rng")

SQUASHED = "squashed"
"""Beside the directory that is shared: one whose files have one owner, whoever made them."""

BOOT_TIMEOUT_S = 180.0
MEMORY = "1536M"


@dataclass
class Done:
    """A command in a guest that is over."""

    status: int
    said: str


@dataclass
class Guest:
    """A machine that runs."""

    name: str
    process: "subprocess.Popen[bytes]"
    port: socket.socket
    log: Path
    _number: int = field(default=0)

    def run(self, command: str, *, status: int | None = 0, timeout_s: float = 240.0) -> Done:
        """Run a command of the shell, with /tmp/work as its directory; returns what it said."""
        done = self.end(self.begin(command), timeout_s)
        assert status is None or done.status == status, (command, done)
        return done

    def begin(self, command: str) -> str:
        """Begin a command; returns what will stand at its end."""
        self._number += 1
        mark = f"over-{self.name}-{self._number}"
        self.port.sendall(f"({command}) 2>&1 < /dev/null; echo {mark}=$?\n".encode())
        return mark

    def end(self, mark: str, timeout_s: float = 240.0) -> Done:
        """Wait for the end of a command."""
        said = _read_until(self, f"{mark}=", timeout_s)
        text, _, rest = said.partition(f"{mark}=")
        while "\n" not in rest:
            rest += self.port.recv(1000).decode()
        return Done(int(rest.split("\n")[0]), text.replace("\r", ""))


def _read_until(guest: Guest, mark: str, timeout_s: float) -> str:
    deadline_s, said = time.monotonic() + timeout_s, ""
    guest.port.settimeout(1.0)
    while mark not in said:
        late = time.monotonic() > deadline_s
        assert not late, f"{guest.name} says nothing: {said[-2000:]}{guest.log.read_text()[-2000:]}"
        assert guest.process.poll() is None, guest.log.read_text()[-2000:]
        with suppress(TimeoutError):
            said += guest.port.recv(65536).decode(errors="replace")
    return said


def _program(name: str, package: str) -> str:
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if found is None:
        raise ServerMissing(f"no {name}: install it (Debian: {package})")
    return found


def _downloaded(package: str) -> Path:
    """A package of Debian's, unpacked; once."""
    folder = CACHE / package
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        new = CACHE / f"{package}.new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        for command in (["apt-get", "download", package], ["sh", "-c", "dpkg-deb -x *.deb ."]):
            done = subprocess.run(command, cwd=new, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise ServerMissing(f"cannot get Debian's package {package}: {done.stderr[-1000:]}")
        new.rename(folder)
    return folder


def _kernel_package() -> str:
    """The name of the package with the kernel: it has the version in it."""
    command = ["apt-cache", "depends", "linux-image-cloud-amd64"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    named = [
        line.split()[-1] for line in done.stdout.splitlines() if "Depends: linux-image" in line
    ]
    if not named:
        raise ServerMissing("apt knows no kernel (linux-image-cloud-amd64): run apt-get update")
    return named[0]


def _order(modules: Path) -> list[Path]:
    """The modules to load, each behind what it needs, which stands in its file."""
    files = {path.stem.replace("-", "_"): path for path in modules.rglob("*.ko")}
    ordered: list[Path] = []

    def add(name: str) -> None:
        path = files.get(name.replace("-", "_"))
        if path is None or path in ordered:
            return  # built in, or there already
        found = re.search(rb"\0depends=([^\0]*)\0", path.read_bytes())
        for other in found[1].decode().split(",") if found else ():
            add(other)
        ordered.append(path)

    for name in MODULES:
        add(name)
    return ordered


def _entry(name: str, mode: int, data: bytes = b"") -> bytes:
    """A file of a cpio archive, as the kernel reads it (driver-api/early-userspace)."""
    fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08x" % value for value in fields) + name.encode() + b"\0"
    padded = head + b"\0" * (-len(head) % 4)
    return padded + data + b"\0" * (-len(data) % 4)


def _archive(kernel: Path, busybox: Path) -> Path:
    """The first file system of a guest."""
    path = CACHE / "initrd.gz"
    modules = _order(kernel / "lib" / "modules")
    folders = ("bin", "proc", "sys", "dev", "root", "modules")
    entries = [_entry(name, stat.S_IFDIR | 0o755) for name in folders]
    here = Path(__file__).parent / "init"
    order = "".join(f"{module.name}\n" for module in modules).encode()
    files = [("init", here), ("bin/busybox", busybox), *((f"modules/{m.name}", m) for m in modules)]
    entries += [_entry(name, stat.S_IFREG | 0o755, file.read_bytes()) for name, file in files]
    entries += [_entry("modules/order", stat.S_IFREG | 0o644, order), _entry("TRAILER!!!", 0)]
    path.write_bytes(gzip.compress(b"".join(entries), 1))
    return path


@contextmanager
def _network() -> Generator[list[str]]:
    """A network of its own; gives how a command is begun in it."""
    ip, name = _program("ip", "iproute2"), f"gristmill-{os.getpid()}"
    done = subprocess.run([ip, "netns", "add", name], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ServerMissing(f"no network namespace can be made: {done.stderr.strip()}")
    try:
        within = [ip, "netns", "exec", name]
        subprocess.run([*within, ip, "link", "set", "lo", "up"], check=True)
        yield within
    finally:
        subprocess.run([ip, "netns", "delete", name], check=True)


_GANESHA = """
NFS_CORE_PARAM {{
    Protocols = 4; NFS_Port = 2049; Enable_NLM = false; Enable_RQUOTA = false;
}}
NFSv4 {{
    Graceless = true; Lease_Lifetime = 10; Only_Numeric_Owners = true; Minor_Versions = 1;
}}
EXPORT_DEFAULTS {{ Squash = No_Root_Squash; SecType = sys; }}
EXPORT {{
    Export_Id = 1; Path = "{data}"; Pseudo = "/data"; Access_Type = RW; FSAL {{ Name = VFS; }}
}}
EXPORT {{
    Export_Id = 3; Path = "{squashed}"; Pseudo = "/squashed"; Access_Type = RW; Squash = All_Squash;
    FSAL {{ Name = VFS; }}
}}
EXPORT {{
    Export_Id = 2; Path = "/"; Pseudo = "/root"; Access_Type = RO; FSAL {{ Name = VFS; }}
}}
"""


@contextmanager
def _server(folder: Path, within: list[str]) -> Generator[None]:
    """NFS-Ganesha, until the end."""
    config, log = folder / "ganesha.conf", folder / "ganesha.log"
    paths = {"data": folder / "data", "squashed": folder / SQUASHED}
    config.write_text(_GANESHA.format(**paths))
    program = _program("ganesha.nfsd", "nfs-ganesha")
    command = [*within, program, "-F", "-f", str(config), "-L", str(log)]
    process = subprocess.Popen([*command, "-p", str(folder / "ganesha.pid")])
    try:
        deadline_s = time.monotonic() + 30
        while not (log.is_file() and "NFS SERVER INITIALIZED" in log.read_text()):
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise ServerMissing(f"ganesha does not start: {log.read_text()[-2000:]}")
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()


def _folders() -> str:
    """The folders that a guest has of this machine: those with programs and with this project."""
    names = {"bin", "sbin", "lib", "lib32", "lib64", "usr", "etc", "opt", "root", "home", "var"}
    names |= {Path(path).resolve().parts[1] for path in (TOP, sys.executable)}
    return ",".join(sorted(name for name in names if os.path.lexists(f"/{name}")))


@contextmanager
def _guest(
    name: str, folder: Path, within: list[str], kernel: Path, archive: Path
) -> Generator[Guest]:
    said, path = folder / f"{name}.log", folder / f"{name}.socket"
    (image,) = kernel.glob("boot/vmlinuz-*")
    command = [
        *within,
        *(_program("qemu-system-x86_64", "qemu-system-x86"), "-accel", "tcg,thread=multi"),
        *("-cpu", "max", "-smp", "1", "-m", MEMORY, "-nographic", "-no-reboot", "-nodefaults"),
        *("-kernel", str(image), "-initrd", str(archive)),
        *("-append", f"console=ttyS0 quiet panic=-1 name={name} folders={_folders()}"),
        *("-serial", f"file:{said}", "-serial", f"unix:{path},server=on,wait=off"),
        *("-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net"),
        *("-device", "virtio-rng-pci"),
    ]
    with (folder / f"{name}.qemu.log").open("w") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        deadline_s = time.monotonic() + 10
        while not path.is_socket():
            assert process.poll() is None, (folder / f"{name}.qemu.log").read_text()
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        with socket.socket(socket.AF_UNIX) as port_of:
            port_of.connect(str(path))
            guest = Guest(name, process, port_of, said)
            _read_until(guest, "READY", BOOT_TIMEOUT_S)
            yield guest
    finally:
        process.kill()
        process.wait()


@contextmanager
def guests(folder: Path) -> Generator[tuple[Path, Guest, Guest]]:
    """The directory that is shared, and two machines that have it at /tmp/nfs.

    They have the one of one owner at /tmp/squashed.
    """
    if os.geteuid() != 0:
        raise ServerMissing("only root can run NFS-Ganesha over a directory")
    busybox = _downloaded("busybox-static") / "bin" / "busybox"
    kernel = _downloaded(_kernel_package())
    archive = _archive(kernel, busybox)
    (folder / "data").mkdir()
    (folder / SQUASHED).mkdir()
    (folder / SQUASHED).chmod(0o1777)
    with ExitStack() as stack:
        within = stack.enter_context(_network())
        stack.enter_context(_server(folder, within))
        one, two = (
            stack.enter_context(_guest(name, folder, within, kernel, archive))
            for name in ("one", "two")
        )
        yield folder / "data", one, two


def command_of(*words: str | Path) -> str:
    """A command line of gristmill, for the shell of a guest."""
    program = Path(TOP / ".venv" / "bin" / "gristmill")
    return " ".join(
        ["GRISTMILL_HOME=/tmp/home", str(program), *(shlex.quote(str(w)) for w in words)]
    )
