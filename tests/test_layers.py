"""The layers of both languages: no arrow goes back (ARCHITECTURE, "Layers").

Every path in crates/engine/src that names a module of the crate is an arrow from the module it
stands in, and so is every import in python/gristmill, wherever it stands. The tables below say
which arrows there may be. tools/arrows.py finds them by reading. Rust under `#[cfg(test)]` counts
too: a unit test that needs a higher layer belongs in crates/engine/tests.
"""

import re
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
ENGINE_SRC = TOP / "crates/engine/src"
PACKAGE = TOP / "python/gristmill"

sys.path.insert(0, str(TOP / "tools"))
from arrows import (  # noqa: E402 - a tool
    arrows_up,
    blanked,
    circles,
    python_arrows,
    rust_arrows,
    rust_paths,
    without_tests,
)

BASE = frozenset(
    {
        "error",
        "sys",
        "record",
        "order",
        "value",
        "sorted_run",
        "aggregate",
        "budget",
        "storage",
        "codec",
        "lines",
        "names",
    },
)
STAGES = frozenset({"split", "map", "spill", "merge", "reduce", "commit", "worker", "hadoop"})
TASKS = frozenset({"task"})
ABOVE = frozenset({"plan", "driver", "runner", "history", "jobs"})

# What a module may use, besides itself. A module that is missing here has no layer: give it one.
ALLOWED: dict[str, frozenset[str]] = {
    **dict.fromkeys(BASE, BASE),
    "sys": frozenset({"error"}),
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

# A file with a plan names nothing that could do I/O: a plan knows what stands in the reports.
_PLAN = re.compile(r"\bimpl\s+Plan\s+for\b")
_IO = re.compile(
    r"\b(?:Store|LocalDisk|RunFile|Instant|SystemTime|std::(?:fs|io|net|thread|process|env))\b"
)


# What only some rooms and files may name, outside unit tests.
WALLS: dict[str, tuple[re.Pattern[str], tuple[str, ...]]] = {
    "std::fs": (
        re.compile(r"\bstd::(?:fs\b|\{[^;]*\bfs\b)"),
        (
            "sys",
            "storage",  # files: the local disk, streams, the object store kept in a directory
            "history",  # histories are local files, also of jobs whose data are elsewhere
            "jobs/resume",  # which reads and locks histories
            "task/user/streaming",  # the working folders of scripts
            "runner/cluster/secured.rs",  # the node's certificate and its key
        ),
    ),
    "std::os": (
        re.compile(r"\bstd::os::(?:linux\b|unix::(?:fs|process)\b)"),
        ("sys", "storage"),
    ),
    "libc": (re.compile(r"\blibc\b"), ("sys",)),
    "unsafe": (
        re.compile(r"\bunsafe\b"),
        (
            "sys",
            "record/arena.rs",  # its claims
            "record/crc_clmul.rs",  # the processor's instructions
            "record/crc_clmul/wide.rs",
            "record/crc_clmul/x86.rs",
            "order/entry.rs",  # the promise that any bytes are an entry
            "worker/pool.rs",  # the pool that a fork leaves behind
        ),
    ),
}


def breaches(path: Path, source: str) -> list[str]:
    """What a file names that stands behind a wall; `path` is relative to crates/engine/src."""
    if "tests" in path.parts or path.stem == "tests":
        return []
    code = without_tests(blanked(source))
    return [
        f"{path}: `{name}` stands behind a wall: use a store, or say in tests/test_layers.py why"
        for name, (pattern, rooms) in WALLS.items()
        if pattern.search(code) and not any(path.is_relative_to(room) for room in rooms)
    ]


def line_of(source: str, offset: int) -> int:
    """The number of the line in which a character stands, from 1."""
    return source.count("\n", 0, offset) + 1


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
    code = blanked(source)
    used = {(offset, names[0]) for offset, names in rust_paths(code, tuple(modules)) if names}
    found = [
        f"{path}:{line_of(source, offset)}: `{module}` must not use `{name}`"
        for offset, name in sorted(used)
        if name in ALLOWED and name != module and name not in ALLOWED[module]
    ]
    if _PLAN.search(code):
        reason = "a plan does no I/O: what it must know stands in the reports"
        found += [f"{path}: `{name}`: {reason}" for name in sorted(set(_IO.findall(code)))]
    if module in FORBIDDEN:
        pattern, reason = FORBIDDEN[module]
        found += [f"{path}: `{name}`: {reason}" for name in sorted(set(pattern.findall(code)))]
    return found


def test_a_layer_is_of_a_module_that_there_is() -> None:
    modules = {path.stem for path in ENGINE_SRC.iterdir()} - {"lib"}
    assert modules == set(ALLOWED)
    assert {path.stem for path in PACKAGE.iterdir()} >= set(PYTHON_ALLOWED)


def test_no_arrow_goes_back() -> None:
    files = sorted(ENGINE_SRC.rglob("*.rs"))
    assert files, f"no Rust files under {ENGINE_SRC}"
    found = [
        line
        for file in files
        for line in violations(file.relative_to(ENGINE_SRC), file.read_text(encoding="utf-8"))
    ]
    assert not found, "\n" + "\n".join(found)


def test_the_platform_stays_behind_its_walls() -> None:
    files = sorted(ENGINE_SRC.rglob("*.rs"))
    found = [
        line
        for file in files
        for line in breaches(file.relative_to(ENGINE_SRC), file.read_text(encoding="utf-8"))
    ]
    assert not found, "\n" + "\n".join(found)
    assert breaches(Path("merge/mod.rs"), "use std::fs::File;")
    assert breaches(Path("merge/mod.rs"), "use std::{fs, io};")
    assert len(breaches(Path("merge/mod.rs"), "unsafe { libc::poll() }")) == 2
    assert not breaches(Path("merge/mod.rs"), "#[cfg(test)]\nmod tests { use std::fs; }")


_KERNEL = re.compile(r'^(?!\s*//).*"/(?:proc|sys)/', re.MULTILINE)


def test_files_of_the_kernel_are_read_behind_the_wall() -> None:
    found = [
        str(file.relative_to(ENGINE_SRC))
        for file in sorted(ENGINE_SRC.rglob("*.rs"))
        if not {"tests", "sys"} & set(file.relative_to(ENGINE_SRC).parts) and file.stem != "tests"
        if _KERNEL.search(file.read_text(encoding="utf-8").split("#[cfg(test)]\nmod")[0])
    ]
    assert not found
    assert _KERNEL.search('    read(format!("/proc/{pid}/stat"))')
    assert not _KERNEL.search('    /// "/proc/PID/stat"')


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
        ("jobs/runs.rs", "struct P(Arc<dyn Store>); impl Plan for P {}", "Store"),
        ("jobs/runs.rs", "impl Plan for P { fn f() { RunFile::open(s, p); } }", "RunFile"),
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
        ("jobs/sort.rs", "fn f(store: &dyn Store) {} // impl Plan for P"),
        ("order/sort.rs", "#[expect(clippy::x)] macro_rules! m { () => { $crate::Error } }"),
    ],
)
def test_an_allowed_arrow_passes(path: str, source: str) -> None:
    assert violations(Path(path), source) == []


