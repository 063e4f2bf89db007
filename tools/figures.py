"""Figures of the code itself: lines, comments, names, circles, and the edit sites of a commit.

    make figures                                  of the files as they are now
    python tools/figures.py --against v0.1        the same of a revision, beside it
    python tools/figures.py --sites abc123        the places that a commit edits

The program is all of `crates/*/src` and of the Python packages in `python/`. A code line holds
something that is neither blank nor a comment. A docstring is a comment. Unit tests are not counted;
other tests, benchmarks and these tools count as lines of the repository alone. A circle is a set of
files of which each reaches every other by arrows (arrows.py, which also says what goes up). An edit
site, as the rule for growth counts them, is a stretch of changed lines in a file that was there
before, or a new file; tests and documentation apart.
"""

import argparse
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from arrows import (
    arrows_up,
    blanked,
    circles,
    merged,
    python_arrows,
    rust_arrows,
    without_tests,
)
from pygments.lexers import CssLexer, JavascriptLexer, PythonLexer, RustLexer
from pygments.token import Comment, String, Whitespace

TOP = Path(__file__).parent.parent
sys.path.insert(0, str(TOP))
from tests.test_layers import PYTHON_ALLOWED  # noqa: E402 - the order of rooms

LEXERS = {".rs": RustLexer, ".py": PythonLexer, ".js": JavascriptLexer, ".css": CssLexer}
PROGRAM = re.compile(r"crates/[^/]+/src/|python/[^/]+/")
NO_LINES = re.compile(r"\.lock$|^requirements/|\.(png|svg|ico|jpg|gif)$")
TYPE = re.compile(r"\b(?:struct|enum|trait)\s+(\w+)")
NO_SITES = re.compile(r"(^|/)(tests?|docs|benches|benchmarks)(/|\.rs$)|\.md$|\.lock$|\.pyi$|\.1$")


@dataclass
class Lines:
    """Lines of one language."""

    files: int = 0
    code: int = 0
    comments: int = 0

    @property
    def share(self) -> float:
        """The share of comments in all lines that are not blank."""
        return self.comments / max(self.code + self.comments, 1)


def lines_of(source: str, suffix: str) -> tuple[int, int]:
    """Code lines and comment lines of a source.

    >>> lines_of('x = 1  # why' + chr(10) * 2 + '# more' + chr(10), '.py')
    (1, 1)
    """
    code: set[int] = set()
    comments: set[int] = set()
    line = 1
    for kind, text in LEXERS[suffix](stripnl=False, ensurenl=False).get_tokens(source):
        is_comment = (kind in Comment and kind not in Comment.Preproc) or kind in String.Doc
        for offset, part in enumerate(text.split("\n")):
            if part.strip() and kind not in Whitespace:
                (comments if is_comment else code).add(line + offset)
        line += text.count("\n")
    return len(code), len(comments - code)


@dataclass
class Figures:
    """What there is to say of one revision; paths are those within it."""

    lines: dict[str, Lines]
    """By language, and `all`."""
    repository: int
    """Lines of all files but locks, requirements and pictures."""
    names: dict[str, int]
    """Names of Rust types that stand more than once, and how often."""
    folders: dict[str, int]
    """How many files of the program stand in a folder, the largest first."""
    circles: list[list[str]]
    up: list[list[str]]
    """Arrows up in Python: from, to."""


def figures_of(top: Path, files: Iterable[str]) -> Figures:
    """The figures of the files of a revision, which stand below `top`."""
    files = sorted(files)
    program = [path for path in map(Path, files) if is_program(path)]
    crates = merged(rust_arrows(src) for src in sorted(top.glob("crates/*/src")))
    packages = {
        path.parent: python_arrows(path.parent) for path in top.glob("python/*/__init__.py")
    }
    return Figures(
        lines=count(top, program),
        repository=sum(newlines(top / path) for path in files if not NO_LINES.search(path)),
        names=names_again(top, program),
        folders=dict(Counter(str(path.parent) for path in program).most_common()),
        circles=[
            [str(path.relative_to(top)) for path in circle]
            for circle in circles(merged([crates, *packages.values()]))
        ],
        up=[
            [str(path.relative_to(top)) for path in arrow]
            for package, arrows in sorted(packages.items())
            for arrow in arrows_up(arrows, package, PYTHON_ALLOWED)
        ],
    )


def is_program(path: Path) -> bool:
    """Whether a file of the repository is a source of the program, and not of its unit tests."""
    is_test = path.stem == "tests" or "tests" in path.parts
    return bool(PROGRAM.match(str(path))) and path.suffix in LEXERS and not is_test


