"""What a suite is: data that it prepares, and steps that are measured.

A step is one process of Gristmill. Its command line gets those of the options asked for, and of its
configuration, that its command has.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gristmill.analysis.bench.bench_request import BenchRequest, Config
from gristmill.analysis.bench.errors import WrongOptionError
from gristmill.options import Option, commands

__all__ = ["NOT_OPTIONS", "Step", "Suite", "check_names", "command_line"]

NOT_OPTIONS = frozenset({"python"})
"""Names in a configuration that are not options of commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A process of Gristmill."""

    name: str
    """How figures call it."""
    words: tuple[str, ...] = ()
    """Its command line, after `gristmill`."""
    reads: tuple[str, ...] = ()
    """Its inputs, which are brought into the page cache, or out of it, before it runs."""
    makes: str = ""
    """Its output, which is removed before it runs, and at the end."""
    searches: bool = False
    """Whether it is `grep`: its summary is on stderr, its exit code 1 where it found nothing."""
    call: Callable[[], None] | None = None
    """What is called instead, of a step that prepares and is no job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A suite."""

    commands: tuple[str, ...]
    """The commands that it measures, whose options may vary; `run` is that of job files."""
    rows: int
    """Records of its data, if not asked for."""
    steps: Callable[[BenchRequest, Config, str], Sequence[Step]]
    """The steps of a round, in a folder: `steps(asked, config, folder)`."""
    prepare: Callable[[BenchRequest, Config, str], Sequence[Step]] = (
        lambda _asked, _config, _folder: ()
    )
    """What makes the data, likewise; not measured."""
    vary: Callable[[BenchRequest], Mapping[str, tuple[str, ...]]] = lambda _asked: {}
    """What varies beside that which was asked for."""
    proves: bool = False
    """Whether the checksums of all steps of a round must be the same."""


def command_line(command: str, asked: BenchRequest, config: Config) -> tuple[str, ...]:
    """Return a command with those options that it has.

    Example:
        >>> asked = BenchRequest(suite="sort", options={"workers": "2", "against": "x"})
        >>> command_line("terasort", asked, {"no-sync": "on", "memory": "1G"})
        ('terasort', '--workers', '2', '--no-sync', '--memory', '1G')
    """
    known = {option.dashed: option for option in _options_of(command)}
    words = [command]
    if "store-option" in known:
        for one in asked.store_options:
            words += ["--store-option", one]
    for name, value in {**asked.options, **config}.items():
        option = known.get(name)
        if option is None:
            continue
        if option.kind != "flag":
            words += [f"--{name}", value]
        elif value == "on":
            words.append(f"--{name}")
        elif value != "off":
            raise WrongOptionError(
                f"cannot read the options: --vary {name}={value}, but {name} is on or off."
                f" What to do: write --vary {name}=on,off."
            )
    return tuple(words)


def _options_of(command: str) -> Sequence[Option]:
    if command == "run":
        from gristmill.mapreduce.run_options import RUN

        return RUN
    return [option for option in commands()[command].options if not option.positional]


def check_names(suite: Suite, names: Sequence[str]) -> None:
    """Refuse what varies if no command of the suite has it.

    Example:
        >>> check_names(Suite(commands=("terasort",), rows=1, steps=lambda *_: ()), ["workers"])
    """
    known = {option.dashed for command in suite.commands for option in _options_of(command)}
    for name in names:
        if name not in known | NOT_OPTIONS:
            raise WrongOptionError(
                f"cannot read the options: --vary {name}: no command of the suite has the option"
                f" --{name}. What to do: vary one of {', '.join(sorted(known))}, or python."
            )
