"""A task of a job, in a worker process: `run_task(definition, spec) -> report`, both JSON.

    spec ─▶ map:     reader ─▶ the user's map ─▶ Emitter ─▶ runs       or, without a reduce, files
         ─▶ reduce:  Groups ─▶ the user's reduce ─▶ writer ─▶ files
         ─▶ all files of the output ─▶ those that lack columns, written anew

The spec and the report are the engine's UserAttemptSpec and UserTaskReport (task/user/spec.rs).
What goes wrong comes out as `TaskFailure`.
"""

import os
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any

from gristmill import _core
from gristmill.mapreduce.context import Context, counted, plain_text
from gristmill.mapreduce.definition import Definition, Functions
from gristmill.mapreduce.functions import ContractError, bound, name_of, records_of
from gristmill.mapreduce.results.read_again import Watch
from gristmill.mapreduce.worker.columns import Columns
from gristmill.mapreduce.worker.failures import Failure, TaskFailure, describe
from gristmill.mapreduce.worker.mapping import Consume, Mapper, batch_function, map_function
from gristmill.mapreduce.worker.reducing import Reducer, of_pairs
from gristmill.mapreduce.worker.skipping import Skipping
from gristmill.mapreduce.worker.task_files import TaskFiles
from gristmill.names import from_json, to_json

__all__ = ["Task", "run_task"]


def run_task(definition: Definition, spec_json: str) -> str:
    """Run one attempt of a task.

    Args:
        definition: The job's.
        spec_json: The engine's UserAttemptSpec, or a folder and the files in it.

    Returns:
        The engine's UserTaskReport, as JSON, or those of the files that were written anew.

    Raises:
        TaskFailure: The user's code, the input or a device failed.
    """
    spec: dict[str, Any] = from_json(spec_json)
    if "work" not in spec:
        return to_json(_with_one_schema(definition, **spec))
    try:
        functions = definition.functions()
    except Exception as error:  # whatever the import of a user's module raises
        failure = describe(error, doing=f"load the functions of {definition.name} in a worker")
        raise TaskFailure(failure) from error
    return to_json(Task(definition, functions, spec, spec_json).run())


def _with_one_schema(definition: Definition, folder: str, files: list[Any]) -> list[Any]:
    from gristmill.mapreduce.worker.one_schema import renewed

    try:
        return renewed(folder, files, {"part": definition.output, **definition.outputs})
    except Exception as error:  # a device, or values that go with no type
        raise TaskFailure(describe(error, doing="give all parts one schema")) from error


