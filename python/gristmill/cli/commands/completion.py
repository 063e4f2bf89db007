"""`gristmill completion SHELL`: the script with which a shell completes commands and options.

    Tab ──▶ the script ──▶ gristmill with _GRISTMILL_COMPLETE ──▶ `answer` ──▶ words, or "a file"

The words come from the table of options, as the help does: the script names none, and stays as it
is when options come. An answer takes as long as `gristmill --version` and a few milliseconds.
"""

import os

import click
from click.shell_completion import ShellComplete, get_completion_class

from gristmill.cli.failures import DONE, Refused
from gristmill.cli.groups import PlainCommand
from gristmill.terminal import console

__all__ = ["SHELLS", "VARIABLE", "answer", "completion", "script"]

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_GRISTMILL_COMPLETE"
"""What the script sets: the shell, and `complete`."""

_INSTALL = {
    "bash": 'eval "$(gristmill completion bash)"      # in ~/.bashrc',
    "zsh": 'eval "$(gristmill completion zsh)"       # in ~/.zshrc, after compinit',
    "fish": "gristmill completion fish > ~/.config/fish/completions/gristmill.fish",
}
_HOW = "\n".join(f"  {shell:5} {line}" for shell, line in _INSTALL.items())


class _Completion(PlainCommand):
    """The command; click's own words for a missing shell are several lines."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the command line apart."""
        if not args and not ctx.resilient_parsing:
            shells = f"{', '.join(SHELLS[:-1])} or {SHELLS[-1]}"
            raise Refused("the name of a shell is missing", f"name {shells}", ctx)
        return super().parse_args(ctx, args)


@click.command(
    cls=_Completion,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"\b\nHow to install it:\n{_HOW}",
)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> int:
    """Print the script that completes commands, options, files and jobs with Tab.

    SHELL is bash (4.4 or newer), zsh or fish.
    """
    console.put(script(shell).rstrip("\n"))
    return DONE


def script(shell: str) -> str:
    """Return the script for a shell.

    Example:
        >>> "complete -o nosort" in script("bash")
        True
    """
    # Not `source` of the class: that of bash runs a bash to ask for its version.
    return ShellComplete.source(_completer(shell))


def answer(instruction: str) -> int:
    """Print what could stand where the cursor is; nothing for a command line that is wrong.

    Args:
        instruction: A shell and `complete`, as in `bash_complete`.
    """
    shell, _, what = instruction.partition("_")
    if shell not in SHELLS or what != "complete":
        return DONE
    os.environ.pop(VARIABLE, None)
    try:
        console.put(_completer(shell).complete())
    except click.ClickException:
        return DONE
    return DONE


def _completer(shell: str) -> ShellComplete:
    from gristmill.cli.program import the_program

    kind = get_completion_class(shell)
    assert kind is not None
    return kind(the_program(), {}, "gristmill", VARIABLE)
