"""A worker driven as the engine drives it: frames over its pipes."""

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import IO, Any, Self

import cloudpickle

from gristmill.worker import command

KEY = b"k" * 32


class Worker:
    """A worker process, and what it printed and wrote to its stderr."""

    def __init__(self, folder: Path, *more: str) -> None:
        program, arguments, environment, _, _ = command()
        self.pulse = folder / "pulse"
        self.pulse.write_bytes(bytes(4096))
        pulse = os.open(self.pulse, os.O_RDWR)
        printed, stdout = os.pipe()
        self.process = subprocess.Popen(
            [program, *arguments, *more, str(stdout), str(pulse)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            process_group=0,
            pass_fds=[stdout, pulse],
        )
        os.close(stdout)
        os.close(pulse)
        assert self.process.stderr is not None
        pipes = (os.fdopen(printed, "rb"), self.process.stderr)
        self._said: list[list[bytes]] = [[] for _ in pipes]
        self._readers = [
            threading.Thread(target=self._read, args=both)
            for both in zip(pipes, self._said, strict=True)
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.end()

    def _read(self, pipe: IO[bytes], said: list[bytes]) -> None:
        with pipe:
            while piece := os.read(pipe.fileno(), 1 << 16):
                said.append(piece)

    def send(self, kind: bytes, payload: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(kind + len(payload).to_bytes(4, "little") + payload)
        self.process.stdin.flush()

    def receive(self) -> tuple[bytes, bytes]:
        assert self.process.stdout is not None
        header = self.process.stdout.read(5)
        return header[:1], self.process.stdout.read(int.from_bytes(header[1:], "little"))

    def define(self, runner: object, key: bytes = KEY) -> None:
        """Send a definition whose method `run_task` is `runner`'s."""
        self.send(b"D", key + cloudpickle.dumps(runner))

    def task(self, spec: str = "{}", key: bytes = KEY) -> tuple[bytes, bytes]:
        """Have a task run; the answer."""
        self.send(b"T", key + spec.encode())
        return self.receive()

    def failure(self, spec: str = "{}", key: bytes = KEY) -> dict[str, Any]:
        """Have a task run that fails; how."""
        kind, payload = self.task(spec, key)
        assert kind == b"F", (kind, payload)
        return json.loads(payload)

    def end(self) -> tuple[int, str]:
        """End its stdin and wait; the exit code and all that it printed and wrote to stderr."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        code = self.process.wait(timeout=30)
        for reader in self._readers:
            reader.join()
        self.process.stdout.close()
        if self.process.stderr is not None:
            self.process.stderr.close()
        return code, b"".join(piece for said in self._said for piece in said).decode()
