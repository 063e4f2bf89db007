"""The layers of both languages: no arrow goes back (ARCHITECTURE, "Layers").

Which crate may use which, the compiler keeps: an arrow back would be a circle of crates. Inside a
crate every path that names a module of it is an arrow from the module it stands in; so is every
import in python/gristmill, wherever it stands. The tables below say which arrows there may be.
tools/arrows.py finds them by reading; unit tests do not count.
"""

import re
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
CRATES = TOP / "crates"
PACKAGE = TOP / "python/gristmill"

sys.path.insert(0, str(TOP / "tools"))
from arrows import (  # noqa: E402 - a tool
    arrows_up,
    blanked,
    circles,
    python_arrows,
    room_of,
    rust_arrows,
    rust_paths,
    without_tests,
)

# The crates of the engine, from the ground up, and the modules of each: a module uses those before
# it, and what its crate's root has. A module that is missing here has no place: give it one.
ORDER: dict[str, tuple[str, ...]] = {
    "base": ("names", "error", "sync", "sys", "budget", "record", "order", "value", "aggregate"),
    "storage": (
        *("forward", "location", "run_name", "version", "mounts"),  # where something is
        *("private", "io", "net", "store_kind"),  # how bytes are had
        *("local_disk", "local", "memory", "layered", "faulty", "objects", "agents"),  # stores
        *("codec", "input", "lines", "sorted_run"),  # what the bytes are
        *("collected", "staged", "shared", "hdfs", "http", "kinds", "options", "stores"),
    ),
    "tasks": ("split", "map", "spill", "merge", "reduce", "commit", "worker", "hadoop", "task"),
    "engine": ("history", "driver", "runner", "plan", "jobs"),
}

# Stages of a job: none uses another.
STAGES = frozenset(ORDER["tasks"]) - {"task"}

# What a module must not name at all, with the reason.
FORBIDDEN: dict[str, tuple[re.Pattern[str], str]] = {
    "driver": (
        re.compile(r"\b(?:Instant|SystemTime|std::(?:fs|io|net|thread|process|env))\b"),
        "the driver is a state machine: time and outcomes come to it as events",
    ),
}

# A file with a plan names nothing that could do I/O: a plan knows what stands in the reports.
_PLAN = re.compile(r"\bimpl\s+Plan\s+for\b|->\s*(?:Result<)?Next\b")
_IO = re.compile(
    r"\b(?:Store|LocalDisk|RunFile|Instant|SystemTime|std::(?:fs|io|net|thread|process|env))\b"
)


# What only some rooms and files may name, outside unit tests.
WALLS: dict[str, tuple[re.Pattern[str], tuple[str, ...]]] = {
    "std::fs": (
        re.compile(r"\bstd::(?:fs\b|\{[^;]*\bfs\b)"),
        (
            "base/sys",
            "storage",  # files: the local disk, streams, the object store kept in a directory
            "engine/history",  # histories are local files, also of jobs whose data are elsewhere
            "engine/jobs/resume",  # which reads and locks histories
            "tasks/task/user/streaming",  # the working folders of scripts
            "engine/runner/cluster/secured.rs",  # the node's certificate and its key
        ),
    ),
    "std::os": (
        re.compile(r"\bstd::os::(?:linux\b|unix::(?:fs|process)\b)"),
        ("base/sys", "storage"),
    ),
    "libc": (re.compile(r"\blibc\b"), ("base/sys",)),
    "unsafe": (
        re.compile(r"\bunsafe\b"),
        (
            "base/sys",
            "base/record/arena.rs",  # its claims
            "base/record/crc_clmul.rs",  # the processor's instructions
            "base/record/crc_clmul/wide.rs",
            "base/record/crc_clmul/x86.rs",
            "base/order/entry.rs",  # the promise that any bytes are an entry
            "tasks/worker/pool.rs",  # the pool that a fork leaves behind
        ),
    ),
}


def breaches(path: Path, source: str) -> list[str]:
    """What a file names that stands behind a wall; `path` begins with its crate, without `src`."""
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


def may_use(crate: str, module: str, name: str) -> bool:
    """Whether a module of a crate may use another one of it."""
    order = ORDER[crate]
    both = {module, name}
    return order.index(name) <= order.index(module) and (len(both) == 1 or not both <= STAGES)