def newlines(path: Path) -> int:
    """The lines of a file; none of one that is not text."""
    content = path.read_bytes() if path.is_file() else b""
    return 0 if b"\0" in content else content.count(b"\n")


def names_again(top: Path, program: Iterable[Path]) -> dict[str, int]:
    """The names of Rust types that stand more than once in the workspace, the most often first."""
    found: Counter[str] = Counter()
    for path in program:
        if path.suffix == ".rs":
            source = (top / path).read_text(encoding="utf-8")
            found.update(TYPE.findall(without_tests(blanked(source))))
    again = ((name, number) for name, number in found.items() if number > 1)
    return dict(sorted(again, key=lambda item: (-item[1], item[0])))


def count(top: Path, program: Iterable[Path]) -> dict[str, Lines]:
    """Lines by language."""
    found: dict[str, Lines] = {}
    for path in program:
        source = (top / path).read_text(encoding="utf-8")
        source = without_unit_tests(source) if path.suffix == ".rs" else source
        code, comments = lines_of(source, path.suffix)
        of = found.setdefault(path.suffix.lstrip("."), Lines())
        of.files, of.code, of.comments = of.files + 1, of.code + code, of.comments + comments
    found["all"] = Lines(*(sum(getattr(of, name) for of in found.values()) for name in _FIELDS))
    return found


_FIELDS = ("files", "code", "comments")


def without_unit_tests(source: str) -> str:
    """Rust without the module of unit tests that stands at the end of a file."""
    return re.split(r"^#\[cfg\(test\)\]\n(?:#\[.*\]\n)*mod \w+ \{", source, flags=re.MULTILINE)[0]


def sites_of(commit: str) -> dict[str, int]:
    """The edit sites of a commit, by file; several commits as `a..b`."""
    between = commit if ".." in commit else f"{commit}^..{commit}"
    diff = git("diff", "--unified=0", "--no-renames", "--no-ext-diff", between)
    sites: dict[str, int] = {}
    path = ""
    for line in diff.decode("utf-8", "replace").splitlines():
        if line.startswith(("+++ b/", "--- a/")):
            path = line[6:]
        elif line.startswith("@@") and not NO_SITES.search(path):
            sites[path] = sites.get(path, 0) + 1
    return sites


def now() -> Figures:
    """The figures of the files that git knows, or would take, as they are."""
    told = git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    paths = (path for path in told.decode().split("\0") if path)
    return figures_of(TOP, (path for path in paths if (TOP / path).is_file()))


def at_revision(revision: str) -> Figures:
    """The figures of a revision."""
    with (
        tempfile.TemporaryDirectory() as folder,
        tarfile.open(fileobj=io.BytesIO(git("archive", revision))) as tar,
    ):
        tar.extractall(folder, filter="data")
        return figures_of(Path(folder), (each.name for each in tar if each.isfile()))


def git(*words: str) -> bytes:
    """What git prints."""
    return subprocess.run(["git", *words], cwd=TOP, capture_output=True, check=True).stdout


def show(title: str, found: Figures) -> None:
    """The figures of one revision."""
    print(title)
    for language, of in found.lines.items():
        print(
            f"  {language:<4} {of.files:>4} files  {of.code:>7,} code lines"
            f"  {of.comments:>7,} comment lines  {of.share:6.1%}"
        )
    print(f"  {found.repository:,} lines of the repository: no locks, requirements, pictures")
    largest = [f"{folder} {files}" for folder, files in list(found.folders.items())[:10]]
    print(f"  {len(found.folders)} folders; the most files side by side: {', '.join(largest)}")
    names = [f"{name} {number}" for name, number in found.names.items()]
    print(f"  {len(names)} names of Rust types stand more than once: {', '.join(names) or '-'}")
    print(f"  {len(found.circles)} circles")
    for circle in found.circles:
        print(f"    {len(circle)} files: {', '.join(circle)}")
    print(f"  {len(found.up)} arrows up in Python")
    for source, target in found.up:
        print(f"    {source} -> {target}")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--against", metavar="REVISION", help="the same of a revision, beside it")
    parser.add_argument("--sites", metavar="COMMIT", help="the edit sites of a commit, or of a..b")
    parser.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args()
    if given.sites:
        sites = sites_of(given.sites)
        if given.json:
            print(json.dumps(sites))
            return
        for path, number in sites.items():
            print(f"  {number:>3}  {path}")
        print(f"  {sum(sites.values()):>3}  edit sites")
        return
    revisions = {given.against: at_revision(given.against)} if given.against else {}
    revisions["now"] = now()
    if given.json:
        print(json.dumps({name: asdict(found) for name, found in revisions.items()}, indent=1))
        return
    for name, found in revisions.items():
        show(name, found)


if __name__ == "__main__":
    main()
