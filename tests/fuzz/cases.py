"""Cases of campaigns: options that both programs have, and data that are hard to read.

What is not drawn is where the two differ on purpose, as the guide says: of Unicode in patterns, of
binary files, of alternatives of a match, of names that begin with a dot.
"""

import random

from tests.fuzz.campaign import Case

__all__ = ["grep_case", "ripgrep_case", "sort_case"]

PIECES = [
    *(b"a", b"A", b"b", b"B", b"z", b"~", b".", b"..", b"-", b"--", b"+", b"_", b"0", b"00", b"1"),
    *(b"01", b"2", b"9", b"10", b"100", b"12", b" ", b"  ", b"\t", b" ", b",", b",", b",,", b"\0"),
    *(b"\x01", b"\xff", b"\x80", b"\xc3\xa4", b"\r", b"\x7f", b"\x0b", b".5", b"1.5", b"-1", b"-0"),
    *(b"-.5", b"-0.0", b"0.", b"1K", b"1k", b"2M", b"1G", b"-1M", b"0K", b"1.5K", b"3T", b"5m"),
    *(b"1.K", b"1,000", b"jan", b"Feb", b"MAR", b"APRIL", b"dec", b"ja", b"0x10", b"0X1p-3", b"0x"),
    *(b"1e3", b"1e", b"1E-2", b"1e+", b"inf", b"-Infinity", b"+inf", b"18446744073709551616"),
    *(b"18446744073709551617", b"1e5000", b"1e-5000", b".tar.gz", b".txt", b".~1~", b".c", b"v1"),
    *(b"foo-1.2", b"1.02", b"1.2.3", b".a1.b2", b"%", b"\n"),
]
"""Pieces of lines: those of crates/gnu-keys/tests."""

LONG = 200_000
"""Bytes of a long line, at most."""


def one_in(chosen: random.Random, times: int) -> bool:
    return chosen.randrange(times) == 0


