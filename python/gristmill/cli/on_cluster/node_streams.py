"""Streams that a job reads on a cluster: copied to beside its output, which all nodes see."""

from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from typing import cast

from gristmill.locations import workplace
from gristmill.mapreduce.formats.paths import is_stream
from gristmill.mapreduce.submit.stream_copies import check_seen, copied_for_nodes, file_of
from gristmill.options import Value

__all__ = ["seen_by_nodes"]


@contextmanager
def seen_by_nodes(
    values: Mapping[str, Value], stop: Callable[[], bool], *, quiet: bool
) -> Generator[Mapping[str, Value]]:
    """Yield the options of a job, with files in the place of streams, which nodes cannot read.

    Args:
        values: Its options.
        stop: Whether to end before all is read.
        quiet: Whether no progress is shown.

    Raises:
        ValueError: The nodes would not see the copies.
        OSError: A stream cannot be read, or the disk is full.
        KeyboardInterrupt: `stop` said so.

    Example:
        >>> with seen_by_nodes({"inputs": ("a.txt",)}, lambda: False, quiet=True) as values:
        ...     values
        {'inputs': ('a.txt',)}
    """
    inputs = cast("tuple[str, ...]", values["inputs"] or ("-",))
    if not any(map(is_stream, inputs)):
        yield values
        return
    output = values["output"]
    folder = None if output in (None, "-") or values.get("check") else str(output)
    streams = [path for path in inputs if is_stream(path) and file_of(path) is None]
    check_seen(streams, folder, collect=bool(values["collect"]))
    beside, progress = str(workplace(folder or "out", [])), False if quiet else None
    with ExitStack() as held:
        paths: list[str] = []
        for number, path in enumerate(inputs):
            if not is_stream(path):
                paths.append(path)
            elif path not in inputs[:number]:  # the second time it is at its end
                copied = copied_for_nodes(path, beside, stop, progress)
                paths.append(held.enter_context(copied))
        yield {**values, "inputs": tuple(paths)}
