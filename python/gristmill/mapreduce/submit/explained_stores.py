"""What `explain` says of each store of others that a job of user code reads from or writes to."""

from typing import Any

from gristmill.units import show_bytes, show_count, show_rate

__all__ = ["explained_store"]


def explained_store(store: dict[str, Any]) -> str:
    """Return a line about one of a plan's `stores`.

    Example:
        >>> store = {"purpose": "input", "place": "s3://b", "bytes": 200_000_000, "requests": 29}
        >>> explained_store(store | {"tried": {"latency_s": 0.0006, "read": 5e8}})
        'input in s3://b, 200 MB by about 29 requests; it answers in 0.6 ms and sends 500 MB/s now'
    """
    line = f"{store['purpose']} in {store['place']}"
    if store["bytes"] is not None:
        line += f", {show_bytes(store['bytes'])}"
    if store["requests"] is not None:
        line += f" by about {show_count(store['requests'], 'request')}"
    if (tried := store["tried"]) is not None:
        answer, rate = f"{tried['latency_s'] * 1000:.1f} ms", show_rate(tried["read"], 1)
        line += f"; it answers in {answer} and sends {rate} now"
    return line
