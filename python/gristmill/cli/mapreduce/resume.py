"""`gristmill resume`: the engine's command, but for a job of a chain, whose chain is resumed.

What runs a chain is imported where there is one: the memory of a job has to hold this process.
"""

from gristmill.cli.failures import DONE
from gristmill.cli.generated import command_of
from gristmill.history.chains import ChainFolder
from gristmill.history.dead_chain import dead_chain
from gristmill.options import Value, commands
from gristmill.terminal import console

__all__ = ["resume"]

resume = command_of(commands()["resume"])
_of_one_job = resume.callback


def _resume(*, job_id: str, as_json: bool, **rest: Value) -> int:
    chain = dead_chain(job_id)
    if chain is None:
        assert _of_one_job is not None
        code: int = _of_one_job(job_id=job_id, as_json=as_json, **rest)
        return code
    return _go_on(chain, as_json=as_json)


def _go_on(chain: ChainFolder, *, as_json: bool) -> int:
    from gristmill.cli.mapreduce.common import said
    from gristmill.cli.mapreduce.run import run_to_end
    from gristmill.mapreduce.results.result import Result
    from gristmill.mapreduce.submit.resuming import resume_chain
    from gristmill.mapreduce.submit.submitting import Stop

    def run_it(stop: Stop) -> Result:
        progress = False if as_json else None
        return resume_chain(chain, stop, progress=progress, command_line=True)

    @said("resume")
    def to_end(*, as_json: bool) -> int:
        return run_to_end("resume", run_it, as_json=as_json)

    if as_json:
        console.keep_stdout()
    code = to_end(as_json=as_json)
    if code == DONE and not as_json:
        console.note(f"gristmill: resumed the chain of jobs from job {chain.job} on")
    return code


resume.callback = _resume
