"""The table of all errors, tests/errors_table.txt: to be read as a whole, for one voice.

    Rust    Error::new(Kind::X, "operation", "message") ... .advise("advice")     kind x
    Python  Refused("what", "advice"), raise ValueError("what")                   its class

    python tools/errors.py      writes the table; tests/test_errors_table.py compares it

Found by reading, not by running: `{name}` stands for what the program fills in. A message that is
put together elsewhere stands as `{name}` alone.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from arrows import without_tests

__all__ = ["FILE", "made", "of_python", "of_rust"]

TOP = Path(__file__).parents[1]
FILE = TOP / "tests/errors_table.txt"

_HEAD = """\
# Every error, by its kind: made by `make format` (tools/errors.py). Read it aloud.
"""
_STRING = re.compile(r'"((?:\\.|[^"\\])*)"', re.DOTALL)
_EXPRESSION = re.compile(r'(?:"(?:\\.|[^"\\])*"|[^;"])*', re.DOTALL)
_METHOD = re.compile(r"\s*\.(\w+)\(")
_RAISED = re.compile(r"(Error|Refused|BadParameter|Missing)$")


def made() -> str:
    """Return the table."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted(TOP.glob("crates/*/src/**/*.rs")):
        if "tests" not in path.parts and path.stem != "tests":
            for kind, text in of_rust(without_tests(path.read_text(encoding="utf-8"))):
                found[kind].add(text)
    for path in sorted(TOP.glob("python/gristmill/**/*.py")):
        for kind, text in of_python(path.read_text(encoding="utf-8")):
            found[kind].add(text)
    parts = [
        f"{kind}\n" + "".join(f"  {text}\n" for text in sorted(found[kind]))
        for kind in sorted(found)
    ]
    return "\n".join([_HEAD, *parts])


def of_rust(source: str) -> Iterator[tuple[str, str]]:
    """Yield kind and text of each error that a file of Rust makes.

    >>> made = 'Error::new(Kind::BadInput, "read", format!("{n} is odd")).advise("cut it")'
    >>> list(of_rust(made))
    [('bad_input', 'cannot read: {n} is odd. What to do: cut it.')]
    """
    for call in re.finditer(r"\bError::(new|bug)\(", source):
        arguments, end = _arguments(source, call.end())
        kind = "bug" if call[1] == "bug" else _kind(arguments.pop(0))
        if len(arguments) < 2:
            continue
        before = source[max(0, call.start() - 1500) : call.start()]
        operation, message = (_rust_text(argument, before) for argument in arguments[:2])
        text = f"cannot {operation}: {message}."
        while method := _METHOD.match(source, end):
            given, end = _arguments(source, method.end())
            if method[1] == "advise" and given:
                text += f" What to do: {_rust_text(given[0], before)}."
        yield kind, text


def _kind(argument: str) -> str:
    name = re.search(r"Kind::(\w+)", argument)
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name[1]).lower() if name else "of another error"


def _arguments(source: str, begin: int) -> tuple[list[str], int]:
    """The arguments of a call that begins there, and where it ends."""
    depth, at, last = 0, begin, begin
    found: list[str] = []
    while at < len(source):
        if source[at] == '"' and (string := _STRING.match(source, at)):
            at = string.end()
            continue
        if source[at] in "([{":
            depth += 1
        elif source[at] in ")]}":
            depth -= 1
        if depth < 0 or (depth == 0 and source[at] == ","):
            found.append(source[last:at].strip())
            last = at + 1
        if depth < 0:
            break
        at += 1
    return [argument for argument in found if argument], at + 1


def _rust_text(argument: str, before: str) -> str:
    if re.fullmatch(r"&?\w+", argument):
        named = argument.removeprefix("&")
        assigned = list(re.finditer(rf"\blet {named} =", before))
        if assigned:
            argument = _EXPRESSION.match(before, assigned[-1].end())[0]  # type: ignore[index]
    strings = [re.sub(r"\\\n\s*", "", string) for string in _STRING.findall(argument)]
    if not strings:
        return f"{{{' '.join(argument.split())}}}"
    return " | ".join(string.replace('\\"', '"') for string in strings)


def of_python(source: str) -> Iterator[tuple[str, str]]:
    """Yield class and text of each exception that a file of Python makes of a text.

    >>> list(of_python('raise Refused(f"no {name}", "see --help")'))
    [('Refused', 'no {name}. What to do: see --help.')]
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        texts = [_python_text(argument) for argument in node.args]
        if _RAISED.search(name) and (text := texts[0]):
            advice = texts[1] if name == "Refused" and len(texts) > 1 else None
            yield name, text + (f". What to do: {advice}." if advice else "")


def _python_text(node: ast.expr) -> str | None:
    """The text of an expression; `None` where it has none of its own."""
    match node:
        case ast.Constant(value=str(text)):
            return " ".join(text.split())
        case ast.JoinedStr():
            parts = [
                str(part.value) if isinstance(part, ast.Constant) else _filled(part)
                for part in node.values
            ]
            return " ".join("".join(parts).split())
        case ast.BinOp(op=ast.Add()):
            both = [_python_text(node.left), _python_text(node.right)]
            return "".join(part or "{...}" for part in both) if any(both) else None
        case _:
            return None


def _filled(part: ast.expr) -> str:
    return "{" + ast.unparse(part.value) + "}" if isinstance(part, ast.FormattedValue) else "{...}"


def main() -> None:
    """Write the table."""
    FILE.write_text(made(), encoding="utf-8")


if __name__ == "__main__":
    main()
