"""python.md: what `import gristmill` gives, from its docstrings."""

import re
import textwrap
from dataclasses import replace

import gristmill
from gristmill.options import Option, commands
from gristmill.signatures import item
from reference.markdown import document, fenced, plain, table
from reference.sources import Callable, callables, class_doc, functions, python_fields

__all__ = ["GROUPS", "page"]

GROUPS = {
    "Formats: what a job reads and writes": (
        *("text", "tsv", "delimited", "fixed", "csv", "jsonl", "kv", "parquet", "arrow", "items"),
    ),
    "Reductions": (
        *("sum", "count", "min", "max", "mean", "first", "last", "top", "distinct"),
        *("count_distinct", "approx_distinct", "collect", "quantiles"),
        *("max_by", "min_by"),
    ),
    "Keys and partitions": ("desc", "ranges", "sampled_ranges"),
    "More jobs at once, and errors": ("run_all", "report_of"),
    "Search": ("grep",),
}
"""The functions that are not commands, by what they are for."""

_CLASSES = {
    "Job": ("mapreduce/submit/job.py", "mapreduce/spec.py"),
    "Context": ("mapreduce/context.py", ""),
    "Result": ("mapreduce/results/result.py", ""),
}

_RETURNED = {"Search": (("Grep", "search.py"), ("GrepLine", "search.py"))}
"""Classes that only functions make, by the groups of these."""

_INTRODUCTION = """\
`import gristmill as gm` gives all of this. A command that makes one job is a function:
`sort`, `teragen`, `terasort`, `teravalidate`, `wordcount`, `matchcount`, `group`, `join`, `sample`,
`shuf`, `cp`, `resume`; `unique`, which is the command `distinct`, `top_records`, which is `top`,
as `gm.distinct` and `gm.top` are reductions; and `split_by`, which is `split`. Its options are
those of the command line, with `_` in place of `-` (`--timeout` is `timeout_s`). A function runs
its job in this process, returns a [`JobReport`](json.md#jobreport), and raises the built-in
exception nearest to what went wrong ([errors](errors.md)). `Job` is MapReduce of your own
functions; the [guide](../guide/mapreduce.md) shows how."""

_SECTION = re.compile(r"^(Args|Returns|Raises|Example|Yields):$", re.MULTILINE)


def page() -> str:
    """Return the page."""
    parts = [_INTRODUCTION, "## Jobs of your own functions"]
    parts += [_class(name, path) for name, (path, _) in _CLASSES.items()]
    for title, names in GROUPS.items():
        parts.append(f"## {title}")
        parts += [_function(_found(name)) for name in names]
        parts += [_class(name, path) for name, path in _RETURNED.get(title, ())]
    parts += ["## The law of scaling", "### gm.scale", _function(_fit(), level=4)]
    parts.append("## Commands")
    stubs = functions("functions.pyi")
    parts += [_function(stubs[command.function]) for command in commands().values()]
    return document("Python API", *parts)


def _found(name: str) -> Callable:
    module = getattr(gristmill, name).__module__.removeprefix("gristmill.").replace(".", "/")
    return functions(f"{module}.py")[name]


def _fit() -> Callable:
    found = functions("analysis/scale/__init__.py")["fit"]
    return replace(found, name=f"scale.{found.name}", signature=f"scale.{found.signature}")


def _class(name: str, path: str) -> str:
    parts = [f"### gm.{name}", _prose(class_doc(path, name))]
    fields = [(field, text) for field, text in python_fields(path, name) if text]
    if fields:
        rows = [[f"`{field}`", plain(text)] for field, text in fields]
        parts.append(table(["field", "what it is"], rows))
    parts += [_function(method, level=4) for method in callables(path, name)]
    return "\n\n".join(parts)


def _function(found: Callable, level: int = 3) -> str:
    name, _, arguments = found.signature.partition("(")
    signature = f"gm.{found.signature}"
    if len(signature) > 80:
        inner = ",\n    ".join(arguments.removesuffix(")").split(", "))
        signature = f"gm.{name}(\n    {inner},\n)"
    title = f"{'#' * level} gm.{found.name}"
    return "\n\n".join([title, fenced(signature, "python"), _prose(found.doc)])


def _prose(doc: str) -> str:
    """A docstring as Markdown: its paragraphs, arguments as a list, examples as code."""
    pieces = _SECTION.split(_with_options(doc))
    parts = [_paragraphs(pieces[0])]
    for name, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        body = textwrap.dedent(piece.strip("\n"))
        if name == "Example":
            parts.append(fenced(body, "pycon"))
        elif name in ("Args", "Raises"):
            parts.append(f"{'Arguments' if name == 'Args' else name}:\n\n{_items(body)}")
        else:
            parts.append(f"{name}: {plain(' '.join(body.split()))}")
    return "\n\n".join(part for part in parts if part)


def _with_options(doc: str) -> str:
    """The options of a job of user code in place of the words that stand for them."""
    if "options: Those of `gristmill run`." not in doc:
        return doc
    from gristmill.mapreduce.run_options import RUN

    return doc.replace("    options: Those of `gristmill run`.", "\n".join(map(_item, RUN)))


def _item(option: Option) -> str:
    return item(option, "    ")


def _paragraphs(text: str) -> str:
    parts = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join(plain(" ".join(part.split())) for part in parts)


def _items(body: str) -> str:
    lines: list[str] = []
    for line in body.splitlines():
        if line.strip() and not line.startswith(" "):
            name, _, text = line.partition(":")
            lines.append(f"- `{name}`: {text.strip()}")
        elif line.strip():
            lines[-1] += f" {line.strip()}"
    return "\n".join(plain(line) for line in lines)