def violations(path: Path, source: str) -> list[str]:
    """The arrows in a file that no table allows; `path` begins with its crate, without `src`."""
    crate, *modules = [*path.parts[:-1], path.stem]
    if modules[-1] in {"mod", "lib", "tests"}:
        modules.pop()
    if not modules or "tests" in path.parts:
        return []  # lib.rs is the table of contents: it names everything
    module = modules[0]
    if module not in ORDER[crate]:
        return [f"{path}: `{module}` has no place: add it to tests/test_layers.py"]
    code = without_tests(blanked(source))
    used = {(offset, names[0]) for offset, names in rust_paths(code, tuple(modules)) if names}
    found = [
        f"{path}:{line_of(source, offset)}: `{module}` must not use `{name}`"
        for offset, name in sorted(used)
        if name in ORDER[crate] and not may_use(crate, module, name)
    ]
    if _PLAN.search(code):
        reason = "a plan does no I/O: what it must know stands in the reports"
        found += [f"{path}: `{name}`: {reason}" for name in sorted(set(_IO.findall(code)))]
    if module in FORBIDDEN:
        pattern, reason = FORBIDDEN[module]
        found += [f"{path}: `{name}`: {reason}" for name in sorted(set(pattern.findall(code)))]
    return found


def engine_files() -> list[tuple[Path, str]]:
    """The sources of the engine's crates: where each stands, its crate first, and its text."""
    return [
        (crate / file.relative_to(CRATES / crate / "src"), file.read_text(encoding="utf-8"))
        for crate in map(Path, ORDER)
        for file in sorted((CRATES / crate / "src").rglob("*.rs"))
    ]


@pytest.mark.parametrize("crate", ORDER)
def test_a_module_of_the_order_is_one_that_there_is(crate: str) -> None:
    modules = {path.stem for path in (CRATES / crate / "src").iterdir()} - {"lib"}
    assert modules == set(ORDER[crate])


def test_a_room_of_the_package_is_one_that_there_is() -> None:
    there = [PACKAGE / room for room in PYTHON_ALLOWED]
    assert [
        room for room in there if not room.is_dir() and not room.with_suffix(".py").is_file()
    ] == []


def test_no_arrow_goes_back() -> None:
    found = [line for path, source in engine_files() for line in violations(path, source)]
    assert not found, "\n" + "\n".join(found)


def test_the_platform_stays_behind_its_walls() -> None:
    found = [line for path, source in engine_files() for line in breaches(path, source)]
    assert not found, "\n" + "\n".join(found)
    merge = Path("tasks/merge/mod.rs")
    assert breaches(merge, "use std::fs::File;")
    assert breaches(merge, "use std::{fs, io};")
    assert len(breaches(merge, "unsafe { libc::poll() }")) == 2
    assert not breaches(merge, "#[cfg(test)]\nmod tests { use std::fs; }")


_KERNEL = re.compile(r'^(?!\s*//).*"/(?:proc|sys)/', re.MULTILINE)


def test_files_of_the_kernel_are_read_behind_the_wall() -> None:
    found = [
        str(path)
        for path, source in engine_files()
        if not {"tests", "sys"} & set(path.parts) and path.stem != "tests"
        if _KERNEL.search(source.split("#[cfg(test)]\nmod")[0])
    ]
    assert not found
    assert _KERNEL.search('    read(format!("/proc/{pid}/stat"))')
    assert not _KERNEL.search('    /// "/proc/PID/stat"')


