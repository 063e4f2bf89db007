"""`gristmill grep` of UTF-16: decoded where a mark says so, and told where it only looks so."""

import gzip
import subprocess
import warnings
from pathlib import Path

import pytest

import gristmill as gm

from .harness import GRISTMILL, clean_environment

TEXT = "needle öne\r\nno\nthe néedle, the needle 𝄞\n"


def grep(*words: str | Path, cwd: Path, stdin: bytes = b"") -> tuple[int, str, str]:
    """The exit code, what it prints, and what it says."""
    done = subprocess.run(
        [GRISTMILL, "grep", *map(str, words)],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env=clean_environment(),
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture(params=["utf-16-le", "utf-16-be"])
def wide(request: pytest.FixtureRequest) -> bytes:
    """A text in UTF-16, with its mark."""
    return f"\ufeff{TEXT}".encode(request.param)


def test_utf16_with_its_mark_is_searched_as_its_text(wide: bytes, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/wide").write_bytes(wide)
    (tmp_path / "in/packed.gz").write_bytes(gzip.compress(wide))
    (tmp_path / "plain").write_text(TEXT, newline="")
    options = [
        ["-n"],
        ["-c"],
        ["-o", "-b"],
        ["-v"],
        ["-b"],
        ["-l"],
        ["-C", "1"],
        ["-a", "-w"],
        ["-x"],
    ]
    for pattern in ("needle", "^needle", "n.edle"):
        for option in options:
            code, found, _ = grep(*option, pattern, stdin=TEXT.encode(), cwd=tmp_path)
            assert grep(*option, pattern, stdin=wide, cwd=tmp_path) == (code, found, "")
            for name in ("wide", "packed.gz"):
                given = grep("-h", *option, pattern, f"in/{name}", cwd=tmp_path)
                want = found.replace("(standard input)", f"in/{name}")
                assert given == (code, want, "")
    code, found, _ = grep("-r", "-c", "needle", "in", cwd=tmp_path)
    assert (code, found) == (0, "in/packed.gz:2\nin/wide:2\n")
    code, _, said = grep("--json", "-q", "zzz", "in/wide", cwd=tmp_path)
    assert code == 1
    assert f'"bytes": {len(TEXT.encode())}, "lines": 0' in said
    lines = list(gm.grep("needle", tmp_path / "in/wide"))
    assert [(line.number, line.offset, line.text) for line in lines] == [
        (1, 0, "needle öne\r"),
        (3, 16, "the néedle, the needle 𝄞"),
    ]


def test_long_utf16_is_searched_to_its_end(tmp_path: Path) -> None:
    text = "".join(f"{number} grüße 𝄞\n" for number in range(100_000))
    (tmp_path / "long").write_bytes(text.encode("utf-16"))
    code, found, said = grep("-n", "9999 ", "long", cwd=tmp_path)
    assert (code, said) == (0, "")
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if "9999 " in line]
    assert found == "".join(f"{n}:{line}\n" for n, line in lines)


def test_what_looks_like_utf16_without_a_mark_is_told(wide: bytes, tmp_path: Path) -> None:
    (tmp_path / "bare").write_bytes(wide[2:])
    encoding = "UTF-16LE" if wide[2:4] == b"n\0" else "UTF-16BE"
    says = f"gristmill grep: bare: it looks like {encoding}, and is searched as it is."
    for options in ([], ["-c"], ["-a"], ["-v", "-l"]):
        _, _, said = grep(*options, "needle", "bare", cwd=tmp_path)
        assert said.startswith(f"{says} To decode it: iconv -f {encoding} -t UTF-8\n")
    for options in (["-q"], ["-s"], ["-I"], ["-z"]):
        assert grep(*options, "needle", "bare", cwd=tmp_path)[2] == ""
    assert says in grep("--label", "bare", "needle", stdin=wide[2:], cwd=tmp_path)[2]
    decoded = subprocess.run(
        ["iconv", "-f", encoding, "-t", "UTF-8"], input=wide[2:], capture_output=True, check=True
    ).stdout
    assert grep("-c", "needle", stdin=decoded, cwd=tmp_path)[1] == "2\n"
    with pytest.warns(UserWarning, match=f"bare: it looks like {encoding}"):
        assert list(gm.grep("needle", tmp_path / "bare")) == []
    (tmp_path / "32").write_bytes(TEXT.encode("utf-32"))
    assert "it looks like UTF-32" in grep("needle", "32", cwd=tmp_path)[2]


def test_other_binary_files_are_not_suspected(tmp_path: Path) -> None:
    (tmp_path / "nul").write_bytes(b"a line\n" * 1_000 + b"x\0y\nneedle\n")
    (tmp_path / "numbers").write_bytes(b"".join(n.to_bytes(2, "little") for n in range(5_000)))
    (tmp_path / "program").write_bytes(Path("/bin/true").read_bytes())
    for name in ("nul", "numbers", "program"):
        assert "looks like" not in grep("-c", "needle", name, cwd=tmp_path)[2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gm.grep("needle", tmp_path / "nul").counts()
    # The mark of UTF-8 is a part of its line, as for GNU grep.
    (tmp_path / "bom").write_bytes(b"\xef\xbb\xbfrow1\nrow2\n")
    assert grep("-c", "^row", "bom", cwd=tmp_path) == (0, "1\n", "")


@pytest.mark.parametrize(
    ("pattern", "escaped"),
    [
        (r"ERROR\|WARN", r"\|"),
        (r"\(a\)\1x"[:5], r"\("),
        (r"a\{2\}", r"\{"),
        (r"a\+", r"\+"),
        (r"ab\?", r"\?"),
    ],
)
def test_a_basic_regular_expression_that_finds_nothing_is_told(
    pattern: str, escaped: str, tmp_path: Path
) -> None:
    text = b"ERROR a\nWARN aa\n"
    code, found, said = grep(pattern, stdin=text, cwd=tmp_path)
    assert (code, found) == (1, "")
    assert said == (
        f"gristmill grep: nothing was selected, and {escaped} in the pattern stands for the"
        f" character {escaped[1]}. Patterns are written as for grep -E: {escaped[1]} without the"
        " backslash is the operator.\n"
    )
    assert grep("-c", pattern, stdin=text, cwd=tmp_path)[:2] == (1, "0\n")
    for options in (["-q"], ["-s"], ["-F"]):
        assert grep(*options, pattern, stdin=text, cwd=tmp_path) == (1, "", "")
    # Where it finds something, it was meant.
    literal = pattern.replace("\\", "")
    code, found, said = grep(pattern, stdin=literal.encode(), cwd=tmp_path)
    assert (code, found, said) == (0, f"{literal}\n", "")
    for plain in (r"zzz\.", r"zzz\\|yyy\d", "zzz"):
        assert grep(plain, stdin=text, cwd=tmp_path) == (1, "", "")
