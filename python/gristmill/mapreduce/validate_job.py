"""Whether a job makes sense: what contradicts itself is refused before anything runs."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

from gristmill import _core
from gristmill.amounts import whole_number
from gristmill.mapreduce.aggregates import Aggregate
from gristmill.mapreduce.check_calls import check_calls
from gristmill.mapreduce.extremes import Extreme
from gristmill.mapreduce.formats.column_names import named_twice
from gristmill.mapreduce.formats.format import Input, Output
from gristmill.mapreduce.formats.inputs import advice_on
from gristmill.mapreduce.formats.keyvalue import kv
from gristmill.mapreduce.partitioners import Ranges, SampledRanges
from gristmill.mapreduce.spec import Spec
from gristmill.names import as_name

__all__ = ["check_job"]

_FUNCTIONS = ("map", "map_batches", "setup", "teardown", "combine", "reduce_batches")
_KEY_FUNCTIONS = ("sort_by", "group_by")
_NAME = re.compile(r"[A-Za-z0-9]+")

_OURS = (Aggregate.__module__, Extreme.__module__)
"""Modules whose functions make reductions."""

_BUILTINS: dict[Any, str] = {
    sum: "gm.sum()",
    len: "gm.count()",
    min: "gm.min()",
    max: "gm.max()",
    list: "gm.collect()",
    tuple: "gm.collect()",
    set: "gm.distinct()",
}
"""Functions of Python that people give as a reduction, and what does it here."""

_ORDERED = ("first", "last")
"""Reductions for which the order of values counts."""

_PARTS_MAX = 100_000
"""As the engine's PARTITIONS_MAX."""

_BAD_MAX = 2**63 - 1


def check_job(job: Spec) -> None:
    """Refuse a job whose options contradict each other.

    Raises:
        ValueError: They do.
        TypeError: One is not what it should be.
    """
    _check_types(job)
    check_calls(job)
    _one_of(job.map, job.map_batches, "map= and map_batches=")
    _one_of(job.reduce, job.reduce_batches, "reduce= and reduce_batches=")
    _check_map(job)
    _check_shuffle(job)
    _check_outputs(job)
    job.split_sizes()
    _whole(job.skip_bad, "skip_bad", 0, _BAD_MAX, "give how many records may be left out")
    if job.skip_bad and (job.map_batches is not None or job.reduce_batches is not None):
        raise _wrong(
            "skip_bad leaves out records, and functions of batches see none",
            "use map= and reduce=, or handle bad records in the function",
        )


def _check_types(job: Spec) -> None:
    _is_a(job.name, (str,), "name", "text")
    _is_a(job.outputs, (Mapping,), "outputs", 'outputs by their names: {"errors": gm.jsonl()}')
    wanted = advice_on(job.input, 'an input such as gm.text("books/"), or a job')
    _is_a(job.input, (Input, Spec), "the input", wanted)
    if job.output is not None:
        _is_a(job.output, (Output,), "output", 'an output such as gm.tsv("counts/")')
    for name in (*_FUNCTIONS, *_KEY_FUNCTIONS):
        function: Any = getattr(job, name)
        if function is not None and not callable(function):
            raise TypeError(_refusal(f"{name} is {function!r}", "give a function"))
    reduce: object = job.reduce
    if callable(reduce) and (isinstance(reduce, FunctionType) and reduce.__module__ in _OURS):
        called = f"gm.{reduce.__name__}"
        raise TypeError(_refusal(f"reduce is {called} itself", f"call it: {called}()"))
    for builtin, ours in _BUILTINS.items():
        if reduce is builtin:
            what = f"reduce is Python's {builtin.__name__}, which takes no key"
            raise TypeError(_refusal(what, f"give {ours}"))
    if (
        job.reduce is not None
        and not isinstance(job.reduce, Aggregate)
        and not callable(job.reduce)
    ):
        raise TypeError(
            _refusal(f"reduce is {job.reduce!r}", "give a function, or one such as gm.sum()")
        )
    partition: object = job.partition_by
    known = isinstance(partition, (Ranges, SampledRanges)) or partition == "hash"
    if not known and not callable(partition):
        advice = 'give "hash", gm.ranges([...]), gm.sampled_ranges() or a function'
        raise TypeError(_refusal(f"partition_by is {partition!r}", advice))


def _is_a(value: object, kinds: tuple[type, ...], name: str, wanted: str) -> None:
    if not isinstance(value, kinds):
        hint = ", called," if isinstance(value, type) or callable(value) else ""
        raise TypeError(_refusal(f"{name} is {value!r}", f"give {wanted}{hint}".rstrip(",")))


