"""What sources say of themselves: fields with their docstrings, functions with their signatures.

Read, not imported: the text is the same whatever version of Python makes the pages.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from reference import TOP

__all__ = ["Callable", "callables", "class_doc", "functions", "python_fields", "rust_fields"]

PACKAGE = TOP / "python/gristmill"


@dataclass(frozen=True, slots=True)
class Callable:
    """A function or method: how it is called, and its docstring."""

    name: str
    signature: str
    doc: str


def rust_fields(path: str, struct: str) -> list[tuple[str, str]]:
    """Return the public fields of a struct, each with its comment."""
    source = (TOP / "crates/engine/src" / path).read_text(encoding="utf-8")
    body = source.partition(f"pub struct {struct} {{")[2].partition("\n}")[0]
    assert body, f"{path} has no struct {struct}"
    found = re.findall(r"((?:\s*///[^\n]*\n)+)((?:\s*#\[[^\n]*\n)*)\s*pub (\w+):", body)
    return [
        (name, _sentence(re.sub(r"\s*///", " ", text)))
        for text, attributes, name in found
        if "skip" not in attributes
    ]


def python_fields(path: str, name: str) -> list[tuple[str, str]]:
    """Return the fields of a class, each with the string below it."""
    body = _class(PACKAGE / path, name).body
    found: list[tuple[str, str]] = []
    for at, statement in enumerate(body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            after = body[at + 1] if at + 1 < len(body) else None
            found.append((statement.target.id, _string(after)))
    return found


def class_doc(path: str, name: str) -> str:
    """Return the docstring of a class."""
    return ast.get_docstring(_class(PACKAGE / path, name)) or ""


def callables(path: str, name: str) -> list[Callable]:
    """Return the public methods and properties of a class, in their order."""
    return [
        _callable(node, f"{name}.{node.name}")
        for node in _class(PACKAGE / path, name).body
        if isinstance(node, ast.FunctionDef)
        and not node.name.startswith("_")
        and ast.get_docstring(node)
    ]


def functions(path: str) -> dict[str, Callable]:
    """Return the functions of a module, by their names."""
    tree = ast.parse((PACKAGE / path).read_text(encoding="utf-8"))
    return {
        node.name: _callable(node, node.name)
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }


def _class(path: Path, name: str) -> ast.ClassDef:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)


def _callable(node: ast.FunctionDef, name: str) -> Callable:
    names = [ast.unparse(decorator) for decorator in node.decorator_list]
    doc = ast.get_docstring(node) or ""
    if "property" in names:
        return Callable(name, name, doc)
    return Callable(name, _signature(node, name), doc)


def _signature(node: ast.FunctionDef, name: str) -> str:
    """How it is called: names and defaults, without types, which the text gives."""
    given = node.args
    words = [argument.arg for argument in (*given.posonlyargs, *given.args)]
    for at, default in enumerate(reversed(given.defaults), start=1):
        words[-at] += f"={_default(default)}"
    if given.vararg:
        words.append(f"*{given.vararg.arg}")
    elif given.kwonlyargs:
        words.append("*")
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        words.append(argument.arg + (f"={_default(default)}" if default else ""))
    if given.kwarg:
        words.append(f"**{given.kwarg.arg}")
    words = [word for word in words if word not in ("self", "cls")]
    return f"{name}({', '.join(words)})"


def _default(node: ast.expr) -> str:
    text = ast.unparse(node)
    return "..." if text == "Ellipsis" else text


def _string(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return _sentence(str(node.value.value))
    return ""


def _sentence(text: str) -> str:
    return " ".join(text.split())
