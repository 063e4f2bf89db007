"""`distinct`, `top` and `join` on lines against GNU sort, with all its keys, and GNU join."""

import random

from tests.fuzz.campaign import Case
from tests.fuzz.cases import one_in, shared, sort_case

from gristmill.names import quote

__all__ = ["distinct_lines_case", "join_lines_case", "top_lines_case"]

OF_DISTINCT = set("ngfb")
OF_TOP = set("ngfbhVMr")


def of_sort(chosen: random.Random, letters: set[str]) -> tuple[list[str], Case]:
    """Options of a sort that another command has too, and the files."""
    while True:
        case = sort_case(chosen)
        options = [
            word
            for word in case.ours[1:]
            if word[:2] in ("-k", "-t")
            or (word[0] == "-" and set(word[1:]) <= letters and len(word) > 1)
        ]
        if case.files and "names" not in case.files and "-z" not in case.ours:
            return options, case


def distinct_lines_case(chosen: random.Random) -> Case:
    options, case = of_sort(chosen, OF_DISTINCT)
    names = list(case.files)
    words = ["distinct", *options, "--sorted", *names]
    return Case(words, ["sort", "-s", "-u", *options, *names], case.files)


def top_lines_case(chosen: random.Random) -> Case:
    options, case = of_sort(chosen, OF_TOP)
    names, number = list(case.files), chosen.choice([1, 2, 10, 1000])
    words = ["top", f"{number}", *options, *names]
    sort = " ".join(map(quote, ["sort", "-s", *options, *names]))
    refuses = f"{sort} > sorted || exit 2; head -n {number} sorted"
    return Case(words, ["bash", "-c", refuses], case.files)


# --- join ---

KEYS = [b"a", b"b", b"B", b"aa", b"", b"1", b"01", b"\xff", b"k"]
OTHERS = [*KEYS, b"x", b"\r", b"y z", b"\xc3\xa4"]


def join_lines_case(chosen: random.Random) -> Case:
    """A join of lines, which GNU join takes sorted by their keys."""
    separator = chosen.choice([b",", b",", b"\t", None])
    ignoring = one_in(chosen, 5)
    fields = [chosen.choice([1, 1, 2, 3]) for _ in "12"]
    common = [] if separator is None else ["-t", separator.decode()]
    common += ["-i"] * ignoring
    common += named_fields(chosen, fields)
    common += chosen.choice(
        [[], [], ["-a1"], ["-a2"], ["-a1", "-a2"], ["-v1"], ["-v2"], ["-a1", "-v2"]]
    )
    common += ["-e", "none"] if one_in(chosen, 4) else []
    listed = chosen.choice(["", "", "", "0,1.2,2.2", "1.1,2.1,0", "2.3", "0"])
    ours = ["join", "--sorted", *common, *(["--fields", listed] if listed else []), "a", "b"]
    theirs = ["join", *common, *(["-o", listed] if listed else []), "--nocheck-order"]
    files = {name: lines_with_fields(chosen, separator) for name in "ab"}
    sorts = [
        " ".join(map(quote, sort_by(field, separator, name, ignoring=ignoring)))
        for field, name in zip(fields, "ab", strict=True)
    ]
    inputs = " ".join(f"<({sort})" for sort in sorts)
    return Case(ours, ["bash", "-c", f"{' '.join(map(quote, theirs))} {inputs}"], files)


def named_fields(chosen: random.Random, fields: list[int]) -> list[str]:
    if fields[0] == fields[1] and one_in(chosen, 2):
        return [] if fields[0] == 1 else ["-j", f"{fields[0]}"]
    return ["-1", f"{fields[0]}", "-2", f"{fields[1]}"]


def lines_with_fields(chosen: random.Random, separator: bytes | None) -> bytes:
    """Lines of up to four fields, between blanks of which some are several, or a byte."""
    lines: list[bytes] = []
    for _ in range(chosen.choice([0, 1, 5, 20, 60])):
        cells = [chosen.choice(KEYS), *chosen.choices(OTHERS, k=chosen.randrange(4))]
        chosen.shuffle(cells)
        between = [separator or chosen.choice([b" ", b"\t", b"  "]) for _ in cells]
        lines.append(b"".join(map(b"".join, zip(cells, [*between[1:], b""], strict=True))))
    return shared(chosen, lines, b"\n")


def sort_by(field: int, separator: bytes | None, name: str, *, ignoring: bool) -> list[str]:
    between = [] if separator is None else ["-t", separator.decode()]
    blanks = "" if separator else "b"
    return ["sort", "-s", *between, f"-k{field}{blanks},{field}{'f' * ignoring}", name]
