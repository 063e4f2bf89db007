"""`--explain` and `-verbose`: what each option was taken to mean."""

import json
import shlex
from typing import Any

from gristmill.streaming.resolved import ResolvedJob
from gristmill.units import show_ordinal

__all__ = ["explained"]


def explained(resolved: ResolvedJob, splits: int | None = None) -> list[str]:
    """Return the lines that say what a job is."""
    definition = resolved.definition
    lines = [
        f"input        {', '.join(resolved.inputs)}: {_format(definition['format'])}",
        f"mapper       {_step(definition['map'], definition['map_streams'])}",
    ]
    if resolved.partitions > 0:
        if definition["combine"] is not None:
            lines.append(
                f"combiner     {_step(definition['combine'], definition['reduce_streams'])}"
            )
        order = definition["comparator"]
        by = "bytes of the key" if order is None else f"fields of the key: {order or 'all of it'}"
        lines.append(f"order        {by}")
        lines.append(
            f"partitions   {resolved.partitions}, {_partitioner(definition['partitioner'])}"
        )
        if resolved.compress_runs not in ("", "none"):
            lines.append(f"runs         compressed with {resolved.compress_runs}")
        lines.append(f"reducer      {_step(definition['reduce'], definition['reduce_streams'])}")
    else:
        lines.append("reducer      none: the maps' output is the job's")
    output = definition["output"]
    codec = f", compressed with {output['codec']}" if output["codec"] else ""
    lines.append(
        f"output       {resolved.output}: "
        f"{output['format']}{codec}{', lazily' if output['lazy'] else ''}"
    )
    if splits is not None:
        lines.append(f"map tasks    {splits}")
    lines += [f"file         {name} is {path}" for name, path in definition["links"]]
    lines += [
        f"archive      {name}/ is unpacked from {path}" for name, path in definition["archives"]
    ]
    lines += [f"variable     {name}={value}" for name, value in definition["variables"]]
    maps, reduces = resolved.attempts
    attempts = str(maps) if reduces == maps else f"{maps} of a map, {reduces} of a reduce"
    timeout = definition["timeout_ms"]
    lines.append(
        f"attempts     {attempts}, each ended after {timeout / 1000:g} s of silence"
        if timeout
        else f"attempts     {attempts}, however long they are silent"
    )
    lines += [
        f"attempts     a slow {side} task gets no second one: mapreduce.{side}.speculative=false"
        for side, holds in zip(("map", "reduce"), resolved.speculative.values(), strict=True)
        if not holds
    ]
    skipping = definition["skipping"]
    if skipping is not None:
        most = f"{skipping['most_records']} records, {skipping['most_groups']} groups"
        kept = skipping["folder"] or "nowhere"
        lines.append(f"skip mode    after {skipping['after']} attempts: {most}; kept in {kept}")
    lines += [
        f"debugging    {shlex.join(definition['debug'][side])}, for a {side} that failed"
        for side in ("map", "reduce")
        if definition["debug"][side] is not None
    ]
    lines += [
        f"failures     {percent} % of the {side.removesuffix('_failures_percent')} tasks may fail"
        for side, percent in resolved.max_failed_percent.items()
        if percent > 0
    ]
    lines += [
        f"property     {name}={value}" for name, value in resolved.arguments.properties.items()
    ]
    lines += [f"remark       {remark}" for remark in resolved.remarks]
    return lines


def _format(form: Any) -> str:  # noqa: ANN401 - JSON
    if isinstance(form, str):
        return {"whole": "whole files"}[form]
    (name, settings), *_ = form.items()
    return _read_as(name, settings) + _within(settings)


def _within(settings: Any) -> str:  # noqa: ANN401 - JSON
    longest = settings.get("longest")
    return "" if longest is None else f" of less than {longest} bytes, their ends included"


def _read_as(name: str, settings: Any) -> str:  # noqa: ANN401 - JSON
    match name:
        case "auto":
            return "sequence files or lines"
        case "text":
            delimiter = settings["delimiter"]
            return "lines" if delimiter is None else f"records ended by {json.dumps(delimiter)}"
        case "key_value":
            return f"lines of a key, {json.dumps(chr(settings['separator']))} and a value"
        case "xml":
            return f"what is from {settings['begin']} to {settings['end']}"
        case _:
            return f"sequence files, as {settings['view']}"


def _step(step: Any, streams: Any) -> str:  # noqa: ANN401 - JSON
    if isinstance(step, str):
        return {
            "identity": "none: records go through unchanged",
            "inverse": "key and value change places",
            "aggregate": "the aggregates that the keys name",
        }[step]
    if "select" in step:
        selected = step["select"]
        return f"fields {selected['spec']}, separated by {json.dumps(selected['separator'])}"
    fields = streams["key_fields"]
    separator = json.dumps(streams["output_separator"])
    place = separator if fields == 1 else f"the {show_ordinal(fields)} {separator}"
    key = f"the key up to {place}"
    reads = streams["input"]
    if streams.get("ignore_key"):
        reads += " (values alone)"
    writes = f"{streams['output']}, {key}" if streams["output"] == "text" else streams["output"]
    return f"{shlex.join(step['script'])}; reads {reads}, writes {writes}"


def _partitioner(step: Any) -> str:  # noqa: ANN401 - JSON
    if isinstance(step, str):
        return "by a hash of the key"
    (name, value), *_ = step.items()
    match name:
        case "fields":
            return f"by a hash of fields {value}" if value else "by a hash of the key's text"
        case "first_fields":
            return f"by a hash of the first {value} fields"
        case "binary":
            return f"by a hash of bytes {value[0]} to {value[1]} of the key"
        case _:
            return f"by the ranges of {value}"
