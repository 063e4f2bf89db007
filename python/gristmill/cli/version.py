"""What `gristmill --version --json` prints: what was built, from which commit, and how."""

import sys
from importlib.util import find_spec
from typing import Any

from gristmill import _core

__all__ = ["build"]

_STORES = ("hdfs", "http", "objects", "s3")
_EXTRAS = ("fastavro", "matplotlib", "numpy", "pandas", "polars", "pyarrow", "ray", "scipy")
"""Packages that commands and formats use where they are installed."""


def build() -> dict[str, Any]:
    """Return what is known of this build, and what it finds here.

    Example:
        >>> sorted(build())
        ['commit', 'features', 'packages', 'profile', 'python', 'target', 'version']
    """
    return {
        "version": _core.VERSION,
        "commit": _core.COMMIT or None,
        "profile": _core.PROFILE,
        "target": _core.TARGET,
        "features": [name for name in _STORES if _core.has_store(f"{name}://a/b")],
        "python": ".".join(map(str, sys.version_info[:3])),
        "packages": [name for name in _EXTRAS if find_spec(name)],
    }
