"""What `gristmill --version --json` prints: what was built, from which commit, and how."""

import sys
from importlib.util import find_spec
from typing import Any

from gristmill import _core

__all__ = ["build"]

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
        "features": sorted(kind["schemes"][0] for kind in _core.store_kinds()),
        "python": ".".join(map(str, sys.version_info[:3])),
        "packages": [name for name in _EXTRAS if find_spec(name)],
    }
