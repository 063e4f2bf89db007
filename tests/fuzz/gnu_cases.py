"""`distinct` and `top` on lines against GNU sort, with all its keys."""

import random

from tests.fuzz.campaign import Case
from tests.fuzz.cases import sort_case

from gristmill.names import quote

__all__ = ["distinct_lines_case", "top_lines_case"]

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
