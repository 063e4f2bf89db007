"""The variables of stores of a submitted command: only its driver can read them, once it runs.

    driver, on the head ── a key, in the log ──▶ this machine
    driver ◀── Ray's store ◀── the variables, sealed by that key, in one request ──┘
      └──▶ its environment; what was sealed leaves the store

The package of a command, its request and its log stay on the head after the job, and in Ray's
store, where every program of the cluster may read them. So the credentials are in none of them.
The private key is in the memory of the driver alone (docs/decisions/submitted-secrets.md).
"""

import hashlib
import json
import os
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from gristmill import _core
from gristmill.cluster.connection import connected, failed, load, variables_of_stores

__all__ = ["received", "sealed_by"]

_LONGEST_S = 60.0
"""How long the driver waits: the follower asks for the log at least once a second."""

_TICK_S = 0.1


def sealed_by(key: str) -> tuple[str, bytes]:
    """Return the package with the variables for a driver: its name, and what it has.

    Args:
        key: The driver's public key, as its log has it.

    Example:
        >>> unsealer = _core.Unsealer()
        >>> name, sealed = sealed_by(_shown(unsealer))
        >>> name == _name_of(_shown(unsealer))
        True
        >>> json.loads(unsealer.open(sealed)) == variables_of_stores()
        True
    """
    variables = json.dumps(variables_of_stores()).encode()
    return _name_of(key), _core.seal(b64decode(key), variables)


@contextmanager
def received(tell: Callable[[str], None]) -> Generator[None]:
    """Have the variables in the environment, and be connected to the cluster.

    Args:
        tell: Puts a key into the log.

    Raises:
        OSError: They do not come.
    """
    ray, unsealer = load(), _core.Unsealer()
    key = _shown(unsealer)
    with connected(ray):
        tell(key)
        os.environ |= json.loads(unsealer.open(_taken(_name_of(key))))
        yield


def _shown(unsealer: _core.Unsealer) -> str:
    return b64encode(unsealer.public_key()).decode()


def _name_of(key: str) -> str:
    """The name of the package that is sealed by a key."""
    return f"gristmill_{hashlib.sha256(key.encode()).hexdigest()[:32]}.zip"


def _taken(package: str) -> bytes:
    """What a package has, which is removed from Ray's store."""
    store: Any = import_module("ray.experimental.internal_kv")
    key = f"gcs://{package}".encode()
    by = time.monotonic() + _LONGEST_S
    while time.monotonic() < by:
        found = store._internal_kv_get(key)
        if found:
            store._internal_kv_del(key)
            return found
        time.sleep(_TICK_S)
    raise failed(
        "the machine that submitted the job did not send the variables of its stores within"
        f" {_LONGEST_S:.0f} s",
        "keep the command running there until the job has ended",
    )
