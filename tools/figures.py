"""Figures of the code itself: lines, comments, circles, and the edit sites of a commit.

    make figures                                  lines by language, share of comments, circles
    python tools/figures.py --against v0.1        the same of a revision, beside it
    python tools/figures.py --sites abc123        the places that a commit edits

A code line holds something that is neither blank nor a comment. A docstring is a comment. Tests,
benchmarks and these tools are not counted. A circle is a set of files of which each reaches every
other by arrows (arrows.py). An edit site, as the rule for growth counts them, is a stretch of
changed lines in a file that was there before, or a new file; tests and documentation apart.
"""

import argparse
import io
import json
import re
import subprocess
import tarfile
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from arrows import circles, merged, python_arrows, rust_arrows
from pygments.lexers import CssLexer, JavascriptLexer, PythonLexer, RustLexer
from pygments.token import Comment, String, Whitespace

TOP = Path(__file__).parent.parent
LEXERS = {".rs": RustLexer, ".py": PythonLexer, ".js": JavascriptLexer, ".css": CssLexer}
FOLDERS = ("crates/engine/src", "crates/python/src", "python/gristmill")
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


def count(top: Path) -> dict[str, Lines]:
    """Lines by language, of the folders that hold the program."""
    found: dict[str, Lines] = {}
    for folder in FOLDERS:
        for path in sorted((top / folder).rglob("*")):
            is_test = path.stem == "tests" or "tests" in path.parts
            if path.suffix not in LEXERS or is_test or not path.is_file():
                continue
            source = path.read_text(encoding="utf-8")
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


def circles_of(top: Path) -> list[list[str]]:
    """The circles of both languages, largest first."""
    crates = [rust_arrows(top / folder) for folder in FOLDERS[:2]]
    found = circles(merged([*crates, python_arrows(top / FOLDERS[2])]))
    return [[str(path.relative_to(top)) for path in circle] for circle in found]


def sites_of(commit: str) -> dict[str, int]:
    """The edit sites of a commit, by file; several commits as `a..b`."""
    between = commit if ".." in commit else f"{commit}^..{commit}"
    command = ["git", "diff", "--unified=0", "--no-renames", "--no-ext-diff", between]
    diff = subprocess.run(command, cwd=TOP, capture_output=True, check=True).stdout
    sites: dict[str, int] = {}
    path = ""
    for line in diff.decode("utf-8", "replace").splitlines():
        if line.startswith(("+++ b/", "--- a/")):
            path = line[6:]
        elif line.startswith("@@") and not NO_SITES.search(path):
            sites[path] = sites.get(path, 0) + 1
    return sites


def at_revision(revision: str, folder: Path) -> Path:
    """The program's folders as they were at a revision."""
    command = ["git", "archive", revision, *FOLDERS]
    archive = subprocess.run(command, cwd=TOP, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def show(title: str, lines: dict[str, Lines], found: list[list[str]]) -> None:
    """The figures of one revision."""
    print(title)
    for language, of in lines.items():
        print(
            f"  {language:<4} {of.files:>4} files  {of.code:>7,} code lines"
            f"  {of.comments:>7,} comment lines  {of.share:6.1%}"
        )
    print(f"  {len(found)} circles{':' if found else ''}")
    for circle in found:
        print(f"    {len(circle)} files: {', '.join(circle)}")


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
    revisions = {"now": (count(TOP), circles_of(TOP))}
    if given.against:
        with tempfile.TemporaryDirectory() as folder:
            before = at_revision(given.against, Path(folder))
            revisions = {given.against: (count(before), circles_of(before)), **revisions}
    if given.json:
        figures = {
            name: {
                "lines": {language: asdict(of) for language, of in lines.items()},
                "circles": found,
            }
            for name, (lines, found) in revisions.items()
        }
        print(json.dumps(figures, indent=1))
        return
    for name, (lines, found) in revisions.items():
        show(name, lines, found)


if __name__ == "__main__":
    main()
