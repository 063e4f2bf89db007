"""Hadoop's command line taken apart: options and their values, properties, remarks.

As in Hadoop, one dash or two are the same, `-input` and `-file` take all words up to the next
option, of an option given twice the first counts (of the engine's own options the last), and of a
property the last. `${name}` in a value stands for another property's.
"""

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from gristmill.streaming.options import OPTIONS, OWN, Option, option_named
from gristmill.streaming.placeholders import DepthError, substituted
from gristmill.streaming.properties import PROPERTIES, present_name

__all__ = [
    "Arguments",
    "MisspeltError",
    "WrongCommandError",
    "parse",
    "split_command",
    "split_commas",
    "told",
]

_DEFAULTS = {known.name: known.default for known in PROPERTIES if known.default}
_READ_AT_ONCE = (
    "mapreduce.job.reduces",
    "mapreduce.job.maps",
    "mapreduce.input.fileinputformat.split.minsize",
)
"""Numbers that Hadoop reads before it writes the properties down, and drops those of nothing."""


class WrongCommandError(ValueError):
    """A command line that makes no sense here; the message names the option."""


class MisspeltError(WrongCommandError):
    """An option that is not known or is missing: the help lists what there is."""


def told(error: WrongCommandError) -> str:
    """Return the sentence of an error, with the advice to read the help where that helps.

    Example:
        >>> told(WrongCommandError("-jt host is not supported: jobs run here, which is `local`"))
        '-jt host is not supported: jobs run here, which is `local`.'
        >>> told(MisspeltError("-imput is not an option of Hadoop Streaming"))
        '-imput is not an option of Hadoop Streaming. What to do: see gristmill streaming --help.'
    """
    advice = isinstance(error, MisspeltError)
    said = str(error) if str(error).endswith("?") else f"{error}."
    return f"{said} What to do: see gristmill streaming --help." if advice else said


@dataclass
class Arguments:
    """A command line, taken apart."""

    words: tuple[str, ...] = ()
    options: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The values of each option that was given."""
    properties: dict[str, str] = field(default_factory=dict[str, str])
    """By their present names, in the order in which they were first set."""
    written: dict[str, str] = field(default_factory=dict[str, str])
    """How each property was written, by its present name."""
    remarks: list[str] = field(default_factory=list[str])

    def first(self, name: str) -> str | None:
        """The first value of an option, if it was given: of Hadoop's, that one counts."""
        values = self.options.get(name)
        return values[0] if values else None

    def last(self, name: str) -> str | None:
        """The last value of an option, if it was given: of the engine's own, that one counts."""
        values = self.options.get(name)
        return values[-1] if values else None

    def substituted(self, text: str) -> str:
        """Put the properties' values where `${name}` stands for them, as in Hadoop.

        Raises:
            WrongCommandError: The names go on and on, or in a circle.
        """
        try:
            return substituted(text, self._property)
        except DepthError as error:
            raise WrongCommandError(str(error)) from error

    def _property(self, name: str) -> str | None:
        present = present_name(name)
        return self.properties.get(present, _DEFAULTS.get(present))

    def has(self, name: str) -> bool:
        """Whether an option was given."""
        return name in self.options

    def set(self, name: str, value: str) -> None:
        """Set a property, by whichever name; to nothing, it is not set, as in Hadoop's tasks."""
        present = present_name(name)
        if value or present in _READ_AT_ONCE:
            self.properties[present] = value
            self.written[present] = name
        else:
            self.properties.pop(present, None)