# The checker's own canaries: what it must find, and what it must let pass.
@pytest.mark.parametrize(
    ("path", "source", "used"),
    [
        ("base/record/sort.rs", "use crate::order::Order;", "order"),
        ("base/order/sort.rs", "fn f() { crate::value::of(); }", "value"),
        ("tasks/map/mod.rs", "use crate::{task::Error, map::{Spill, reduce}};", "task"),
        ("tasks/map/mod.rs", "use crate::{\n    map::{A, B},\n    split,\n};", "split"),
        ("tasks/map/mod.rs", "use super::merge;", "merge"),
        ("tasks/map/collect.rs", "use super::super::merge;", "merge"),
        ("tasks/map/collect.rs", "mod a { fn f() {} } use super::super::merge;", "merge"),
        ("storage/net.rs", "fn f<'a>(c: char) -> bool { c == '{' } use crate::local::L;", "local"),
        ("engine/runner/map.rs", "pub(crate) use crate::jobs::Pool;", "jobs"),
        ("base/helpers.rs", "", "helpers"),
        ("engine/driver/mod.rs", "let now = std::time::Instant::now();", "Instant"),
        ("engine/jobs/runs.rs", "struct P(Arc<dyn Store>); impl Plan for P {}", "Store"),
        ("engine/jobs/runs.rs", "impl Plan for P { fn f() { RunFile::open(s, p); } }", "RunFile"),
        ("engine/jobs/runs.rs", "fn f(s: &dyn Store) -> Result<Next> {}", "Store"),
    ],
)
def test_a_planted_arrow_is_found(path: str, source: str, used: str) -> None:
    found = violations(Path(path), source)
    assert len(found) == 1
    assert f"`{used}`" in found[0]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("tasks/lib.rs", "pub mod task; pub use crate::task::run_task;"),
        ("base/order/sort.rs", "use crate::{error::Error, record::{value, Arena}};"),
        (
            "base/order/sort.rs",
            '//! See [`crate::value`].\n/* crate::value */ let s = "crate::value";',
        ),
        ("base/order/sort.rs", 'let s = r#"use crate::value;"#; let t = "\\"crate::value";'),
        ("tasks/map/mod.rs", "fn merge() {} mod tests { use super::merge; }"),
        ("tasks/map/collect.rs", "use super::merge; use crate::map::spill;"),
        ("tasks/map/collect.rs", "#[cfg(test)]\nmod tests { use super::super::super::merge; }"),
        ("tasks/task/map.rs", "use crate::{map, spill, merge};"),
        ("engine/jobs/grep.rs", "use crate::{plan, driver, runner, history};"),
        ("engine/driver/mod.rs", "use std::time::Duration; // no Instant"),
        ("engine/jobs/sort.rs", "fn f(store: &dyn Store) {} // impl Plan for P"),
        ("base/order/sort.rs", "#[expect(clippy::x)] macro_rules! m { () => { $crate::Error } }"),
    ],
)
def test_an_allowed_arrow_passes(path: str, source: str) -> None:
    assert violations(Path(path), source) == []


def test_memory_is_asked_of_the_engine_alone() -> None:
    """A second rule, which read the root control group only, gave `gm.run_all` another budget."""
    readers = [
        path.name
        for path in PACKAGE.rglob("*.py")
        if re.search("/proc/meminfo|/sys/fs/cgroup", path.read_text())
    ]
    assert readers == []


PYTHON_BASE = frozenset(
    {
        "amounts",
        "closed_streams",
        "ending",
        "errors",
        "installing",
        "links",
        "locations",
        "store_options",
        "names",
        "parents",
        "shadows",
        "options",
        "report",
        "units",
    }
    | {"signatures", "worker_failure"}
)
# The rooms of two folders, by floors: each may use those of its own floor and of those before it.
MAPREDUCE = (
    ("kinds", "keys", "extras", "pickling", "plain_order", "shown", "source", "partitioners"),
    ("formats",),
    (
        *("context", "functions", "aggregates", "extremes", "spec", "definition", "check_calls"),
        *("validate_job", "run_options", "typed"),
    ),
    ("results",),
    ("worker",),
    ("submit",),
    ("check",),
    ("retry",),
)
CLI = (
    ("failures", "environment", "numbers", "apart", "version"),
    ("groups", "gnu", "render", "on_cluster"),
    ("runner",),
    ("generated",),
    ("program",),
    ("commands",),
    ("bench", "demo", "doctor", "mapreduce", "scale", "streaming"),
    ("main",),
    ("on_head",),
)
# What a module or folder of the package may use, besides itself and `_core`.
PYTHON_ALLOWED: dict[str, frozenset[str]] = {
    **dict.fromkeys(PYTHON_BASE, PYTHON_BASE),
    "worker": PYTHON_BASE | {"mapreduce/worker"},
    "terminal": PYTHON_BASE,
    "history": PYTHON_BASE,
    "search": PYTHON_BASE,
    "cluster": PYTHON_BASE,
    "job": PYTHON_BASE | {"history", "cluster"},
    "columnar": PYTHON_BASE | {"job", "mapreduce"},
    "functions": PYTHON_BASE | {"job", "history", "mapreduce", "columnar"},  # chains are resumed
    "mapreduce": PYTHON_BASE | {"worker", "terminal", "history", "job", "cluster"},
    "streaming": PYTHON_BASE | {"history", "mapreduce"},
    "analysis": PYTHON_BASE | {"terminal", "history", "job", "mapreduce"},
    "cli": PYTHON_BASE
    | {"terminal", "history", "job", "functions", "mapreduce", "streaming", "cluster", "analysis"}
    | {"search", "columnar"},
    "__main__": frozenset({"cli"}),
}


