"""The events of Hadoop's history files, in both formats.

    line 1   Avro-Json or Avro-Binary
    line 2   the schema of an event, as JSON: an enumeration `type`, a union `event`
    then     events: a line of JSON each (empty lines between them), or Avro's binary encoding

The schema comes with the file, so that events of any version of Hadoop are read; a field that a
version lacks is not in the dict. Source: Apache Hadoop, `EventWriter`, `Events.avpr`.
"""

import json
from collections.abc import Iterator
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

from gristmill.installing import install_extra

__all__ = ["HistoryEvent", "events_of"]

HistoryEvent = tuple[str, dict[str, Any]]
"""Its type, such as `JOB_FINISHED`, and its fields."""

_JSON, _BINARY = b"Avro-Json", b"Avro-Binary"

#: What a decoder raises on bytes that are no events.
_DAMAGE = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    MemoryError,
    RecursionError,
)


def events_of(path: Path) -> Iterator[HistoryEvent]:
    r"""Yield the events of a file.

    Raises:
        ValueError: It is of another kind, cut within an event, or damaged; says at which byte.
        ModuleNotFoundError: It is binary, and `gristmill[analysis]` is not installed.
        OSError: It cannot be read.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile("w", suffix=".jhist") as file:
        ...     _ = file.write('Avro-Json\n{"type": "record"}\n{"type":"JOB_INITED","event":')
        ...     _ = file.write('{"x.JobInited":{"totalMaps":2}}}\n')
        ...     file.flush()
        ...     list(events_of(Path(file.name)))
        [('JOB_INITED', {'totalMaps': 2})]
    """
    content = path.read_bytes()
    kind, _, rest = content.partition(b"\n")
    schema, newline, _ = rest.partition(b"\n")
    begin = len(kind) + len(schema) + 2
    if kind not in (_JSON, _BINARY):
        message = "its first line is neither Avro-Json nor Avro-Binary"
        raise ValueError(message)
    if not newline:
        message = f"it is cut short at byte {len(content):,}, within its schema"
        raise ValueError(message)
    parsed = _schema(schema, len(kind) + 1)
    return _json(content, begin) if kind == _JSON else _binary(content, begin, parsed)


def _schema(text: bytes, offset: int) -> dict[str, Any]:
    try:
        schema: dict[str, Any] = json.loads(text)
        known = schema["type"] == "record"
    except _DAMAGE as error:
        message = f"its schema, the line at byte {offset:,}, is damaged: {error}"
        raise ValueError(message) from error
    if not known:
        message = f"its schema, the line at byte {offset:,}, is not that of an event"
        raise ValueError(message)
    return schema


def _json(content: bytes, offset: int) -> Iterator[HistoryEvent]:
    for line in content[offset:].splitlines(keepends=True):
        if line.strip():
            yield _json_event(line, offset)
        offset += len(line)


def _json_event(line: bytes, offset: int) -> HistoryEvent:
    try:
        event = json.loads(line)
        (fields,) = event["event"].values()
        return str(event["type"]), dict(fields)
    except _DAMAGE as error:
        how = "damaged" if line.endswith(b"\n") else "cut short"
        message = f"the event at byte {offset:,} is {how}: {error}"
        raise ValueError(message) from error


def _binary(content: bytes, begin: int, schema: dict[str, Any]) -> Iterator[HistoryEvent]:
    try:
        fastavro: Any = import_module("fastavro")
    except ModuleNotFoundError as error:
        message = (
            "it is binary, and fastavro, which reads it, is not installed."
            f" What to do: {install_extra('analysis')}"
        )
        raise ModuleNotFoundError(message, name="fastavro") from error
    try:
        parsed = fastavro.parse_schema(schema)
    except (fastavro.schema.SchemaParseException, *_DAMAGE) as error:
        message = f"its schema is not one of Avro: {error}"
        raise ValueError(message) from error
    file = BytesIO(content)
    file.seek(begin)
    while (offset := file.tell()) < len(content):
        try:
            event = fastavro.schemaless_reader(file, parsed, None)
            yield str(event["type"]), dict(event["event"])
        except EOFError as error:
            message = f"the event at byte {offset:,} is cut short"
            raise ValueError(message) from error
        except _DAMAGE as error:
            message = f"the event at byte {offset:,} is damaged: {error}"
            raise ValueError(message) from error