def shared(
    chosen: random.Random, lines: list[bytes], end: bytes, *, plain_text: bool = False
) -> bytes:
    """Lines as a file: at times with CR LF, with a long line, without its last end."""
    if lines and one_in(chosen, 12):
        at = chosen.randrange(len(lines))
        long = [b"x", b"ab ", b"a1" if plain_text else b"\xff1"]
        lines[at] += chosen.choice(long) * chosen.randrange(LONG // 3)
    if one_in(chosen, 10):
        lines = [line + b"\r" for line in lines]
    data = b"".join(line + end for line in lines)
    return data[: -len(end)] if data and one_in(chosen, 4) else data


def cut(chosen: random.Random, data: bytes, names: list[str]) -> dict[str, bytes]:
    """Data as files, cut anywhere; some may be empty."""
    places = sorted(chosen.randrange(len(data) + 1) for _ in names[1:])
    bounds = zip([0, *places], [*places, len(data)], strict=True)
    return {name: data[begin:end] for name, (begin, end) in zip(names, bounds, strict=True)}


def pieces(chosen: random.Random) -> list[int]:
    """How standard input comes."""
    if one_in(chosen, 2):
        return []
    return [chosen.choice([1, 7, 100, 5000, 70_000]) for _ in range(3)]


# --- sort ---


def position(chosen: random.Random, first_char: int) -> str:
    text = str(1 + chosen.randrange(90 if one_in(chosen, 9) else 4))
    if one_in(chosen, 3):
        text += f".{first_char + chosen.randrange(5)}"
    letters = chosen.choice([0, 0, 1, 1, 2])
    return text + "".join(chosen.choice("bdfghiMnrVbfrn") for _ in range(letters))


def sort_options(chosen: random.Random) -> list[str]:
    """Options of GNU sort, now and then refused ones: as crates/gnu-keys/tests draws them."""
    options: list[str] = []
    for _ in range(chosen.randrange(4)):
        end = "" if one_in(chosen, 3) else f",{position(chosen, 0)}"
        options.append(f"-k{position(chosen, 1)}{end}")
    if one_in(chosen, 2):
        options.append("-t" + chosen.choice([",", ",", " ", "\t", "1", "a", "\\0"]))
    if one_in(chosen, 3):
        orders = ["n", "g", "h", "V", "f", "d", "i", "M", "b", "bf", "fd", "Vf", "bi", "nf"]
        options.append("-" + chosen.choice(orders))
    chances = {"-r": 3, "-s": 3, "-u": 4, "-z": 5, "-b": 6, "--parallel=2": 8}
    options += [option for option, times in chances.items() if one_in(chosen, times)]
    options += chosen.choice([["-c"], ["-C"], ["--check=quiet"]]) if one_in(chosen, 9) else []
    return options


def sort_case(chosen: random.Random) -> Case:
    """A case of `gristmill sort` against GNU sort."""
    options = sort_options(chosen)
    end = b"\0" if "-z" in options else b"\n"
    alphabet = [piece for piece in PIECES if end not in piece]
    count = chosen.choice([0, 1, 2, 5, 20, 60, 300])
    lines = [
        b"".join(chosen.choices(alphabet, k=chosen.randrange(7)))
        for _ in range(chosen.randrange(count + 1))
    ]
    checks = bool({"-c", "-C", "--check=quiet"} & set(options))
    if checks and one_in(chosen, 2):
        lines.sort()
    data = shared(chosen, lines, end)
    names = ["a", "b", "c"][: 1 + (0 if checks else chosen.randrange(3))]
    given, files, stdin = names, cut(chosen, data, names), b""
    if one_in(chosen, 3):
        files, stdin, given = {}, data, chosen.choice([[], ["-"]])
    elif one_in(chosen, 8) and not checks:
        files["names"] = "".join(f"{name}\0" for name in names).encode()
        given = ["--files0-from=names"]
    output = "" if checks or one_in(chosen, 2) else chosen.choice(["out", *names])
    words = [*options, *given, *(["-o", output] if output else [])]
    return Case(["sort", *words], ["sort", *words], files, stdin, pieces(chosen), output)


# --- grep ---

PLAIN = ["a", "b", "ab", "ba", "zz", "A", "a b", "x1", "aa", "b a"]
ATOMS = ["a", "b", "[ab]", ".", "a+", "(a|b)", "b*", "^a", "b$", "[^a]", " ", "(ab)+", "x", "a?"]
SMALL = [b"a", b"b", b"A", b" ", b"_", b"ab", b"x1", b"\t", b"aa", b"\n"]
HOSTILE = [*SMALL, b"\0", b"\r", b"\xff", b"\x80", b"\xc3\xa4", b"\xe2\x82", b"\x1b[31m"]


def grep_pattern(chosen: random.Random, *, plain: bool) -> str:
    if plain:
        return chosen.choice(PLAIN)
    return "".join(chosen.choice(ATOMS) for _ in range(1 + chosen.randrange(3)))


def grep_modes(chosen: random.Random) -> list[str]:
    """What is printed."""
    shown = chosen.choice([[], [], [], [], ["-c"], ["-l"], ["-L"], ["-q"], ["-o"], ["-o", "-b"]])
    options = [*shown]
    if "-o" not in options and one_in(chosen, 4):
        options.append("-v")
    if one_in(chosen, 3):
        options += chosen.choice(
            [[f"-A{chosen.randrange(4)}"], [f"-B{chosen.randrange(4)}"], ["-C2"], ["-1"], ["-B9"]]
        )
    chances = {"-n": 3, "-b": 6, "-H": 5, "-h": 6, "-Z": 9, "-s": 9}
    options += [option for option, times in chances.items() if one_in(chosen, times)]
    options += [f"-m{chosen.randrange(5)}"] if one_in(chosen, 4) else []
    options += chosen.choice(
        [[], [], [], [], ["--group-separator=="], ["--no-group-separator"], ["--label=in put"]]
    )
    return options


def grep_case(chosen: random.Random) -> Case:
    """A case of `gristmill grep` against GNU grep."""
    plain = one_in(chosen, 2)  # bytes of all kinds, in which patterns stand for themselves
    null_data = one_in(chosen, 5)
    end = b"\0" if null_data else b"\n"
    alphabet = [piece for piece in (HOSTILE if plain else SMALL) if end not in piece]
    lines = [
        b"".join(chosen.choices(alphabet, k=chosen.randrange(6)))
        for _ in range(chosen.choice([0, 1, 3, 30, 30, 300]))
    ]
    data = shared(chosen, lines, end, plain_text=not plain)
    fixed = plain and one_in(chosen, 2)
    options = ["-F" if fixed else "-E", *grep_modes(chosen), "-a", *(["-z"] * null_data)]
    whole = one_in(chosen, 8)
    options += ["-i"] * one_in(chosen, 4) + ["-x"] * whole
    options += ["-w"] * (not whole and not plain and one_in(chosen, 5))
    options += chosen.choice([[], [], ["--color=always"], ["--colour=never"], ["--color=auto"]])
    wanted = ["" if one_in(chosen, 20) else grep_pattern(chosen, plain=plain)]
    if "-o" not in options and "--color=always" not in options and one_in(chosen, 4):
        wanted.append(grep_pattern(chosen, plain=plain))
    given = [word for pattern in wanted for word in ("-e", pattern)]
    if one_in(chosen, 8):
        given = ["-f", "patterns"]
    elif len(wanted) == 1 and one_in(chosen, 2):
        given = ["--", wanted[0]]
    return grep_inputs(chosen, data, options, given, wanted)


def grep_inputs(
    chosen: random.Random, data: bytes, options: list[str], given: list[str], wanted: list[str]
) -> Case:
    """The same with inputs: files, a folder, or standard input."""
    names = ["a.c", "b.h", "c"][: 1 + chosen.randrange(3)]
    files, stdin, inputs = cut(chosen, data, names), b"", names
    kind = chosen.randrange(6)
    if kind == 0:
        files, stdin, inputs = {}, data, chosen.choice([[], ["-"]])
    elif kind == 1:
        inputs = [*names, "none"]
    elif kind == 2:
        files = {f"d/{name}": text for name, text in files.items()}
        inputs = [f"d/{name}" for name in names]
        options = [*options, *file_globs(chosen)]
    files = {**files, "patterns": "\n".join(wanted).encode() + b"\n"}
    words = [*options, *given, *inputs]
    return Case(["grep", *words], ["grep", *words], files, stdin, pieces(chosen))


def file_globs(chosen: random.Random) -> list[str]:
    globs = ["--include=*.c", "--exclude=*.h", "--include=*", "--exclude=b*", "--include=d/*.h"]
    return [chosen.choice(globs) for _ in range(1 + chosen.randrange(3))]


# --- ripgrep ---


def ripgrep_case(chosen: random.Random) -> Case:
    """A case of `gristmill grep` against ripgrep: the same syntax of patterns, of any bytes."""
    lines = [
        b"".join(chosen.choices([*SMALL[:-1], b"\xc3\xa4", b"\xff", b"\0"], k=chosen.randrange(6)))
        for _ in range(chosen.choice([0, 1, 3, 30, 30, 300]))
    ]
    data = shared(chosen, lines, b"\n")
    mode = chosen.choice([[], [], [], ["-c"], ["-l"], ["-o"], ["-q"]])
    options = [*mode, "-a"]
    if "-o" not in options:
        options += ["-v"] * one_in(chosen, 4)
    chances = {"-n": 3, "-i": 4, "-F": 5}
    options += [option for option, times in chances.items() if one_in(chosen, times)]
    options += chosen.choice([[], [], [], ["-w"], ["-x"]])
    if mode == [] and one_in(chosen, 3):
        options += chosen.choice([["-A2"], ["-B2"], ["-C1"]])
    # ripgrep writes a line for each match that is empty.
    pattern = grep_pattern(chosen, plain="-F" in options or "-o" in options)
    names = ["a", "b"][: 1 + chosen.randrange(2)]
    words = [*options, "-e", pattern, *names]
    only = ["--no-config", "--no-heading", "--color=never", "--include-zero", "-j1"]
    numbers = [] if "-n" in options else ["-N"]
    return Case(["grep", *words], ["rg", *only, *numbers, *words], cut(chosen, data, names))
