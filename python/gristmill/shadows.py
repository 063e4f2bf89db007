"""Files of the user that have the name of a module, and stand in front of it: a `json.py`.

What then fails is code of others, far from the file. This is asked once something failed, and
imports nothing that could be such a file itself.
"""

import os
import sys

__all__ = ["shadows_in"]


def shadows_in(text: str) -> list[str]:
    """Return a sentence for each file in front of a module that an error's text names.

    Args:
        text: What an exception says, or a worker has written.

    Example:
        >>> shadows_in("module 'json' has no attribute 'dumps'")
        []
    """
    found: list[str] = []
    for folder in _folders():
        for name in sorted({*sys.stdlib_module_names, "gristmill"}):
            if f"'{name}'" not in text:
                continue
            for file in (f"{folder}/{name}.py", f"{folder}/{name}/__init__.py"):
                if os.path.isfile(file):  # noqa: PTH113 - as above
                    own = "Gristmill itself" if name == "gristmill" else f"Python's own {name}"
                    found.append(f"{file} stands in front of {own}. What to do: rename it.")
    return found


def _folders() -> list[str]:
    """The folders of `sys.path` that are looked into before Python's own modules."""
    own = os.path.dirname(os.__file__)  # noqa: PTH120 - nothing more is imported here
    here = sys.path[: sys.path.index(own)] if own in sys.path else sys.path[:1]
    beside = sys.argv[1:] if sys.argv else []  # the folder of a file that `gristmill run` loads
    beside = [os.path.dirname(word) for word in beside if word.endswith(".py")]  # noqa: PTH120
    return list(dict.fromkeys(map(os.path.abspath, [*here, *beside])))
