"""The engine's layers: no arrow goes back (DESIGN, "Layers").

Every path in crates/engine/src that names a module of the crate is an arrow from the module it
stands in. The tables below say which arrows there may be. Paths are found by reading, not by
compiling: comments and literals are blanked, then `crate::…` and chains of `super::` that reach the
crate's root are resolved. Code under `#[cfg(test)]` counts too: a unit test that needs a higher
layer belongs in crates/engine/tests.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ENGINE_SRC = Path(__file__).parent.parent / "crates/engine/src"

BASE = frozenset(
    {
        "error",
        "lifeline",
        "record",
        "order",
        "value",
        "run",
        "aggregate",
        "budget",
        "storage",
        "codec",
        "hadoop",
        "sequence",
    },
)
STAGES = frozenset(
    {"split", "map", "spill", "shuffle", "merge", "reduce", "commit", "worker", "script"}
)
TASKS = frozenset({"task"})
ABOVE = frozenset({"plan", "driver", "runner", "history", "jobs"})

# What a module may use, besides itself. A module that is missing here has no layer: give it one.
ALLOWED: dict[str, frozenset[str]] = {
    **dict.fromkeys(BASE, BASE),
    **dict.fromkeys(STAGES, BASE),
    **dict.fromkeys(TASKS, BASE | STAGES),
    **dict.fromkeys(ABOVE, BASE | STAGES | TASKS | ABOVE),
}

# What a module must not name at all, with the reason.
FORBIDDEN: dict[str, tuple[re.Pattern[str], str]] = {
    "driver": (
        re.compile(r"\b(?:Instant|SystemTime|std::(?:fs|io|net|thread|process|env))\b"),
        "the driver is a state machine: time and outcomes come to it as events",
    ),
}

# Comments, string and character literals: what they hold is text, not paths. A lifetime ('a) is no
# literal, for want of a closing quote.
_TEXT = re.compile(
    r"""
      //[^\n]*
    | /\*.*?\*/
    | \bb?r(?P<hashes>\#*)".*?"(?P=hashes)
    | "(?:\\.|[^"\\])*"
    | '(?:\\[^']+|\\'|[^'\\])'
    """,
    re.VERBOSE | re.DOTALL,
)
_TOKEN = re.compile(r"\bmod\s+\w+\s*\{|(?P<path>\bcrate::|\b(?:self::)?(?:super::)+)|[{}]")


def modules_used(source: str, depth: int) -> Iterator[tuple[int, str]]:
    """Yields (line, module of the crate) for each path in `source`.

    `depth` says how many modules deep the file lies: 0 for lib.rs, 1 for split.rs and split/mod.rs.
    """
    source = _TEXT.sub(lambda text: re.sub(r"[^\n]", " ", text[0]), source)
    braces: list[bool] = []  # for each open brace, whether it opened an inline module
    for token in _TOKEN.finditer(source):
        if token["path"] is not None:
            here = depth + sum(braces)
            reaches_root = token["path"] == "crate::" or token["path"].count("super::") == here
            if reaches_root:
                line = source.count("\n", 0, token.start()) + 1
                yield from ((line, name) for name in _first_names(source, token.end()))
        elif token[0] == "}":
            if braces:
                braces.pop()
        else:
            braces.append(token[0] != "{")


def _first_names(source: str, start: int) -> Iterator[str]:
    """Yields the names that follow a path's root: one, or those at the top of a `{…}` group."""
    if source[start] != "{":
        if name := re.compile(r"\w+").match(source, start):
            yield name[0]
        return
    nesting, at_item = 0, True
    for part in re.finditer(r"\w+|\S", source[start:]):
        nesting += (part[0] == "{") - (part[0] == "}")
        if nesting == 0:
            return
        if nesting == 1 and at_item and part[0].isidentifier():
            yield part[0]
        at_item = nesting == 1 and part[0] in "{,"


def violations(path: Path, source: str) -> list[str]:
    """The arrows in a file that no table allows; `path` is relative to crates/engine/src."""
    modules = [*path.parts[:-1], path.stem]
    if modules[-1] in {"mod", "lib"}:
        modules.pop()
    if not modules:
        return []  # lib.rs is the table of contents: it names everything
    module = modules[0]
    if module not in ALLOWED:
        return [f"{path}: `{module}` has no layer: add it to tests/test_layers.py"]
    found = [
        f"{path}:{line}: `{module}` must not use `{used}`"
        for line, used in modules_used(source, depth=len(modules))
        if used in ALLOWED and used != module and used not in ALLOWED[module]
    ]
    if module in FORBIDDEN:
        pattern, reason = FORBIDDEN[module]
        code = _TEXT.sub(" ", source)
        found += [f"{path}: `{name}`: {reason}" for name in sorted(set(pattern.findall(code)))]
    return found


def test_no_arrow_goes_back() -> None:
    files = sorted(ENGINE_SRC.rglob("*.rs"))
    assert files, f"no Rust files under {ENGINE_SRC}"
    found = [
        line
        for file in files
        for line in violations(file.relative_to(ENGINE_SRC), file.read_text(encoding="utf-8"))
    ]
    assert not found, "\n" + "\n".join(found)


# The checker's own canaries: what it must find, and what it must let pass.
@pytest.mark.parametrize(
    ("path", "source", "used"),
    [
        ("order/sort.rs", "use crate::merge::LoserTree;", "merge"),
        ("order/sort.rs", "fn f() { crate::task::run(); }", "task"),
        ("map/mod.rs", "use crate::{error::Error, spill::{Spill, reduce}};", "spill"),
        ("map/mod.rs", "use crate::{\n    error::{A, B},\n    driver,\n};", "driver"),
        ("map/mod.rs", "use super::merge;", "merge"),
        ("map/collect.rs", "use super::super::merge;", "merge"),
        ("map/collect.rs", "mod tests { use super::super::super::merge; }", "merge"),
        ("map/collect.rs", "mod a { fn f() {} } use super::super::merge;", "merge"),
        ("merge.rs", "fn f<'a>(c: char) -> bool { c == '{' } use crate::plan::Plan;", "plan"),
        ("task/map.rs", "pub(crate) use crate::runner::Pool;", "runner"),
        ("helpers.rs", "", "helpers"),
        ("driver/mod.rs", "let now = std::time::Instant::now();", "Instant"),
    ],
)
def test_a_planted_arrow_is_found(path: str, source: str, used: str) -> None:
    found = violations(Path(path), source)
    assert len(found) == 1
    assert f"`{used}`" in found[0]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("lib.rs", "pub mod task; pub use crate::task::run_task;"),
        ("order/sort.rs", "use crate::{error::Error, record::{merge, Arena}};"),
        ("order/sort.rs", '//! See [`crate::merge`].\n/* crate::task */ let s = "crate::plan";'),
        ("order/sort.rs", 'let s = r#"use crate::plan;"#; let t = "\\"crate::plan";'),
        ("map/mod.rs", "fn merge() {} mod tests { use super::merge; }"),
        ("map/collect.rs", "use super::merge; use crate::map::spill;"),
        ("task/map.rs", "use crate::{map, spill, merge};"),
        ("jobs/grep.rs", "use crate::{plan, driver, runner, task, split};"),
        ("driver/mod.rs", "use std::time::Duration; // no Instant"),
        ("order/sort.rs", "#[expect(clippy::x)] macro_rules! m { () => { $crate::Error } }"),
    ],
)
def test_an_allowed_arrow_passes(path: str, source: str) -> None:
    assert violations(Path(path), source) == []
