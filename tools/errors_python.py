"""The errors of the Python sources, found by reading.

    raise ValueError("cannot read input: … What to do: ….")   a row
    def refuse(what): raise ValueError(f"cannot …: {what}")   a template: each call of it is a row

As in errors_rust.py, a text that is not a literal is looked for where its name is bound, and what
stays unknown is a hole.
"""

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path

from errors_row import ALTERNATIVES, Row, filled, is_sentence, taken_apart

Scope = ast.FunctionDef | ast.AsyncFunctionDef
NOTICES = frozenset({"note", "warn", "fail", "notice", "remark"})
DETAILED = frozenset({"Refused"})
"""Exceptions whose second argument is advice."""
NOT_FOR_USERS = frozenset(
    {"StopIteration", "AttributeError", "SystemExit", "KeyError", "Exit", "AssertionError"}
)


def is_exception(name: str) -> bool:
    """Whether a name is that of an exception.

    >>> is_exception("ValueError"), is_exception("WrongCommandError"), is_exception("str")
    (True, True, False)
    """
    known = getattr(builtins, name, None)
    if isinstance(known, type):
        return issubclass(known, BaseException)
    ours = ("Refused", "BadRecord", "TaskFailure", "TooManyBad", "DemoFailed", "BadParameter")
    return name in ours or (name.endswith("Error") and name[:1].isupper())


def name_of(call: ast.Call) -> str:
    """The last name of what is called."""
    match call.func:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


@dataclass
class Function:
    """A function: its rows, and whether a call has filled its template."""

    node: Scope
    rows: list[Row] | None = None
    is_called: bool = False

    @property
    def parameters(self) -> list[str]:
        """The names of its parameters, in order."""
        given = self.node.args
        names = [each.arg for each in (*given.posonlyargs, *given.args)]
        return names[1:] if names[:1] in (["self"], ["cls"]) else names

    def given(self, call: ast.Call) -> dict[str, ast.expr]:
        """The arguments of a call by the names of its parameters."""
        found = dict(zip(self.parameters, call.args, strict=False))
        return found | {each.arg: each.value for each in call.keywords if each.arg}

    @property
    def names(self) -> set[str]:
        """The names of all of its parameters."""
        return {*self.parameters, *(each.arg for each in self.node.args.kwonlyargs)}


