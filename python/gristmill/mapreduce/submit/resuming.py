"""A chain of jobs whose process was killed is resumed by another one.

ended          ─▶ its report, as it was recorded
begun          ─▶ resumed by the engine, from the tasks that its history proves done
not begun      ─▶ run, with the functions and the options that the chain began with

Decision: docs/decisions/chains.md.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from gristmill.ending import ending_with_signals
from gristmill.history.chains import ChainFolder, locked
from gristmill.mapreduce.results.result import Result, success_of
from gristmill.mapreduce.submit.chain import Chain, ChainRecord, is_dead, removed
from gristmill.mapreduce.submit.chain_definition import opened, refusal
from gristmill.mapreduce.submit.launching import run_jobs
from gristmill.mapreduce.submit.submitting import Stop
from gristmill.names import show_path
from gristmill.store_options import with_store_options

__all__ = ["resume_chain"]


def resume_chain(
    folder: ChainFolder,
    stop: Stop = lambda: False,
    *,
    progress: bool | None = None,
    command_line: bool = False,
) -> Result:
    """Run a dead chain to its end.

    Args:
        folder: That of the chain.
        stop: Whether it shall end.
        progress: As for `Job.run`.
        command_line: Whether errors name options as the command line does.

    Raises:
        ValueError: It cannot be resumed here; says why. Nothing is changed then.
        Exception: As `Job.run`.
    """
    file = folder.definition()
    if file is None:
        where = show_path(str(folder.path))
        raise refusal(f"its definition is gone, or not yours alone (in {where})", "run it anew")
    with file:
        if not locked(file):
            raise refusal("another process runs it", "wait for that one")
        chain, options = opened(file.read())
        options = replace(options, progress=progress, command_line=command_line)
        chain = replace(chain, folder=folder.path)
        place = {"folder": str(folder.path), "sha256": folder.sha256}
        record = ChainRecord.read(folder.path, place)
        _check_kept(chain, record)
        stores = with_store_options(options.get("store_option"))
        with stores, ending_with_signals(), _gone_at_the_end(chain, record):
            return run_jobs(chain, options, stop, record)


@contextmanager
def _gone_at_the_end(chain: Chain, record: ChainRecord) -> Generator[None]:
    """Remove the folder of a chain that has ended or failed; of one that was refused, it stays."""
    try:
        yield
    except BaseException:
        last = max(record.names, default=None)
        if last is None or not is_dead(record.names[last]):
            removed(chain)
        raise
    removed(chain)


def _check_kept(chain: Chain, record: ChainRecord) -> None:
    """Refuse a chain of which an output is gone that the next job reads."""
    for number in record.reports:
        output = chain.jobs[number].output
        assert output is not None
        try:
            success_of(output.folder)
        except (OSError, ValueError):
            what = f"the output of its job {number + 1} is gone: {show_path(output.folder)}"
            raise refusal(what, "put it back, or run the chain anew") from None
