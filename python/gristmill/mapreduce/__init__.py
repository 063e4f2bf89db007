"""MapReduce of Python functions: `gm.Job`, `gm.text`, `gm.sum` and so on.

formats  text, fixed, delimited, tsv, jsonl, csv, parquet, arrow, kv, items
worker   a task, in a worker process: running ─▶ mapping, reducing ─▶ a report
results  what has become of a job: Result, or its failure with notes
submit   Job ─▶ launching ─▶ engine, workers ─▶ Result; all of it at the driver
check    naive (the same job, simply) and determinism (is the output a function of the input?)
retry    a task that failed, or one record, again

The files beside these rooms say what a job and its user code are: declared, called, pickled. Both
the driver and the workers use them. Modules that have moved are found by their old names, too: jobs
that older programs have begun, and files that they have written, hold pickles with those.
"""

import sys
from _frozen_importlib import ModuleSpec
from types import ModuleType

_MOVED = {
    "check": "determinism elsewhere last_call naive plain_aggregates",
    "formats": "batches column_names column_types combine_splits csv_writer exact_columns"
    " exact_rows fields inputs jsonlines keyvalue lines memory paths plan refused_rows table_csv"
    " table_parts table_writer tables text",
    "results": "cells exception_notes failed left_out nothing_out result result_html tracebacks",
    "retry": "mending retrying single",
    "submit": "code defining explained_stores explaining job launching loading parents preparing"
    " removing run_all sampling stream_copies streams submitting",
    "worker": "columns failures mapping one_schema reducing running skipping task_files",
}
"""The modules that each room has got from this folder, by their old names."""

_RENAMED = {
    "elsewhere": "hash_seed_check",
    "left_out": "skipped_records",
    "memory": "items",
    "mending": "code_patch",
    "single": "replay_record",
}


class _Moved:
    """Finds and loads a module by its old name: it is the one that has the new name."""

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return how a module is loaded, if it has moved; asked where nothing else finds it."""
        del path, target
        package, _, last = name.rpartition(".")
        if package != __name__ or not any(last in names.split() for names in _MOVED.values()):
            return None
        return ModuleSpec(name, cls())  # pyright: ignore[reportArgumentType] - it is one

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Let Python make a module, for which the real one is put in."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Put the module that has the new name in the place of this one."""
        from importlib import import_module

        last = module.__name__.rpartition(".")[2]
        room = next(room for room, names in _MOVED.items() if last in names.split())
        new = f"{__name__}.{room}.{_RENAMED.get(last, last)}"
        sys.modules[module.__name__] = import_module(new)


sys.meta_path.append(_Moved)