def test_memory_is_asked_of_the_engine_alone() -> None:
    """A second rule, which read the root control group only, gave `gm.run_all` another budget."""
    package = ENGINE_SRC.parent.parent.parent / "python/gristmill"
    readers = [
        path.name
        for path in package.rglob("*.py")
        if re.search("/proc/meminfo|/sys/fs/cgroup", path.read_text())
    ]
    assert readers == []


PYTHON_BASE = frozenset(
    {
        "amounts",
        "ending",
        "errors",
        "installing",
        "links",
        "locations",
        "store_options",
        "names",
        "shadows",
        "options",
        "report",
        "units",
    }
    | {"signatures", "worker_failure"}
)
# What a module or folder of the package may use, besides itself and `_core`.
PYTHON_ALLOWED: dict[str, frozenset[str]] = {
    **dict.fromkeys(PYTHON_BASE, PYTHON_BASE),
    "worker": PYTHON_BASE,
    "terminal": PYTHON_BASE,
    "history": PYTHON_BASE,
    "search": PYTHON_BASE,
    "cluster": PYTHON_BASE,
    "job": PYTHON_BASE | {"history", "cluster"},
    "functions": PYTHON_BASE | {"job"},
    "mapreduce": PYTHON_BASE | {"worker", "terminal", "history", "job", "cluster"},
    "streaming": PYTHON_BASE | {"history", "mapreduce"},
    "analysis": PYTHON_BASE | {"terminal", "history", "job", "mapreduce"},
    "cli": PYTHON_BASE
    | {"terminal", "history", "job", "functions", "mapreduce", "streaming", "cluster", "analysis"}
    | {"search"},
    "__main__": frozenset({"cli"}),
}


# What goes up all the same: the process of user code finds what runs it by its name.
KNOWN_UP = {("worker.py", "mapreduce/running.py")}


def python_violations(package: Path) -> list[str]:
    """The imports of a package that the table does not allow; those of a folder's root apart."""

    def layer(path: Path) -> str:
        return path.relative_to(package).with_suffix("").parts[0]

    arrows = python_arrows(package)
    unknown = sorted({layer(source) for source in arrows} - {"__init__", *PYTHON_ALLOWED})
    found = [f"`{here}` has no layer: add it to tests/test_layers.py" for here in unknown]
    for source, target in arrows_up(arrows, package, PYTHON_ALLOWED):
        shown = (str(source.relative_to(package)), str(target.relative_to(package)))
        if target.name != "__init__.py" and shown not in KNOWN_UP and layer(source) not in unknown:
            found.append(f"{source}: `{layer(source)}` must not use `{layer(target)}`")
    return found