def _whole(value: object, name: str, least: int, most: int, advice: str) -> None:
    number = whole_number(value)
    if number is None:
        raise TypeError(_refusal(f"{name} is {value!r}", "give a whole number"))
    if not least <= number <= most:
        raise _wrong(f"{name} is {number}", advice)


def _one_of(first: object, second: object, names: str) -> None:
    if first is not None and second is not None:
        raise _wrong(f"{names} exclude each other", "give one of them")


def _check_map(job: Spec) -> None:
    if job.map is None and job.map_batches is None:
        keyed = not isinstance(job.input, Input) or job.input.keyed
        if job.reduces and not keyed:
            raise _wrong(
                f"without a map, the records of {job.input} would have to be pairs",
                "give map=, a function that yields (key, value)",
            )
    if job.map_batches is not None:
        source = job.input.output or kv() if isinstance(job.input, Spec) else job.input
        if not (isinstance(source, Input) and source.batched):
            raise _wrong(
                f"map_batches takes lines of text, parquet and arrow, and {source} is none of them",
                "give map= instead of map_batches=",
            )


def _check_shuffle(job: Spec) -> None:
    if not job.reduces:
        for name in ("combine", "sort_by", "group_by", "parts"):
            if getattr(job, name) is not None:
                raise _wrong(f"{name}= is for jobs that reduce", "give reduce=, or leave it out")
        if job.partition_by != "hash":
            raise _wrong("partition_by= is for jobs that reduce", "give reduce=, or leave it out")
        return
    _check_order(job)
    if job.parts is not None:
        _whole(job.parts, "parts", 1, _PARTS_MAX, f"give a number from 1 to {_PARTS_MAX}")
    if isinstance(job.partition_by, Ranges):
        _check_cuts(job.partition_by.cuts)
        needed = len(job.partition_by.cuts) + 1
        if job.parts not in (None, needed):
            raise _wrong(
                f"{needed - 1} cuts make {needed} parts, and parts is {job.parts}",
                "leave parts out",
            )


def _check_cuts(cuts: tuple[Any, ...]) -> None:
    try:
        encoded = list(map(_core.encode_order, cuts))
    except (TypeError, ValueError) as error:
        what, _, advice = str(error).removesuffix(".").partition(". What to do: ")
        raise TypeError(
            _refusal(f"a cut of gm.ranges is not a key: {what}", advice or "give keys")
        ) from None
    for before, after, cut in zip(encoded, encoded[1:], cuts[1:], strict=False):
        if before >= after:
            raise _wrong(
                f"the cut {cut!r} of gm.ranges does not come after the one before it",
                "give the cuts in ascending order, each once",
            )


def _check_order(job: Spec) -> None:
    aggregate = job.reduce if isinstance(job.reduce, Aggregate) else None
    ordered = job.sort_by is not None and aggregate is not None and aggregate.name in _ORDERED
    for name in ("combine", "sort_by", "group_by"):
        if getattr(job, name) is None:
            continue
        if aggregate is not None and not (ordered and name != "combine"):
            raise _wrong(
                f"{name}= is for functions, and {job.reduce!r} is the engine's own",
                "leave it out, or write the reduction as a function",
            )
        if name != "combine" and job.combine is not None:
            raise _wrong(f"combine= and {name}= exclude each other", "leave one of them out")


def _check_outputs(job: Spec) -> None:
    for output in (job.output, *job.outputs.values()):
        if isinstance(output, Output) and not output.written:
            raise _wrong(f"{output} is an input only", "write for example gm.tsv or gm.kv")
    for name, output in job.outputs.items():
        _is_a(name, (str,), "the name of an output", "text")
        if not _NAME.fullmatch(name) or name == "part":
            raise _wrong(
                f"an output is named {name!r}",
                "take letters and digits, and another name than part",
            )
        _is_a(output, (Output,), f"the output {name}", "an output such as gm.jsonl()")
        if getattr(output, "paths", ()):
            raise _wrong(
                f"the output {name} is {output}, and named outputs are files {name}-* of output=",
                "leave its path out",
            )
    names = [Path(as_name(path)).name for path in job.files]
    twice = named_twice(names)
    if twice:
        raise _wrong(
            f"two side files have the name {twice.pop()}, by which context.file finds them",
            "rename one of them",
        )


def _wrong(what: str, advice: str) -> ValueError:
    return ValueError(_refusal(what, advice))


def _refusal(what: str, advice: str) -> str:
    return f"cannot make the job: {what}. What to do: {advice}."