def parse(words: Sequence[str]) -> Arguments:
    """Take a command line apart.

    Raises:
        WrongCommandError: An option is not known, or has no value.

    Example:
        >>> found = parse(["-D", "mapred.reduce.tasks=2", "-input", "a", "b", "-output", "c"])
        >>> found.options["input"], found.properties
        (['a', 'b'], {'mapreduce.job.reduces': '2'})
    """
    found = Arguments(tuple(words))
    generic_over = False
    rest = list(words)
    while rest:
        word = rest.pop(0)
        option, attached = _option_of(word)
        if option is None:
            raise MisspeltError(_unknown(word))
        if option.name in ("D", "conf", "fs", "jt", "files", "archives", "libjars"):
            remark = (
                f"-{option.name} stands behind other options: it counts here all the same, but "
                "Hadoop wants it before them"
            )
            if generic_over and remark not in found.remarks:
                found.remarks.append(remark)
        elif option not in OWN:
            generic_over = True
        values = [attached] if attached is not None else _values(option, word, rest)
        _take(found, option, values)
    return found


def _option_of(word: str) -> tuple[Option | None, str | None]:
    option = option_named(word)
    if option is None and word.startswith("-D") and len(word) > 2:
        return option_named("-D"), word[2:]
    if option is None and word.startswith("--") and "=" in word:
        name, value = word.split("=", 1)
        option = option_named(name)
        return (option, value) if option is not None and option.values == 1 else (None, None)
    return option, None


def _values(option: Option, word: str, rest: list[str]) -> list[str]:
    values: list[str] = []
    while rest and len(values) != option.values and option_named(rest[0]) is None:
        values.append(rest.pop(0))
    if option.values and not values:
        raise MisspeltError(f"{word} needs a value ({option.shown})")
    return values


def _take(found: Arguments, option: Option, values: list[str]) -> None:
    found.options.setdefault(option.name, []).extend(values)
    if option.name in ("D", "jobconf"):
        for value in values:
            name, equals, setting = value.partition("=")
            if equals:
                found.set(name.strip(), setting)
                if not setting and present_name(name.strip()) not in _READ_AT_ONCE:
                    found.remarks.append(
                        f"-{option.name} {value} sets nothing, as in Hadoop: the default stays"
                    )
            else:
                found.remarks.append(f"-{option.name} {value} sets nothing: there is no = in it")
    elif option.name in ("conf", "additionalconfspec"):
        for value in values:
            for name, setting in _configured(value):
                found.set(name, setting)
    elif option.name in ("fs", "dfs"):
        found.set("fs.defaultFS", values[-1])


def _configured(path: str) -> list[tuple[str, str]]:
    try:
        root = ElementTree.fromstring(Path(path).read_bytes())  # noqa: S314 - the user's own
    except (OSError, ElementTree.ParseError) as error:
        raise WrongCommandError(f"-conf {path} cannot be read: {error}") from error
    settings = [
        (found.findtext("name", "").strip(), found.findtext("value"))
        for found in root.iter("property")
    ]
    return [(name, value) for name, value in settings if name and value]


def _unknown(word: str) -> str:
    if word.startswith("-"):
        close = get_close_matches(word, [one.shown.split()[0] for one in OPTIONS], 1)
        return f"{word} is not an option of Hadoop Streaming" + (
            f": did you mean {close[0]}?" if close else ""
        )
    return f"`{word}` stands where an option is expected"


def split_command(command: str) -> list[str]:
    """Cut a command into words as Hadoop does: at spaces, unless they are quoted; no shell.

    Example:
        >>> split_command('''awk -F: '{print $1}' "a b"''')
        ['awk', '-F:', '{print $1}', 'a b']
    """
    words: list[str] = []
    quote, start = "", 0
    for at, letter in enumerate([*command, ""]):
        ends = letter == "" or (letter == " " and not quote)
        if letter in ("'", '"') and quote in ("", letter):
            quote = "" if quote else letter
            ends = True
        if ends:
            if at > start:
                words.append(command[start:at])
            start = at + 1
    return words


def split_commas(text: str) -> list[str]:
    """Cut a list at its commas, but not within the braces of a glob.

    Example:
        >>> split_commas("a,b{1,2},c")
        ['a', 'b{1,2}', 'c']
    """
    parts, depth, start = list[str](), 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [part for part in [*parts, text[start:]] if part]
