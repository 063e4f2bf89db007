"""How much memory there is, where Python has to know before the engine does."""

import os

__all__ = ["available_bytes"]


def available_bytes() -> int:
    """Return how much memory new work can have: of the machine, and of the control group.

    Example:
        >>> available_bytes() > 0
        True
    """
    return min(amount for amount in (_machine(), _group()) if amount is not None)


def _machine() -> int:
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:  # noqa: PTH123 - a line at a time
            found = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(found.split()[1]) * 1024
    except (OSError, StopIteration):  # not Linux
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _group() -> int | None:
    amounts: list[int] = []
    for name in ("memory.max", "memory.current"):
        try:
            with open(f"/sys/fs/cgroup/{name}", encoding="ascii") as file:  # noqa: PTH123
                amounts.append(int(file.read()))
        except (OSError, ValueError):  # no limit
            return None
    return max(amounts[0] - amounts[1], 1)
