"""Who uses whom: the arrows between the source files of both languages, found by reading.

    Rust     a path that begins with `crate::`, `self::` or `super::` is an arrow to the file that
             holds the module it names; if `mod.rs` there takes the name from another file, an arrow
             to that one, too. Comments and literals are blanked before
    Python   `import gristmill.x`, `from gristmill.x import y` and `import_module("gristmill.x")`,
             wherever they stand in the file; what `__init__.py` takes from another file: as above

The root file of a folder (`mod.rs`, `lib.rs`, `__init__.py`) is its table of contents: that it
names the files beside it and below is not an arrow. tests/test_layers.py says which arrows are
allowed; figures.py counts the circles that they form, and the arrows that go up.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path

ROOTS = frozenset({"mod.rs", "lib.rs", "__init__.py"})

Arrows = dict[Path, set[Path]]

# Comments, string and character literals: what they hold is text, not paths. A lifetime ('a) is no
# literal, for want of a closing quote.
TEXT = re.compile(
    r"""
      //[^\n]*
    | /\*.*?\*/
    | \bb?r(?P<hashes>\#*)".*?"(?P=hashes)
    | "(?:\\.|[^"\\])*"
    | '(?:\\[^']+|\\'|[^'\\])'
    """,
    re.VERBOSE | re.DOTALL,
)
_TOKEN = re.compile(
    r"(?P<inline>\bmod\s+\w+\s*\{)|(?P<path>\bcrate::|\bself::(?:super::)*|\b(?:super::)+)|[{}]"
)
_WORD = re.compile(r"\w+")
_TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*mod\s+\w+\s*\{")


def blanked(source: str) -> str:
    """Rust without its comments and literals; every character keeps its place."""
    return TEXT.sub(lambda text: re.sub(r"[^\n]", " ", text[0]), source)


def without_tests(code: str) -> str:
    """Blanked Rust without its modules of unit tests."""
    while found := _TESTS.search(code):
        end = end_of_braces(code, found.end() - 1)
        code = code[: found.start()] + re.sub(r"[^\n]", " ", code[found.start() : end]) + code[end:]
    return code


def rust_paths(code: str, module: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yields (offset, path from the root) for each path in blanked `code` of `module`."""
    braces: list[str | None] = []  # for each open brace, the inline module that it opened
    for token in _TOKEN.finditer(code):
        if token["path"] is not None:
            inline = [name for name in braces if name]
            here = [*module, *inline]
            if token["path"] == "crate::":
                here = []
            else:
                ups = token["path"].count("super::")
                here = here[: len(here) - ups] if ups else here
            for rest in _tree(code, token.end()):
                yield token.start(), (*here, *rest)
        elif token["inline"]:
            name = re.sub(r"mod\s+|\s*\{", "", token[0])
            braces.append(name)
        elif token[0] == "{":
            braces.append(None)
        elif braces:
            braces.pop()


def _tree(code: str, at: int) -> Iterator[tuple[str, ...]]:
    """The paths of a use tree or of an expression: `a::{b, c::d}` gives a b, and a c d."""
    if at < len(code) and code[at] == "{":
        at += 1
        while at < len(code) and code[at] != "}":
            if code[at].isspace() or code[at] == ",":
                at += 1
                continue
            yield from _tree(code, at)
            at = _end_of_item(code, at)
        return
    word = _WORD.match(code, at)
    if word is None:
        return
    if code.startswith("::", word.end()):
        found = list(_tree(code, word.end() + 2))
        yield from ((word[0], *rest) for rest in found or [()])
    else:
        yield (word[0],)


def _end_of_item(code: str, at: int) -> int:
    """Where the comma or brace stands that ends an item of a `{…}` group."""
    nesting = 0
    for place in range(at, len(code)):
        character = code[place]
        if nesting == 0 and character in ",}":
            return place
        nesting += (character == "{") - (character == "}")
    return len(code)


def end_of_braces(code: str, at: int) -> int:
    nesting = 0
    for place in range(at, len(code)):
        nesting += (code[place] == "{") - (code[place] == "}")
        if nesting == 0:
            return place + 1
    return len(code)


def rust_arrows(src: Path) -> Arrows:
    """The arrows between the files of a crate, its unit tests apart."""
    files = [path for path in sorted(src.rglob("*.rs")) if "tests" not in _parts(path, src)]
    modules = {_module(path, src): path for path in files}
    code = {path: without_tests(blanked(path.read_text(encoding="utf-8"))) for path in files}
    exports = {
        _module(path, src): _exports(code[path], _module(path, src), set(modules))
        for path in files
        if path.name in ROOTS
    }
    arrows: Arrows = {path: set() for path in files}
    for path in files:
        for _, named in rust_paths(code[path], _module(path, src)):
            for module in _homes(named, modules, exports):
                if module in modules:
                    _add(arrows, path, modules[module])
    return arrows


def _homes(
    path: tuple[str, ...],
    modules: dict[tuple[str, ...], Path],
    exports: dict[tuple[str, ...], dict[str, tuple[str, ...]]],
) -> Iterator[tuple[str, ...]]:
    """The modules that a path goes through: the one it names, those that this takes it from."""
    for _ in range(8):
        length = max(end for end in range(len(path) + 1) if path[:end] in modules)
        module, rest = path[:length], path[length:]
        yield module
        again = exports.get(module, {}).get(rest[0]) if rest else None
        if again is None:
            return
        path = (*again, *rest[1:])


