"""`gristmill streaming` on the head of a cluster: the files that it ships go along.

-input, -output, --spill-dir      from the root on
-files, -archives, -file, -conf   relative to the folder: the one there has them
"""

import os
from collections.abc import Sequence

from gristmill.cluster.submission.package import Command
from gristmill.mapreduce.submit.code import files_below
from gristmill.streaming.inputs import local_path, location, stored
from gristmill.streaming.options import option_named
from gristmill.streaming.parse import WrongCommandError, parse, split_commas, told
from gristmill.streaming.resolved import resolve

__all__ = ["of_streaming"]

_PLACES = ("input", "output")
_LISTS = ("files", "archives", "cacheFile", "cacheArchive")
_CONFS = ("conf", "additionalconfspec")
_FILES = ("file", *_CONFS)


def of_streaming(words: Sequence[str]) -> Command:
    """Return what `gristmill streaming` is on the head.

    Raises:
        ValueError: The command line cannot be honoured.
    """
    try:
        arguments = parse(words)
        resolved = resolve(arguments)
    except WrongCommandError as error:
        raise WrongCommandError(told(error)) from error
    if arguments.has("background"):
        raise WrongCommandError(
            "--background ends with the command, and this one runs on the head. What to do: start"
            " the command itself in the background."
        )
    links, archives = resolved.definition["links"], resolved.definition["archives"]
    shipped = [path for _, path in (*links, *archives)]
    confs = [one for name in _CONFS for one in arguments.options.get(name, ())]
    files = files_below([*shipped, *confs])
    return Command(["streaming", *_words(words)], files)


def _words(words: Sequence[str]) -> list[str]:
    """The words, with paths that hold on the head."""
    found: list[str] = []
    name = ""
    for word in words:
        before, equals, value = word.partition("=")
        option = option_named(word) or (option_named(before) if equals else None)
        if option is None:
            found.append(_there(name, word))
        elif option_named(word) is None:
            found.append(f"{before}={_there(option.name, value)}")
        else:
            name = option.name
            found.append(word)
    return found


def _there(option: str, value: str) -> str:
    """The value of an option, as it is on the head."""
    if option in _PLACES:
        return ",".join(location(one, f"-{option}") for one in split_commas(value))
    if option == "spill-dir":
        return os.path.abspath(value)  # noqa: PTH100 - links stay
    if option in _LISTS:
        return ",".join(_file(one, option) for one in split_commas(value))
    return _file(value, option) if option in _FILES else value


def _file(text: str, option: str) -> str:
    """A file that goes along, by its name in the folder; its link stays."""
    name, mark, link = text.partition("#")
    if stored(name) is not None:
        return text
    return f"{os.path.relpath(local_path(name, f'-{option}'))}{mark}{link}"