class Module:
    """A source file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.functions = [Function(node) for node in ast.walk(self.tree) if isinstance(node, Scope)]
        self.functions.sort(key=lambda each: each.node.lineno)
        self.constants = bound_in(self.tree.body)
        self.imported = {
            alias.asname or alias.name
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gristmill")
            for alias in node.names
        }


def bound_in(body: list[ast.stmt]) -> dict[str, list[ast.expr]]:
    """The values that each name is bound to in some statements, functions in them apart."""
    found: dict[str, list[ast.expr]] = {}
    for node in own_nodes(body):
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=value):
                found.setdefault(name, []).append(value)
            case ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value):
                found.setdefault(name, []).append(value)
            case ast.Assign(targets=[ast.Tuple(names)], value=ast.Tuple(values)):
                for each, value in zip(names, values, strict=False):
                    if isinstance(each, ast.Name):
                        found.setdefault(each.id, []).append(value)
            case _:
                pass
    return found


def own_nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """All nodes of a body in the order of the source, without those of the functions in it."""
    for statement in body:
        waiting: list[ast.AST] = [statement]
        while waiting:
            node = waiting.pop()
            if isinstance(node, (*Scope.__args__, ast.ClassDef)):
                continue
            yield node
            waiting += reversed(list(ast.iter_child_nodes(node)))


class PythonErrors:
    """All modules, which share helpers."""

    def __init__(self, package: Path) -> None:
        self.modules = [Module(path) for path in sorted(package.rglob("*.py"))]
        self.shared: dict[str, tuple[Module, Function]] = {}
        for module in self.modules:
            for function in module.functions:
                self.shared.setdefault(function.node.name, (module, function))

    def rows(self) -> Iterator[tuple[Path, Row]]:
        """Yield each row with its file, in the order of the sources."""
        tables = [
            (module, function, self._raised(module, function))
            for module in self.modules
            for function in module.functions
        ]
        for module, function, rows in tables:
            own = {f"{{{name}}}" for name in function.names}
            for row in rows:
                if not (function.is_called and own & set(row.holes())):
                    yield module.path, row

    def _raised(self, module: Module, function: Function) -> list[Row]:
        if function.rows is None:
            function.rows = []  # a circle ends here
            bound = bound_in(function.node.body)
            found: list[Row] = []
            for node in own_nodes(function.node.body):
                if isinstance(node, ast.Call):
                    found += self._of_call(module, function, bound, node)
            function.rows = list(dict.fromkeys(found))
        return function.rows

    def _of_call(
        self,
        module: Module,
        function: Function,
        bound: dict[str, list[ast.expr]],
        call: ast.Call,
    ) -> Iterator[Row]:
        name = name_of(call)
        texts = Texts(self, module, bound, function.names)
        if is_exception(name) and name not in NOT_FOR_USERS and call.args:
            advice = texts.of(call.args[1]) if name in DETAILED and len(call.args) > 1 else [""]
            for text in texts.of(call.args[0]):
                row = taken_apart(name, text)
                if is_sentence(text) or "{" in text:
                    yield Row(row.kind, row.operation, row.message, row.advice or advice[0])
        elif name in NOTICES and call.args:
            for text in texts.of(call.args[-1] if name == "fail" else call.args[0]):
                if is_sentence(text):
                    yield taken_apart("notice", text)
        else:
            yield from self._of_helper(module, function, texts, call)

    def function(self, module: Module, name: str) -> tuple[Module, Function] | None:
        """The function that a name is in a module, if it is one of the package."""
        for each in module.functions:
            if each.node.name == name:
                return module, each
        return self.shared.get(name) if name in module.imported else None

    def _of_helper(
        self, module: Module, function: Function, texts: "Texts", call: ast.Call
    ) -> Iterator[Row]:
        home, helper = self.function(module, name_of(call)) or (module, function)
        if helper is function or not is_helper(helper):
            return
        own = {f"{{{each}}}" for each in helper.names}
        for row in self._raised(home, helper):
            holes = own & set(row.holes())
            if not holes:
                continue
            helper.is_called = True
            given = helper.given(call)
            wanted = [hole[1:-1] for hole in sorted(holes) if hole[1:-1] in given]
            for values in islice(
                product(*(texts.of(given[each]) for each in wanted)), ALTERNATIVES
            ):
                made = row.filled(dict(zip(wanted, values, strict=True)))
                whole = taken_apart(made.kind, made.message)
                yield whole if whole.operation and not made.operation else made


def is_helper(function: Function) -> bool:
    """Whether a function only makes or raises an error: what it returns says so."""
    returned = ast.unparse(function.node.returns) if function.node.returns else ""
    return (
        returned == "NoReturn"
        or is_exception(returned.strip("'\""))
        or "refus" in (function.node.name)
    )


def branches(node: ast.IfExp | ast.BoolOp) -> list[ast.expr]:
    """What a choice can be; of `a or b`, what it is where nothing better is known."""
    match node:
        case ast.IfExp(body=first, orelse=second):
            return [first, second]
        case ast.BoolOp(values=values):
            return values[-1:]


@dataclass
class Texts:
    """The texts that an expression can be."""

    errors: PythonErrors
    module: Module
    bound: dict[str, list[ast.expr]]
    parameters: set[str]

    def of(self, node: ast.expr, depth: int = 0) -> list[str]:
        """All of them, each once."""
        return list(dict.fromkeys(islice(self._of(node, depth), ALTERNATIVES)))

    def _of(self, node: ast.expr, depth: int) -> Iterator[str]:
        match node:
            case ast.Constant(str() as text):
                yield text
            case ast.JoinedStr(values):
                yield from map("".join, product(*(self._part(each, depth) for each in values)))
            case ast.BinOp(left, ast.Add(), right):
                yield from map("".join, product(self.of(left, depth), self.of(right, depth)))
            case ast.IfExp() | ast.BoolOp():
                for branch in branches(node):
                    yield from self.of(branch, depth)
            case ast.Name(name) if name not in self.parameters and depth < 4:
                values = self.bound.get(name) or self.module.constants.get(name) or []
                texts = [text for value in values for text in self.of(value, depth + 1)]
                yield from texts or [f"{{{name}}}"]
            case ast.Name(name) | ast.Attribute(attr=name):
                yield f"{{{name}}}"
            case ast.Call():
                yield from self._of_call(node, depth)
            case _:
                yield "…"

    def _of_call(self, node: ast.Call, depth: int) -> Iterator[str]:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Constant(str() as text), attr="join")):
                yield f"…{text}…"
            case ast.Call(func=ast.Name("str" | "repr" | "first_line"), args=[argument]):
                yield from self.of(argument, depth)
            case _:
                yield from self._returned(node, depth) or [f"{{{name_of(node) or '…'}}}"]

    def _returned(self, call: ast.Call, depth: int) -> list[str]:
        """What a function of the package returns, if that is text, with the arguments of a call."""
        found = self.errors.function(self.module, name_of(call))
        if found is None or depth > 3:
            return []
        home, function = found
        if function.node.returns is None or ast.unparse(function.node.returns) != "str":
            return []
        nodes = list(own_nodes(function.node.body))
        inner = Texts(self.errors, home, bound_in(function.node.body), function.names)
        returns = [node.value for node in nodes if isinstance(node, ast.Return) and node.value]
        texts = [text for value in returns for text in inner.of(value, depth + 1)]
        if not all(map(is_sentence, texts)):
            return []
        given = function.given(call)
        names = [each for each in given if any(f"{{{each}}}" in text for text in texts)]
        combined = product(*(self.of(given[each], depth + 1) for each in names))
        values = [dict(zip(names, each, strict=True)) for each in islice(combined, ALTERNATIVES)]
        return [filled(text, each) for text in texts for each in values]

    def _part(self, node: ast.expr, depth: int) -> list[str]:
        match node:
            case ast.FormattedValue(value=ast.Name(name)) if name not in self.parameters:
                texts = self.of(ast.Name(name), depth)
                return texts if all(map(is_sentence, texts)) else [f"{{{name}}}"]
            case ast.FormattedValue(value=ast.IfExp() as chosen):
                texts = self.of(chosen, depth)
                return texts if len(texts) < 4 else ["…"]
            case ast.FormattedValue(value=value):
                return self.of(value, 9)
            case _:
                return self.of(node, depth)


def python_rows(package: Path) -> Iterator[tuple[Path, Row]]:
    """Yield each row of a package with its file."""
    yield from PythonErrors(package).rows()