def _exports(
    code: str, module: tuple[str, ...], modules: set[tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """What a root file takes from its children and gives out by its own name."""
    found: dict[str, tuple[str, ...]] = {}
    for use in re.finditer(r"\buse\s+(?:self::|(?=crate::))?", code):
        at = use.end()
        from_root = code.startswith("crate::", at)
        for path in _tree(code, at + len("crate::") if from_root else at):
            whole = path if from_root else (*module, *path)
            if whole[: len(module) + 1] in modules and len(whole) > len(module) + 1:
                found[whole[-1]] = whole
    return found


def _module(path: Path, src: Path) -> tuple[str, ...]:
    parts = _parts(path, src)
    return parts[:-1] if path.name in ROOTS else parts


def _parts(path: Path, src: Path) -> tuple[str, ...]:
    return path.relative_to(src).with_suffix("").parts


def python_arrows(package: Path) -> Arrows:
    """The arrows between the files of a package."""
    top = package.parent
    modules = {_dotted(path, top): path for path in sorted(package.rglob("*.py"))}
    imports = {
        module: _imported(ast.parse(path.read_text(encoding="utf-8")), module, path.name in ROOTS)
        for module, path in modules.items()
    }
    arrows: Arrows = {path: set() for path in modules.values()}
    for module, names in imports.items():
        for name in names.values():
            for target in _origins(name, modules, imports):
                _add(arrows, modules[module], target)
    return arrows


def _dotted(path: Path, top: Path) -> str:
    return ".".join(_module(path, top))


def _origins(
    name: str, modules: dict[str, Path], imports: dict[str, dict[str, str]]
) -> Iterator[Path]:
    """The files that a dotted name goes through, as `_homes`; the extension is not one of them."""
    for _ in range(8):
        if name in modules:
            yield modules[name]
            return
        module, _, last = name.rpartition(".")
        if module not in modules or last == "_core":
            return
        yield modules[module]
        name = imports[module].get(last, "") if modules[module].name in ROOTS else ""


def _imported(tree: ast.AST, module: str, is_root: bool) -> dict[str, str]:
    """What a file imports: the full names, by what it calls them."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                here = module.split(".")
                here = here[: len(here) - node.level + is_root]
                origin = ".".join([*here, *([origin] if origin else [])])
            found |= {a.asname or a.name: f"{origin}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names = [word.value for word in node.args if isinstance(word, ast.Constant)]
            found |= {str(name): str(name) for name in names}
    return found


def _add(arrows: Arrows, source: Path, target: Path) -> None:
    contents = source.name in ROOTS and target.is_relative_to(source.parent)
    if source != target and not contents:
        arrows[source].add(target)


def circles(arrows: Arrows) -> list[list[Path]]:
    """The sets of files that reach each other: strongly connected, more than one; largest first.

    >>> a, b, c = Path("a"), Path("b"), Path("c")
    >>> circles({a: {b}, b: {a, c}, c: set()}) == [[a, b]]
    True
    """
    reach = {start: _reached(arrows, start) for start in arrows}
    found: dict[frozenset[Path], None] = {}
    for start, reached in reach.items():
        circle = frozenset(other for other in reached if start in reach[other])
        if len(circle) > 1:
            found[circle] = None
    return sorted((sorted(circle) for circle in found), key=lambda each: (-len(each), each))


def _reached(arrows: Arrows, start: Path) -> set[Path]:
    reached: set[Path] = set()
    waiting = [start]
    while waiting:
        for target in arrows[waiting.pop()] - reached:
            reached.add(target)
            waiting.append(target)
    return reached


def arrows_up(
    arrows: Arrows, package: Path, allowed: Mapping[str, Set[str]]
) -> list[tuple[Path, Path]]:
    """The arrows of a package to the root of a folder around the file, or to a room not allowed.

    A room is a file or a folder that stands in `allowed`, which says what rooms each one may use,
    or else a file or a folder of the package. Who may use a room may use those within.
    """
    return [
        (source, target)
        for source, targets in sorted(arrows.items())
        for target in sorted(targets)
        if source.parent != package or source.name not in ROOTS
        if (target.name in ROOTS and source.is_relative_to(target.parent))
        or not may_use(source.relative_to(package), target.relative_to(package), allowed)
    ]


def may_use(source: Path, target: Path, allowed: Mapping[str, Set[str]]) -> bool:
    """Whether a file may use another one, by their rooms; the paths are those in the package.

    >>> allowed = {"a": set(), "b/c": {"a"}, "b": {"b/c"}}
    >>> may_use(Path("b/c/x.py"), Path("a/y.py"), allowed)
    True
    >>> may_use(Path("b/c/x.py"), Path("b/z.py"), allowed)
    False
    """
    room = room_of(source, allowed)
    return room_of(target, allowed) == room or not set(_around(target)).isdisjoint(
        allowed.get(room, ())
    )


def _around(path: Path) -> list[str]:
    """The names of a file and of the folders around it, the innermost first."""
    names = path.with_suffix("").parts
    return ["/".join(names[:length]) for length in range(len(names), 0, -1)]


def room_of(path: Path, allowed: Mapping[str, Set[str]]) -> str:
    """The room of a file: the innermost that has a name, or what stands in the package.

    >>> room_of(Path("b/c/x.py"), {"b/c": set()}), room_of(Path("b/x.py"), {"b/c": set()})
    ('b/c', 'b')
    """
    around = _around(path)
    return next((name for name in around if name in allowed), around[-1])


def merged(all_arrows: Iterable[Arrows]) -> Arrows:
    """Arrows of several trees in one table."""
    found: Arrows = defaultdict(set)
    for arrows in all_arrows:
        for source, targets in arrows.items():
            found[source] |= targets
    return dict(found)
