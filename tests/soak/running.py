"""A job that runs: what it says, how long it is silent, and what must hold of its end."""

import os
import select
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field

SILENCE_S = 30.0
"""How long a job may say nothing."""

LONGEST_S = 120.0


@dataclass
class Running:
    """A job that runs, what it has said, and how long it was silent at most."""

    process: "subprocess.Popen[bytes]"
    said: bytes = b""
    silent_s: float = 0.0
    at_s: float = field(default_factory=time.monotonic)

    def listen(self, for_s: float) -> bool:
        """Listen for so long, or until the job is over; whether it is."""
        stream = self.process.stderr
        assert stream is not None
        until_s = time.monotonic() + for_s
        while (left_s := until_s - time.monotonic()) > 0:
            if self.process.poll() is not None:
                break
            if select.select([stream], [], [], min(left_s, 0.05))[0]:
                self.said += os.read(stream.fileno(), 1 << 16)
                self.at_s = time.monotonic()
            self.silent_s = max(self.silent_s, time.monotonic() - self.at_s)
        return self.process.poll() is not None

    def end(self) -> tuple[int, str]:
        """Wait for the end; the exit status, and all that was said."""
        is_over = self.listen(LONGEST_S)
        if not is_over:
            self.process.kill()
        assert is_over, f"it hangs: {self.said.decode(errors='replace')}"
        assert self.process.stderr is not None
        with suppress(ValueError):
            self.said += self.process.stderr.read()
        self.process.stderr.close()
        said = self.said.decode(errors="replace")
        assert self.silent_s < SILENCE_S, f"silent for {self.silent_s:.0f} s: {said}"
        return self.process.returncode, said


def check_told(status: int, said: str) -> None:
    """One paragraph says why, and nothing of how the program is made."""
    assert status == 1, (status, said)
    assert "Traceback" not in said, said
    errors = [line for line in said.splitlines() if line.startswith("gristmill ")]
    assert len(errors) >= 1, said
    assert "panicked" not in said, said
