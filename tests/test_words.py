"""What users read is plain: strings of errors and messages, and the documentation.

Comments and docstrings are for those who read the code; help texts have tests/cli/test_help.py.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

ODD = re.compile(
    r"\b(people's|whoever|nobody|somebody|anybody|looks? whether|go(es)? on with|to go on|"
    r"can(not)? go on|(?<!there )(is|are) no (?!longer|more)[a-z]+)\b",
    re.IGNORECASE,
)
"""Sentences that are not plain English; tests/cli/test_help.py looks for more."""

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
        path for crate in ("engine", "python") for path in ROOT.glob(f"crates/{crate}/src/**/*.rs")
    ]
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    found = [*rust, *ROOT.glob("python/**/*.py"), *pages]
    return sorted(path for path in found if "tests" not in path.parts and path.name != "tests.rs")


def odd(path: Path) -> list[str]:
    text = path.read_text()
    strings = {".py": of_python, ".rs": of_rust}.get(path.suffix, str.splitlines)(text)
    return [line for line in strings if ODD.search(line)]


def test_what_users_read_is_plain() -> None:
    found = {str(path.relative_to(ROOT)): lines for path in sources() if (lines := odd(path))}
    assert found == {}


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (of_python, '"""Doc."""\nx = f"To go on: {1}"'),
        (of_rust, "// \"a\nlet a = 'x'; let b = '\"'; let c = \"nobody \\\n  reads\";"),
        (of_rust, 'let a = r#"say "whoever""#;'),
    ],
)
def test_odd_words_are_found(of: object, text: str) -> None:
    assert callable(of)
    assert any(ODD.search(line) for line in of(text))