def floors(folder: str, rooms: tuple[tuple[str, ...], ...]) -> dict[str, frozenset[str]]:
    """What the rooms of a folder may use: what the folder may, and their own floor and below."""
    found: dict[str, frozenset[str]] = {}
    lower = PYTHON_ALLOWED[folder]
    for floor in rooms:
        lower |= {f"{folder}/{room}" for room in floor}
        found |= dict.fromkeys((f"{folder}/{room}" for room in floor), lower)
    return found


PYTHON_ALLOWED |= floors("mapreduce", MAPREDUCE)
PYTHON_ALLOWED |= floors("cli", CLI)
for _name, _allowed in PYTHON_ALLOWED.items():  # what a worker runs does not start one
    if _name.startswith("mapreduce/") and "mapreduce/submit" not in _allowed:
        PYTHON_ALLOWED[_name] = _allowed - {"worker"}


def python_violations(package: Path) -> list[str]:
    """The imports of a package that the table does not allow, or that go to a folder around."""

    def layer(path: Path) -> str:
        return room_of(path.relative_to(package), PYTHON_ALLOWED)

    arrows = python_arrows(package)
    unknown = sorted({layer(source) for source in arrows} - {"__init__", *PYTHON_ALLOWED})
    found = [f"`{here}` has no layer: add it to tests/test_layers.py" for here in unknown]
    for source, target in arrows_up(arrows, package, PYTHON_ALLOWED):
        if layer(source) not in unknown:
            root = target.name == "__init__.py"
            used = target.relative_to(package) if root else layer(target)
            found.append(f"{source}: `{layer(source)}` must not use `{used}`")
    return found


def test_no_import_goes_back() -> None:
    found = python_violations(PACKAGE)
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("path", "source", "wrong"),
    [
        ("mapreduce/run.py", "def f():\n    from gristmill.cli.main import main\n", "cli/main"),
        ("history/page.py", "from gristmill.mapreduce import job", "mapreduce"),
        ("names.py", "import gristmill.job", "job"),
        ("units.py", "from .history import home", "history"),
        ("helpers.py", "", "helpers"),
        ("worker.py", 'import_module("gristmill.cli.main")', "cli/main"),
        (
            "mapreduce/formats/x.py",
            "from gristmill.mapreduce.functions import f",
            "mapreduce/functions",
        ),
    ],
)
def test_a_planted_import_is_found(path: str, source: str, wrong: str, tmp_path: Path) -> None:
    package = tmp_path / "gristmill"
    there = (
        "cli/main.py",
        "mapreduce/job.py",
        "mapreduce/functions.py",
        "job.py",
        "history/home.py",
    )
    for name in (*there, path):
        file = package / name
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parent / "__init__.py").touch()
        file.write_text(source if name == path else "")
    found = python_violations(package)
    assert len(found) == 1
    assert f"`{wrong}`" in found[0]


def test_a_room_of_python_is_small() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert {str(room): n for room in folders if (n := len([*room.glob("*.py")])) > 25} == {}
    assert [room for room in folders if not (room / "__init__.py").is_file()] == []


def test_circles_are_found() -> None:
    a, b, c, d = (Path(name) for name in "abcd")
    assert circles({a: {b}, b: {c}, c: {a}, d: {a}}) == [[a, b, c]]
    assert circles({a: {b}, b: {c}, c: set(), d: {d}}) == []


def test_no_files_of_the_package_form_a_circle() -> None:
    """Imports inside functions count: they hide a circle and do not break it."""
    assert circles(python_arrows(PACKAGE)) == []


# Circles that there are. Whoever breaks one takes it out; no other may come.
KNOWN_CIRCLES: dict[str, list[list[str]]] = {}


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
