"""Hadoop's own examples, run by the commands that do the same here.

They are called as `hadoop jar hadoop-mapreduce-examples.jar NAME [-D PROPERTY=VALUE]... ARGUMENTS`:

    wordcount IN... OUT       gristmill wordcount
    grep IN OUT REGEX         gristmill matchcount
    teragen ROWS OUT          gristmill teragen
    terasort IN OUT           gristmill terasort
    teravalidate OUT REPORT   gristmill teravalidate; its lines go to REPORT/part-r-00000
"""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from gristmill.cli.failures import DONE, FAILED
from gristmill.cli.streaming.stored import copied, place
from gristmill.errors import report_of
from gristmill.streaming.inputs import location
from gristmill.streaming.properties import present_name
from gristmill.streaming.unnamed_hdfs import hdfs_folder, stands_for_folder
from gristmill.terminal import console

__all__ = ["WrongExampleError", "run"]

_REDUCES, _MAPS = "mapreduce.job.reduces", "mapreduce.job.maps"


class WrongExampleError(ValueError):
    """An example that is not here, or that is called otherwise than Hadoop's."""


def run(words: Sequence[str]) -> int:
    """Run an example with Hadoop's arguments; returns the exit code.

    Raises:
        WrongExampleError: There is none of that name here, or its arguments are not Hadoop's.
    """
    name = words[0] if words else ""
    if name not in _EXAMPLES:
        known = ", ".join(_EXAMPLES)
        what = f"there is no example {name!r} here" if name else "jar needs the name of an example"
        raise WrongExampleError(f"{what}. What to do: use one of {known}.")
    properties, rest = _properties(name, words[1:])
    example, known, usage = _EXAMPLES[name]
    for given in properties:
        if given not in known:
            console.note(f"gristmill hadoop: {given} has no effect on {name} here")
    done = example(rest, properties)
    if done is None:
        raise WrongExampleError(f"{name} takes other arguments. What to do: give it {usage}.")
    return done


def _properties(name: str, words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The properties that stand before the arguments, by their present names, and these."""
    found, rest = dict[str, str](), list(words)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if not word.startswith("-D"):
            raise WrongExampleError(
                f"{name} has no option {word} here. What to do: leave it out; -D NAME=VALUE is"
                " known."
            )
        pair = word[2:] or (rest.pop(0) if rest else "")
        key, equals, value = pair.partition("=")
        if not equals:
            raise WrongExampleError(
                f"-D {pair} sets nothing: there is no = in it. What to do: write -D NAME=VALUE."
            )
        found[present_name(key.strip())] = value
    return found, rest


def _wordcount(words: list[str], properties: dict[str, str]) -> int | None:
    if len(words) < 2:
        return None
    parts = properties.get(_REDUCES, "1")
    return _command("wordcount", "--parts", parts, "--", *_places("wordcount", words))


def _grep(words: list[str], _: dict[str, str]) -> int | None:
    if len(words) == 4:
        raise WrongExampleError(
            "grep cannot count a group of its pattern here. What to do: leave the group out, and"
            " write a pattern that matches what is to be counted."
        )
    if len(words) != 3:
        return None
    source, target, pattern = words
    return _command("matchcount", "--", pattern, *_places("grep", [source, target]))


def _teragen(words: list[str], properties: dict[str, str]) -> int | None:
    if len(words) != 2:
        return None
    rows, target = words
    files = ["--files", properties[_MAPS]] if _MAPS in properties else []
    return _command("teragen", *files, "--", rows, *_places("teragen", [target]))


def _terasort(words: list[str], properties: dict[str, str]) -> int | None:
    if len(words) != 2:
        return None
    parts = properties.get(_REDUCES, "1")
    return _command("terasort", "--partitions", parts, "--", *_places("terasort", words))


def _teravalidate(words: list[str], _: dict[str, str]) -> int | None:
    """Check an output, and write what Hadoop's TeraValidate writes: its checksum, or its errors."""
    if len(words) != 2:
        return None
    from gristmill.functions import teravalidate

    source, target = _places("teravalidate", words)
    report = place(target)
    if report.exists():
        raise FileExistsError(17, "File exists", target)
    code = DONE
    try:
        found = teravalidate(source)
    except ValueError as error:
        failed = report_of(error)
        if failed is None or not failed.report:
            raise
        found, code = failed, FAILED
        console.note(f"teravalidate: {error}")
    report.mkdir(parents=True, exist_ok=False)
    with tempfile.TemporaryDirectory(prefix="gristmill-report-") as folder:
        lines = Path(folder, "part-r-00000")
        lines.write_text("".join(f"{line}\n" for line in found.report or ()))
        copied(lines, report / lines.name)
    (report / "_SUCCESS").touch()
    return code


def _places(name: str, words: list[str]) -> list[str]:
    """Paths, as Hadoop takes them: `hdfs:///x` and `file:///x`, too."""
    if any(map(stands_for_folder, words)):
        hdfs_folder().mkdir(parents=True, exist_ok=True)
    return [location(word, name) for word in words]


def _command(*words: str) -> int:
    from gristmill.cli import program

    return program.run(words)


_Example = Callable[[list[str], dict[str, str]], int | None]

_EXAMPLES: dict[str, tuple[_Example, tuple[str, ...], str]] = {
    "wordcount": (_wordcount, (_REDUCES,), "IN... OUT"),
    "grep": (_grep, (), "IN OUT REGEX"),
    "teragen": (_teragen, (_MAPS,), "ROWS OUT"),
    "terasort": (_terasort, (_REDUCES,), "IN OUT"),
    "teravalidate": (_teravalidate, (), "OUT REPORTDIR"),
}
"""What runs an example, the properties that it minds, and its arguments."""
