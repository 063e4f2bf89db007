"""How a command line ends that did not go well: one paragraph on stderr, and the exit code.

    Interrupted ──▶ 128 + n      wrong command line ──▶ 2      OSError of ours ──▶ 1      bug ──▶ 1

No traceback ever: a defect says where it is and asks to be reported. A job that fails is not met
here; its report says all that this file would (runner.py).
"""

import sys

import click

from gristmill.cli import console
from gristmill.cli.signals import Interrupted, deferred, exit_code

__all__ = ["DONE", "FAILED", "WRONG", "conclude", "fail", "paragraph_of"]

DONE, FAILED, WRONG = 0, 1, 2


def fail(command: str, paragraph: str) -> None:
    """Say on stderr what failed."""
    console.note(f"gristmill {command}: {paragraph}")


def conclude(error: BaseException) -> int:
    """Say what went wrong, and return the exit code."""
    with deferred():
        try:
            return _conclude(error)
        except OSError:  # stderr is gone too: the exit code is all that can be said
            return FAILED


def _conclude(error: BaseException) -> int:
    match error:
        case click.exceptions.Exit():
            console.flush()
            return error.exit_code
        case click.ClickException():
            return _wrong_command_line(error)
        case Interrupted():
            return exit_code(error.signum)
        case BrokenPipeError():
            return DONE  # of --help: nobody reads on
        case OSError() | MemoryError():
            console.note(f"gristmill: {paragraph_of(error)}")
            return FAILED
        case _:
            console.note(f"gristmill: {_defect(error)}")
            return FAILED


def _wrong_command_line(error: click.ClickException) -> int:
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context is not None else "gristmill"
    message = error.format_message()
    message = message[:1].lower() + message[1:].rstrip(".")
    console.note(f"{path}: {message}{_origin(error)}. To go on: see {path} --help.")
    return WRONG


def _origin(error: click.ClickException) -> str:
    """Where a wrong value came from, if not from the command line that the user has just typed."""
    match error:
        case click.BadParameter(ctx=click.Context() as context, param=click.Option() as option):
            assert option.name is not None
            source = context.get_parameter_source(option.name)
            from_environment = source is click.core.ParameterSource.ENVIRONMENT
            return f" (${option.envvar} in the environment)" if from_environment else ""
        case _:
            return ""


def paragraph_of(error: OSError | MemoryError) -> str:
    """Return in the engine's style what the system refused to this program itself."""
    match error:
        case OSError(strerror=str(words), filename=str(name)):
            return f"cannot use {name}: {words.lower()}."
        case OSError(strerror=str(words)):
            return f"cannot write what there is to say: {words.lower()}."
        case _:
            return "cannot go on: the system gives no more memory."


def _defect(error: BaseException) -> str:
    from traceback import extract_tb

    frames = extract_tb(error.__traceback__)
    place = f" in {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
    command = " ".join(sys.argv[1:])
    return (
        f"cannot go on, for a defect of Gristmill{place}: {type(error).__name__}: {error}."
        f" To go on: please report this, with the command that led here ({command})."
    )
