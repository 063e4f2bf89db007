"""How a command line ends that did not go well: one paragraph on stderr, and the exit code.

    Interrupted ──▶ 128 + n      wrong command line ──▶ 2      OSError of ours ──▶ 1      bug ──▶ 1

No traceback ever: a defect says where it is and asks to be reported. A job that fails is not met
here; its report says all that this file would (runner.py).
"""

import re
import sys
from collections.abc import Iterable, Sequence
from signal import SIGHUP, SIGINT, SIGTERM

import click

from gristmill.errors import kind_of, typed
from gristmill.names import to_json
from gristmill.terminal import console
from gristmill.terminal.signals import Interrupted, deferred, exit_code

__all__ = [
    "ADDRESS",
    "DASH",
    "DONE",
    "FAILED",
    "QUIET",
    "WRONG",
    "HelpWanted",
    "Refused",
    "as_typed",
    "begin",
    "conclude",
    "fail",
    "paragraph_of",
    "put_failure",
    "said_so_far",
    "say_no_more",
    "with_advice",
]

DONE, FAILED, WRONG = 0, 1, 2


QUIET = "gristmill.quiet_check"
"""Where click's context says that disorder is told by the exit code alone."""

DASH = "name a directory; ./- if that is to be its name"
"""What to do where `-` is not standard output."""


ADDRESS = (
    "give --on ray, with RAY_ADDRESS=HOST:6379 in the environment; or the address of a dashboard,"
    " as in --on http://HOST:8265"
)
"""What to do where the address of a cluster stands in the place of a word."""


class Refused(click.UsageError):
    """A wrong command line, with what to do about it if that is more than to read the help."""

    def __init__(
        self,
        what: str,
        advice: str = "",
        ctx: click.Context | None = None,
        *,
        near: Sequence[str] = (),
    ) -> None:
        super().__init__(what, ctx)
        self.advice = advice
        self.near = near
        """Names that are much like one that is unknown."""


class HelpWanted(click.UsageError):
    """A command line that stops where the help is what is needed."""

    def __init__(self, ctx: click.Context) -> None:
        super().__init__(ctx.get_help(), ctx)


def fail(command: str, paragraph: str) -> None:
    """Say on stderr what failed."""
    _say(f"gristmill {command}", paragraph)


def _say(path: str, paragraph: str) -> None:
    _said.append(paragraph)
    console.note(f"{path}: {paragraph}")


_said: list[str] = []
"""What this command line has failed at, for `put_failure`."""


def said_so_far() -> list[str]:
    """Return what this command line has failed at."""
    return list(_said)


def say_no_more(said: Iterable[str], *, printed: bool) -> None:
    """Note what another process has said for this command line, and whether it has printed."""
    _said.extend(said)
    if printed:
        console.note_printed()


def with_advice(kind: str, paragraph: str) -> str:
    """Return a job's error, with what to do where nothing is at a path and it does not say so.

    Example:
        >>> with_advice("not_found", "cannot find the input: no such file or directory (file a).")
        'cannot find the input: no such file or directory (file a). What to do: check the name.'
    """
    if kind != "not_found" or "What to do:" in paragraph:
        return paragraph
    return f"{paragraph} What to do: check the name."


def begin() -> None:
    """Forget what was said: another command line begins."""
    _said.clear()
    console.begin()


def put_failure(arguments: Sequence[str], code: int) -> None:
    """Print what failed as JSON, if --json is given and nothing is printed yet.

    A command whose job ran has printed its report. `grep` has a summary on stderr instead.
    """
    words = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if code == DONE or console.has_printed() or not {"--json", "-json"} & set(words):
        return
    if "grep" not in words[:1]:
        status, error = "failed", {"message": _said[-1] if _said else ""}
        if code in map(exit_code, (SIGHUP, SIGINT, SIGTERM)):  # there was no job yet that says it
            status, error = "cancelled", {"kind": "cancelled", "message": "it was told to stop."}
        console.put(to_json({"status": status, "exit_code": code, "error": error}))


_NAMED = r"(cannot [^:]*: )([a-z][a-z_]*)(?=: | is | must )"
"""How a paragraph begins that is about the value of an option."""


def as_typed(error: BaseException | str, names: Iterable[str] = ()) -> str:
    """Return an error's paragraph, with options as they are on the command line.

    Args:
        error: The error, or its paragraph.
        names: The options, by Python's names; by default those of the command that runs.

    Example:
        >>> as_typed("cannot read the options: spill_dir is x. What to do: y.", ["spill_dir"])
        'cannot read the options: --spill-dir is x. What to do: y.'
        >>> as_typed("cannot read the input: it is a table.", ["spill_dir"])
        'cannot read the input: it is a table.'
    """
    paragraph = error if isinstance(error, str) else typed(error)
    context = click.get_current_context(silent=True)
    if context is not None:
        options = (one for one in context.command.params if isinstance(one, click.Option))
        names = [*names, *(str(one.name) for one in options)]
    found = re.match(_NAMED, paragraph)
    if found is None or found[2] not in names:
        return paragraph
    dashed = f"--{found[2].removesuffix('_s').replace('_', '-')}"
    return f"{found[1]}{dashed}{paragraph[found.end() :]}"


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
            _say("gristmill", paragraph_of(error))
            return FAILED
        case _:
            _say("gristmill", _defect(error))
            return FAILED


def _wrong_command_line(error: click.ClickException) -> int:
    if isinstance(error, HelpWanted):
        _said.append(error.message)
        console.note(*error.message.splitlines())
        return WRONG
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context is not None else "gristmill"
    advice = error.advice if isinstance(error, Refused) else ""
    what = f"{_what(error)}{_origin(error)}.{_meant(error)}"
    _say(path, f"{what} What to do: {advice or f'see {path} --help'}.")
    return WRONG


def _what(error: click.ClickException) -> str:
    """Click's sentence as the beginning of one of ours, without its guess of what was meant."""
    guesses = isinstance(error, click.NoSuchOption)
    message = error.message if guesses else error.format_message()
    return (message[:1].lower() + message[1:]).rstrip(".")


def _meant(error: click.ClickException) -> str:
    """A question: whether another name was meant, which is much like one that is unknown."""
    match error:
        case click.NoSuchOption(option_name="--version"):
            near: Sequence[str] = ["gristmill --version"]
        case click.NoSuchOption():
            near = error.possibilities or ()
        case Refused():
            near = error.near
        case _:
            near = ()
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


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
        case _ if kind_of(error) is not None:
            return str(error)
        case OSError(strerror=str(words), filename=str(name)):
            return f"cannot use {name}: {words.lower()}."
        case OSError(strerror=str(words)):
            return f"cannot write what there is to say: {words.lower()}."
        case _:
            return "cannot run: the system gives no more memory."


def _defect(error: BaseException) -> str:
    from traceback import extract_tb

    from gristmill.shadows import shadows_in

    for shadow in shadows_in(str(error)):
        return f"cannot run: {type(error).__name__}: {error}: {shadow}"
    frames = extract_tb(error.__traceback__)
    place = f" in {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
    command = " ".join(sys.argv[1:])
    return (
        f"a defect of Gristmill{place}: {type(error).__name__}: {error}."
        f" What to do: please report this, with the command that led here ({command})."
    )
