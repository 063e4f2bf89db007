"""Gristmill: sort, group, count, search and copy data that is bigger than memory."""

import warnings

from gristmill._core import DEBUG_BUILD, VERSION

__all__ = ["__version__"]

__version__ = VERSION

if DEBUG_BUILD:
    warnings.warn(
        "gristmill is a debug build, many times slower than a release build: run `make build`",
        RuntimeWarning,
        stacklevel=2,
    )