def test_no_import_goes_back() -> None:
    found = python_violations(PACKAGE)
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("path", "source", "wrong"),
    [
        ("mapreduce/run.py", "def f():\n    from gristmill.cli.main import main\n", "cli"),
        ("history/page.py", "from gristmill.mapreduce import job", "mapreduce"),
        ("names.py", "import gristmill.job", "job"),
        ("units.py", "from .history import home", "history"),
        ("helpers.py", "", "helpers"),
        ("worker.py", 'import_module("gristmill.cli.main")', "cli"),
    ],
)
def test_a_planted_import_is_found(path: str, source: str, wrong: str, tmp_path: Path) -> None:
    package = tmp_path / "gristmill"
    for name in ("cli/main.py", "mapreduce/job.py", "job.py", "history/home.py", path):
        file = package / name
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parent / "__init__.py").touch()
        file.write_text(source if name == path else "")
    found = python_violations(package)
    assert len(found) == 1
    assert f"`{wrong}`" in found[0]


def test_circles_are_found() -> None:
    a, b, c, d = (Path(name) for name in "abcd")
    assert circles({a: {b}, b: {c}, c: {a}, d: {a}}) == [[a, b, c]]
    assert circles({a: {b}, b: {c}, c: set(), d: {d}}) == []


def test_no_files_of_the_package_form_a_circle() -> None:
    """Imports inside functions count: they hide a circle and do not break it."""
    assert circles(python_arrows(PACKAGE)) == []


# Circles that there are. Whoever breaks one takes it out; no other may come.
KNOWN_CIRCLES = {
    "engine": [
        [
            "task/user/streaming/combine.rs",
            "task/user/streaming/map.rs",
            "task/user/streaming/reduce.rs",
            "task/user/streaming/sink.rs",
            "task/user/streaming/skip/mod.rs",
        ],
        ["jobs/execute.rs", "jobs/registry.rs", "jobs/resume/mod.rs"],
    ],
    "grep": [["context.rs", "print.rs"]],
}


@pytest.mark.parametrize("crate", sorted(path.name for path in (TOP / "crates").iterdir()))
def test_no_more_files_of_a_crate_form_a_circle(crate: str) -> None:
    src = TOP / "crates" / crate / "src"
    arrows = rust_arrows(src)
    assert any(arrows.values())
    found = [[str(path.relative_to(src)) for path in circle] for circle in circles(arrows)]
    assert found == KNOWN_CIRCLES.get(crate, [])


def test_a_name_that_is_passed_on_is_an_arrow_to_where_it_comes_from(tmp_path: Path) -> None:
    package = tmp_path / "gristmill"
    sources = {
        "__init__.py": "",
        "a/__init__.py": "from gristmill.a.x import X",
        "a/x.py": "import gristmill.b",
        "b.py": "from gristmill import _core\nfrom gristmill.a import X",
    }
    for name, source in sources.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(source)
    arrows = python_arrows(package)
    assert arrows[package / "b.py"] == {package / "a/__init__.py", package / "a/x.py"}
    assert circles(arrows) == [[package / "a/x.py", package / "b.py"]]
    up = [(package / "b.py", package / "a/__init__.py"), (package / "b.py", package / "a/x.py")]
    assert arrows_up(arrows, package, {"a": {"b"}}) == up
    assert arrows_up(arrows, package, {"a": {"b"}, "b": {"a"}}) == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a/mod.rs": "mod x; mod y;", "a/x.rs": "use super::y::Y;", "a/y.rs": ""}, 0),
        ({"a/mod.rs": "", "a/x.rs": "use super::y::Y;", "a/y.rs": "use crate::a::x::X;"}, 1),
        ({"a/mod.rs": "pub use y::Y;", "a/x.rs": "use super::Y;", "a/y.rs": "use super::x;"}, 1),
        (
            {"a/mod.rs": "pub use x::X;", "b.rs": "use crate::a::X;", "a/x.rs": "use crate::b::B;"},
            1,
        ),
        (  # the name comes through a root file, which uses the others
            {
                "a/mod.rs": "use crate::b::B; pub use x::X;",
                "b.rs": "use crate::a::X;",
                "a/x.rs": "",
            },
            1,
        ),
        ({"a/mod.rs": "", "a/x.rs": "// super::y", "a/y.rs": "use super::x;"}, 0),
        (
            {
                "a/mod.rs": "",
                "a/x.rs": "#[cfg(test)]\nmod tests { use super::super::y; }",
                "a/y.rs": "use super::x;",
            },
            0,
        ),
    ],
)
def test_circles_of_rust(files: dict[str, str], expected: int, tmp_path: Path) -> None:
    for name, source in {"lib.rs": "mod a;", **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source)
    assert len(circles(rust_arrows(tmp_path))) == expected
