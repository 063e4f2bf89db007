"""`grep` with --and and --not against one GNU grep after another."""

import random

from tests.fuzz.campaign import Case
from tests.fuzz.cases import SMALL, cut, grep_pattern, one_in, shared

from gristmill.names import quote

__all__ = ["conditions_case"]


def conditions_case(chosen: random.Random) -> Case:
    """Lines that match some patterns and not others: what one grep leaves of what another selects.

    Whether a line is selected its bytes alone decide, so -v leaves the lines that are not among
    those selected. The exit code of a pipe is that of its last command.
    """
    lines = [
        b"".join(chosen.choices(SMALL[:-1], k=chosen.randrange(20)))
        for _ in range(chosen.choice([0, 1, 3, 30, 300]))
    ]
    names = ["a", "b"][: 1 + chosen.randrange(2)]
    files = cut(chosen, shared(chosen, lines, b"\n", plain_text=True), names)
    fixed = one_in(chosen, 2)
    common = ["-F" if fixed else "-E", "-a", *(["-i"] * one_in(chosen, 4))]
    common += chosen.choice([[], [], [], [], ["-x"], [] if fixed else ["-w"]])
    first = "" if one_in(chosen, 2) else grep_pattern(chosen, plain=fixed)
    chain, conditions = [["-e", first]], list[str]()
    for _ in range(chosen.choice([1, 1, 2, 3])):
        option = chosen.choice(["--and", "--not"])
        pattern = grep_pattern(chosen, plain=fixed)
        conditions += [option, pattern]
        chain.append(["-v", "-e", pattern] if option == "--not" else ["-e", pattern])
    mode = chosen.choice([[], [], ["-v"], ["-c"], ["-q"]])
    theirs = piped([["grep", *common, *words] for words in chain], names)
    if mode == ["-v"]:
        theirs = f"cat {' '.join(names)} | grep -avxF -f <({theirs})"
        files = {name: ended(data) for name, data in files.items()}
    elif mode:
        names = names[:1]
        theirs = piped([["grep", *common, *words] for words in chain], names)
        theirs += f" | grep -a {mode[0]} ''"
    given = ["-e", first, *conditions] if one_in(chosen, 2) else [*conditions, "--", first]
    words = ["grep", *common, "-h", *mode, *given, *names]
    return Case(words, ["bash", "-c", theirs], files)


def piped(commands: list[list[str]], names: list[str]) -> str:
    """Commands of which the first reads the files, and each other what the one before writes."""
    first = [[*commands[0], "-h", *names], *commands[1:]]
    return " | ".join(" ".join(map(quote, words)) for words in first)


def ended(data: bytes) -> bytes:
    return data if not data or data.endswith(b"\n") else data + b"\n"
