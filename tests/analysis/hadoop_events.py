"""Writes history files as Hadoop does, in both formats: its schema with what jobs of tests need.

The record names and fields are those of Hadoop's `Events.avpr`, in another order and without some.
"""

import io
import json
from pathlib import Path
from typing import Any

import fastavro

_SPACE = "org.apache.hadoop.mapreduce.jobhistory"


def _record(name: str, /, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    made = [{"name": field, "type": kind} for field, kind in fields.items()]
    return {"type": "record", "name": name, "fields": made}


def _list_of(items: object) -> dict[str, Any]:
    return {"type": "array", "items": items}


_MAYBE = ["null", "string"]
_COUNTER = _record("JhCounter", name="string", displayName="string", value="long")
_GROUP = _record("JhCounterGroup", name="string", displayName="string", counts=_list_of(_COUNTER))
_COUNTERS = _record("JhCounters", name="string", groups=_list_of(_GROUP))
_TASK = {"taskid": "string", "taskType": "string"}
_ATTEMPT = {**_TASK, "attemptId": "string"}

_RECORDS = [
    _record("JobFinished", jobid="string", finishTime="long", totalCounters=_COUNTERS),
    _record("JobInited", jobid="string", launchTime="long", totalMaps="int", totalReduces="int"),
    _record("AMStarted", applicationAttemptId="string", startTime="long"),
    _record("JobSubmitted", jobid="string", jobName="string", submitTime="long", queue=_MAYBE),
    _record("JobUnsuccessfulCompletion", jobid="string", finishTime="long", jobStatus="string"),
    _record("TaskAttemptStarted", **_ATTEMPT, startTime="long", containerId="string"),
    _record("MapAttemptFinished", **_ATTEMPT, finishTime="long", hostname="string"),
    _record(
        "ReduceAttemptFinished",
        **_ATTEMPT,
        shuffleFinishTime="long",
        sortFinishTime="long",
        finishTime="long",
        hostname="string",
    ),
    _record(
        "TaskAttemptUnsuccessfulCompletion",
        **_ATTEMPT,
        finishTime="long",
        error="string",
        clockSplits=_list_of("int"),
    ),
    _record("TaskUpdated", taskid="string", finishTime="long"),
]
_TYPES = {
    "JOB_FINISHED": "JobFinished",
    "JOB_INITED": "JobInited",
    "AM_STARTED": "AMStarted",
    "JOB_SUBMITTED": "JobSubmitted",
    "JOB_FAILED": "JobUnsuccessfulCompletion",
    "JOB_KILLED": "JobUnsuccessfulCompletion",
    "JOB_ERROR": "JobUnsuccessfulCompletion",
    "MAP_ATTEMPT_STARTED": "TaskAttemptStarted",
    "REDUCE_ATTEMPT_STARTED": "TaskAttemptStarted",
    "MAP_ATTEMPT_FINISHED": "MapAttemptFinished",
    "REDUCE_ATTEMPT_FINISHED": "ReduceAttemptFinished",
    "MAP_ATTEMPT_FAILED": "TaskAttemptUnsuccessfulCompletion",
    "REDUCE_ATTEMPT_KILLED": "TaskAttemptUnsuccessfulCompletion",
    "TASK_UPDATED": "TaskUpdated",
}
SCHEMA = {
    "type": "record",
    "name": "Event",
    "namespace": _SPACE,
    "fields": [
        {"name": "type", "type": {"type": "enum", "name": "EventType", "symbols": list(_TYPES)}},
        {"name": "event", "type": _RECORDS},
    ],
}

Events = list[tuple[str, dict[str, Any]]]


def write_jhist(path: Path, events: Events, *, binary: bool) -> Path:
    """Write events as Hadoop's `EventWriter` lays them out; returns the path."""
    head = b"Avro-Binary" if binary else b"Avro-Json"
    body = b"".join(map(_binary if binary else _json, events))
    path.write_bytes(head + b"\n" + json.dumps(SCHEMA).encode() + b"\n" + body)
    return path


_PARSED = fastavro.parse_schema(SCHEMA)


def _binary(event: tuple[str, dict[str, Any]]) -> bytes:
    kind, fields = event
    out = io.BytesIO()
    record = {"type": kind, "event": (f"{_SPACE}.{_TYPES[kind]}", fields)}
    fastavro.schemaless_writer(out, _PARSED, record)
    return out.getvalue()


def _json(event: tuple[str, dict[str, Any]]) -> bytes:
    kind, fields = event
    told = {"type": kind, "event": {f"{_SPACE}.{_TYPES[kind]}": fields}}
    return json.dumps(told).encode() + b"\n\n"


# --- a job ---

BEGAN_MS = 1_700_000_000_000


def terasort(slots: int, *, name: str = "TeraSort", spoil: int = 0, scale: float = 1.0) -> Events:
    """The events of a job with 8 maps of 3 s and 4 reduces of 6 s; `spoil` maps fail at first."""

    def at(seconds: float) -> int:
        return BEGAN_MS + round(seconds * 1000 * scale)

    job = {"jobid": "job_1700000000000_0001"}
    events: Events = [
        ("AM_STARTED", {"applicationAttemptId": "appattempt_1", "startTime": at(0)}),
        ("JOB_SUBMITTED", {**job, "jobName": name, "submitTime": at(-5), "queue": None}),
        ("JOB_INITED", {**job, "launchTime": at(0), "totalMaps": 8, "totalReduces": 4}),
    ]
    now = [2.0] * slots
    for task in range(8):
        slot = now.index(min(now))
        for attempt in range(2 if task < spoil else 1):
            who = _who("m", task, attempt)
            begun = {"startTime": at(now[slot]), "containerId": "container_1"}
            events.append(("MAP_ATTEMPT_STARTED", {**who, **begun}))
            now[slot] += 3.0
            ended: dict[str, Any] = {**who, "finishTime": at(now[slot])}
            if task < spoil and attempt == 0:
                failed = {"error": "a disk was slow", "clockSplits": [1, 2]}
                events.append(("MAP_ATTEMPT_FAILED", {**ended, **failed}))
            else:
                events.append(("MAP_ATTEMPT_FINISHED", {**ended, "hostname": f"n{slot % 2}"}))
    now = [max(now)] * slots
    for task in range(4):
        slot = now.index(min(now))
        who, begun = _who("r", task, 0), now[slot]
        started = {"startTime": at(begun), "containerId": "container_2"}
        events.append(("REDUCE_ATTEMPT_STARTED", {**who, **started}))
        now[slot] += 6.0
        times = {"shuffleFinishTime": at(begun + 2), "sortFinishTime": at(begun + 3)}
        ended = {**who, **times, "finishTime": at(now[slot]), "hostname": f"n{slot % 2}"}
        events.append(("REDUCE_ATTEMPT_FINISHED", ended))
    end = max(now) + 1.0
    return [*events, ("JOB_FINISHED", {**job, "finishTime": at(end), "totalCounters": COUNTERS})]


def _who(kind: str, task: int, attempt: int) -> dict[str, str]:
    name = f"1700000000000_0001_{kind}_{task:06d}"
    of = {"m": "MAP", "r": "REDUCE"}[kind]
    return {"taskid": f"task_{name}", "taskType": of, "attemptId": f"attempt_{name}_{attempt}"}


COUNTERS = {
    "name": "TOTAL_COUNTERS",
    "groups": [
        {
            "name": "org.apache.hadoop.mapreduce.TaskCounter",
            "displayName": "Map-Reduce Framework",
            "counts": [{"name": "CPU_MILLISECONDS", "displayName": "CPU", "value": 40_000}],
        },
        {
            "name": "org.apache.hadoop.mapreduce.lib.input.FileInputFormatCounter",
            "displayName": "File Input Format Counters ",
            "counts": [{"name": "BYTES_READ", "displayName": "Bytes Read", "value": 10**10}],
        },
    ],
}
