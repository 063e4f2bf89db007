"""What users read is plain: strings of errors and messages, and the documentation.

Comments and docstrings are for those who read the code: they use the words of the glossary. Help
texts have tests/cli/test_help.py.
"""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

ODD = re.compile(
    r"\b(people's|whoever|nobody|somebody|anybody|looks? whether|go(es)? on with|to go on|"
    r"(went|gone|going) on with|look(ed|ing) whether|how manyth|one's own|in the place of|"
    r"can(not)? go on|(?<!there )(is|are) no (?!longer|more)[a-z]+)\b",
    re.IGNORECASE,
)
"""Sentences that are not plain English; tests/cli/test_help.py looks for more."""

OUT = re.compile(
    r"\b(people's (own )?(code|functions)|how manyth|go(es)? on with (the|a|its) (job|history))\b",
    re.IGNORECASE,
)
"""Words that are out everywhere, comments too: docs/reference/glossary.md has the ones to use."""

GLOSSARY_OF_WORDS_OUT = "\n## Words that are out\n"
"""The end of docs/reference/glossary.md shows what not to write."""

RUST_STRING = re.compile(
    r"""//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])'|r(#*)"(.*?)"\1|"((?:\\.|[^"\\])*)\"""", re.DOTALL
)
"""A comment, a character, a raw string, or a string: so that no quote in one begins another."""


def of_python(text: str) -> Iterator[str]:
    """The strings of a module, but for its docstrings."""
    tree = ast.parse(text)
    docs = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def of_rust(text: str) -> Iterator[str]:
    """The strings of a file, but for those of its unit tests."""
    for found in RUST_STRING.finditer(text.partition("#[cfg(test)]")[0]):
        yield found[2] or re.sub(r"\\\n\s*", "", found[3] or "")


def sources() -> list[Path]:
    rust = [
        path
        for crate in ("engine", "gnu-keys", "grep", "python")
        for path in ROOT.glob(f"crates/{crate}/src/**/*.rs")
    ]
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    found = [*rust, *ROOT.glob("python/**/*.py"), *pages]
    return sorted(path for path in found if "tests" not in path.parts and path.name != "tests.rs")


def odd(path: Path) -> list[str]:
    text = path.read_text().partition(GLOSSARY_OF_WORDS_OUT)[0]
    strings = {".py": of_python, ".rs": of_rust}.get(path.suffix, str.splitlines)(text)
    return [line for line in strings if ODD.search(line)]


def test_what_users_read_is_plain() -> None:
    found = {str(path.relative_to(ROOT)): lines for path in sources() if (lines := odd(path))}
    assert found == {}


def test_comments_use_the_words_of_the_glossary() -> None:
    code = [path for path in sources() if path.suffix in (".py", ".rs")]
    found = [str(path.relative_to(ROOT)) for path in code if OUT.search(path.read_text())]
    assert found == []


def test_words_that_are_out_are_found() -> None:
    for text in ("people's own code", "The how manyth", "to go on with a job"):
        assert OUT.search(text), text
    assert ODD.search("it is no file")
    assert ODD.search("it looks whether")


def test_the_glossary_has_the_words_of_the_design() -> None:
    text = (ROOT / "docs/reference/glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| ([^|]+?) \| [^|]+ \|$", text, re.MULTILINE)
    for word in ("job", "attempt", "split", "sorted run, run", "segment", "committer", "user code"):
        assert word in words, word
    words = [word for word in words if word != "word"]
    assert len(words) == len(set(words)), "a word stands there twice"


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (of_python, '"""Doc."""\nx = f"To go on: {1}"'),
        (of_rust, "// \"a\nlet a = 'x'; let b = '\"'; let c = \"nobody \\\n  reads\";"),
        (of_rust, 'let a = r#"say "whoever""#;'),
    ],
)
def test_odd_words_are_found(of: Callable[[str], Iterator[str]], text: str) -> None:
    assert any(ODD.search(line) for line in of(text))
