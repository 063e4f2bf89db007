"""The types of run options; made by `make format` from run_options.py, not edited."""

from collections.abc import Iterable, Mapping
from typing import Literal, TypedDict

from gristmill.names import StrPath

__all__ = ["RunOptions"]


class RunOptions(TypedDict, total=False):
    """Options of a job of user code that is run."""

    memory: int | str | None
    workers: int | None
    runner: Literal["threads", "processes"] | None
    on: Literal["local", "ray"] | None
    nodes: int | None
    collect: bool
    spill_dir: StrPath | Iterable[StrPath] | None
    compress_runs: Literal["none", "lz4", "zstd"] | None
    shuffle: Literal["auto", "immediate", "two-level", "iterative"] | None
    rounds: str | None
    store_option: Mapping[str, str] | Iterable[str] | None
    overwrite: bool
    no_sync: bool
    replication: int | None
    block_size: int | str | None
    attempts: int | None
    speculative: bool
    timeout_s: float | None
    worker_memory: int | str | None
    history: bool