class Task:
    """An attempt, and what it works with."""

    def __init__(
        self, definition: Definition, functions: Functions, spec: dict[str, Any], spec_json: str
    ) -> None:
        self._process = os.getpid()
        ((kind, work),) = spec["work"].items()
        self.kind: str = kind
        self.definition = definition
        self.functions = functions
        self._combined: object = None
        self._watch: Watch | None = None
        self.spec = spec
        self.spec_json = spec_json
        self.work: dict[str, Any] = work
        self.number: int = work["number"] if kind == "map" else work["partition"]
        # What an earlier version kept of a task that failed does not say it.
        _core.set_ahead_bytes(spec.get("ahead_bytes", 0))
        label = f"{kind[0]}-{self.number:05}"
        self.files = TaskFiles(spec["output"], label, definition.output, definition.outputs)
        allowed = definition.skip_bad
        self.skipping = (
            Skipping(allowed, spec["places"][0], spec["task"], self.files) if allowed else None
        )
        self.context = Context(
            job_id=spec["job_id"],
            task=self.number,
            kind=kind,
            attempt=spec["attempt"],
            partition=None if kind == "map" else self.number,
            partitions=spec["partitions"],
            _files=definition.files,
            _open_output=self.files.output,
            _tell=_sign_of_life,
        )

    def run(self) -> dict[str, Any]:
        """Do it; return the report by the names of its fields.

        Raises:
            TaskFailure: The user's code, the input or a device failed.
        """
        try:
            return self.mapped() if self.kind == "map" else self.reduced()
        except TaskFailure as error:
            raise TaskFailure(error.failure.renamed(self.definition.names)) from error
        except BaseException as error:
            failure = describe(error, doing=f"finish a {self.kind} task")
            raise TaskFailure(failure.renamed(self.definition.names)) from error

    def mapped(self) -> dict[str, Any]:
        """Map a split."""
        functions, definition, what = self.functions, self.definition, self.work["what"]
        if functions.map_batches is not None:
            reader = definition.input.open_batches(what)
        else:
            reader = definition.input.open(what, tolerant=self.skipping is not None)
        self.context.place = reader.where
        self.context.tag = definition.input.tag_of(what)
        self._hook("setup", functions.setup, None)
        emitter = self._emitter() if functions.reduces else None
        consume: Consume = self.files.main().consume if emitter is None else emitter.consume
        mapper = self._mapper(reader, self._tables_too(emitter) or consume)
        if emitter is not None:
            mapper.of_combiner = partial(self._of_combiner, emitter)
        mapper.run()
        self._hook("teardown", functions.teardown, consume)
        report = self._report(reader.records_read(), reader.bytes_read())
        if definition.record_limit is not None:
            report["bytes_in"] = self.work["bytes"]
        if emitter is not None:
            report.update(from_json(self._finished(emitter)))
            if self._watch is not None:
                self.context.counters.update(self._watch.found())
            report["kinds"] |= _of_input(report["kinds"], self.context.tag or _number(what))
        return self._with_files(report, emitter is None)

    def _finished(self, emitter: "_core.Emitter") -> str:
        try:
            return emitter.finish()
        except BaseException as error:
            failure = self._of_combiner(emitter, error)
            if failure is None:
                raise
            raise TaskFailure(failure) from error

    def _of_combiner(
        self, emitter: "_core.Emitter", error: BaseException, more: str = ""
    ) -> Failure | None:
        """The failure, if it was the combiner that raised."""
        if not emitter.combining():
            return None
        doing = f"combine {name_of(self.functions.combine)}"
        advice = of_pairs(error)
        return describe(
            error, doing=doing, key=self._combined, has_key=True, more=more, advice=advice
        )

    def _tables_too(self, emitter: "_core.Emitter | None") -> Consume | None:
        """What takes pairs and tables of them, for a map that may give both."""
        functions = self.functions
        if emitter is None or functions.map_batches is None:
            return None
        own = (functions.partition, functions.group_by, functions.sort_by)
        return Columns(emitter, any(function is not None for function in own)).consume

    def _mapper(self, reader: Any, consume: Consume) -> Mapper:  # noqa: ANN401 - a Reader
        functions, pairs = self.functions, self.functions.reduces
        batches = functions.map_batches
        if batches is not None:
            function = batch_function(bound(batches, self.context), pairs=pairs)
            doing = f"map_batches {name_of(batches)}"
        else:
            given = None if functions.map is None else bound(functions.map, self.context)
            function = map_function(given, pairs=pairs)
            doing = "take the records" if given is None else f"map {name_of(given)}"
        return Mapper(
            reader=reader,
            function=function,
            consume=consume,
            doing=doing,
            reading=f"read {self.definition.input}",
            limit=self.definition.record_limit,
            skipping=self.skipping,
            can_skip=batches is None and self.definition.input.can_skip(self.work["what"]),
            keyed=pairs,
            aggregate=functions.aggregate,
            key_functions={
                "sort_by": functions.sort_by,
                "group_by": functions.group_by,
                "partition_by": functions.partition,
            },
            context=self.context,
        )

    def _emitter(self) -> "_core.Emitter":
        functions = self.functions
        aggregate, combine = functions.aggregate, functions.combine
        return _core.Emitter(
            self.spec_json,
            aggregate=None if aggregate is None else aggregate.spec,
            cuts=None if functions.cuts is None else list(functions.cuts),
            partition=functions.partition,
            group_by=functions.group_by,
            sort_by=functions.sort_by,
            combine=None if combine is None else self._keyed(bound(combine, self.context)),
        )

    def _keyed(self, combine: Callable[..., Any]) -> Callable[..., Any]:
        """The combiner, but that the key is known that it fails at."""
        watch = self._watch = Watch("combine", combine)

        def keyed(key: Any, values: Any) -> Any:  # noqa: ANN401 - the user's
            self._combined = key
            return combine(key, watch.over(values))

        return keyed

    def reduced(self) -> dict[str, Any]:
        """Reduce a partition."""
        functions = self.functions
        aggregate = functions.aggregate
        groups = _core.Groups(
            self.spec_json,
            aggregate=None if aggregate is None else aggregate.spec,
            counts=aggregate is not None and aggregate.counts,
            ordered=functions.group_by is not None or functions.sort_by is not None,
            ranked=functions.cuts is not None,
        )
        main = self.files.main()
        combined = functions.combine is not None
        reducer = Reducer(groups, main.consume, self.context, combined)
        self._hook("setup", functions.setup, None)
        if aggregate is not None:
            reducer.aggregated(main.take)
        elif functions.reduce_batches is not None:
            reducer.batches(bound(functions.reduce_batches, self.context))
        elif callable(functions.reduce):
            reducer.each(bound(functions.reduce, self.context), self.skipping)
        self._hook("teardown", functions.teardown, main.consume)
        report = self._report(0, 0)
        report.update(from_json(groups.finish()))
        return self._with_files(report, True)

    def _hook(self, role: str, function: Any, consume: Consume | None) -> None:  # noqa: ANN401
        """Run `setup` or `teardown`; what `teardown` yields goes where the task's records go."""
        if function is None:
            return
        try:
            if consume is None:
                given = function(self.context)
                if isinstance(given, (Generator, Coroutine)):
                    raise ContractError(
                        f"{role} {name_of(function)} has a yield or an await in it, so that nothing"
                        " of it runs",
                        "make it a plain function",
                    )
            else:
                consume(records_of(function, role, "records")(self.context))
        except BaseException as error:
            failure = describe(error, doing=f"run {role} {name_of(function)}")
            raise TaskFailure(failure) from error

    def _report(self, records_in: int, bytes_in: int) -> dict[str, Any]:
        if os.getpid() != self._process:  # forked by user code: the files are its parent's
            os._exit(0)
        return {"records_in": records_in, "bytes_in": bytes_in}

    def _with_files(self, report: dict[str, Any], writes: bool) -> dict[str, Any]:
        files = self.files.close()
        if self.skipping is not None:
            self.skipping.end()
        if writes:
            report["records_out"] = self.files.records()
            report["bytes_out"] = sum(file["bytes"] for file in files)
        return {
            **report,
            "files": files,
            "skipped": 0 if self.skipping is None else self.skipping.count,
            "counters": counted(self.context.counters),
            "status": plain_text(self.context.last_status),
        }


def _number(what: dict[str, Any]) -> str:
    """Which of several inputs a split is from, counted from 1."""
    return str(what["input"] + 1) if "input" in what else ""


def _of_input(kinds: dict[str, int], tag: str) -> dict[str, int]:
    """The types of keys once more, as those of the input with this tag, or number."""
    keys = ((place, bits) for place, bits in kinds.items() if place.startswith("key"))
    return {f"{place} of {tag}": bits for place, bits in keys} if tag else {}


def _sign_of_life(_status: str) -> None:
    _core.beat()
