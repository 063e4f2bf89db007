"""The file that defines a job, as it was: `code_patch.py` compares it with what it is now."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Source", "script"]


@dataclass(frozen=True, kw_only=True)
class Source:
    """The file that defines a job: `gristmill retry` reads it again."""

    path: str
    """The file, from the root on."""
    sha256: str
    """What it held."""
    name: str | None = None
    """What the job, or the function that makes it, is called in it; `None` of a script."""
    settings: dict[str, str] = field(default_factory=dict[str, str])
    """What the function is given."""
    inputs: tuple[str, ...] = ()
    """What is read in the place of the job's own input."""
    output: str | None = None
    """Where it writes, in the place of the job's own output."""
    number: int = 0
    """Which job of its chain it is."""

    @classmethod
    def of(cls, path: str, **given: Any) -> "Source | None":  # noqa: ANN401 - the fields
        """Return what is in a file now; `None` if that cannot be read."""
        from hashlib import sha256  # workers need none

        try:
            text = Path(path).read_bytes()
        except OSError:
            return None
        path = os.path.abspath(path)  # noqa: PTH100 - links stay
        return cls(path=path, sha256=sha256(text).hexdigest(), **given)


def script() -> Source | None:
    """Return the script that runs, if it is a file."""
    path = getattr(sys.modules["__main__"], "__file__", None)
    return Source.of(path) if isinstance(path, str) else None
