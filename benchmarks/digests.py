"""What the page of benchmarks says of a table of results: medians and ranges, by name.

A figure is a `Span` (tables.py): `{floor.wall:.1f}` in the page is its median,
`{floor.wall.low:.1f}` and `{floor.wall.high:.1f}` are the ends of its range. Each kind of table has
a function here that finds its figures.
"""

from collections.abc import Sequence
from statistics import mean, median

from compare import NAMES, medians, table_of
from tables import Row, Span, names, span, those

Rows = Sequence[Row]
Found = dict[str, object]


def by(rows: Rows, program: str, other: str, **known: object) -> Span:
    """The time of a program by that of another, round by round."""
    return span(rows, program=program, **known) / span(rows, program=other, **known)


def external(rows: Rows) -> Found:
    """external.py: a TeraSort beside the floor of its device; `warm` also the start of one."""
    sorts = those(rows, program="sort")
    found: Found = {
        "wall": span(sorts),
        "ratio": by(those(rows, what=sorts[0]["what"]), "sort", "floor"),
        "cpu": span(sorts, "user_s") / (sorts[0]["bytes"] / 1e9),
    }
    if those(rows, what="start"):
        found |= {"version": span(rows, program="version")}
        found |= {"small": span(rows, program="sort of 1 MB")}
    return found


def skew(rows: Rows) -> Found:
    """external.py: hard distributions of keys, the hardest by its median and by one round."""
    found: Found = {}
    for memory in names(rows, "what"):
        kinds = [name for name in names(rows, "program") if name != "random"]
        hard = [by(rows, name, "random", what=memory) for name in kinds]
        found[memory] = Span([max(median(ratio.values) for ratio in hard)])
        found[f"{memory}_worst"] = Span([max(ratio.high for ratio in hard)])
    return found


def lines(rows: Rows) -> Found:
    """external.py: lines against GNU sort."""
    found: Found = {}
    for kind in names(rows, "what"):
        name, sorts = kind.replace("-", "_").lower(), those(rows, what=kind, program="sort")
        found[name] = span(sorts)
        found[f"{name}_gnu"] = span(rows, what=kind, program="gnu")
        found[f"{name}_ratio"] = by(rows, "gnu", "sort", what=kind)
        found[f"{name}_cpu"] = span(sorts, "user_s") / (sorts[0]["bytes"] / 1e9)
    return found


def compare(rows: Rows) -> Found:
    """compare.py: a table for each cell."""
    return {cell: table_of(cell, found) for cell, found in medians(rows).items()}


def commands(rows: Rows) -> Found:
    """commands.py: a row for each program of each cell, ours first."""
    shown = []
    for title in names(rows, "what"):
        for name in names(those(rows, what=title), "program"):
            wall = span(rows, what=title, program=name)
            times = by(rows, name, "gristmill", what=title)
            shown.append(
                f"| {title if name == 'gristmill' else '...'} | {PROGRAMS.get(name, name)} |"
                f" {wall:.2f} s | {wall.low:.2f} to {wall.high:.2f} |"
                f" {times:.2f} x ({times.low:.2f} to {times.high:.2f}) |"
            )
    return {"rows": "\n".join(shown)}


PROGRAMS = {
    **NAMES,
    "device": "the device: direct reads",
    "ripgrep": "ripgrep",
    "gnu-sort": "GNU sort -u",
    "gnu-shuf": "GNU shuf",
    "gnu-cp": "GNU cp",
}


def python_jobs(rows: Rows) -> Found:
    """mapreduce.py: jobs of Python functions beside the bare loops."""
    found: Found = {}
    for name in ("words", "batches"):
        found[name] = span(rows, what=name, program="ours")
        found[f"{name}_ratio"] = by(rows, "theirs", "ours", what=name)
    return found


def ten_jobs(rows: Rows) -> Found:
    """ten_jobs.py: usual jobs beside plain loops, a row of the page each."""
    lines: list[str] = []
    for job in names(rows, "what"):
        cells = [job]
        for figure in ("cpu_s", "wall_s"):
            ours, plain = (
                span(rows, figure, what=job, program=name) for name in ("gristmill", "plain")
            )
            ratio = ours / plain
            cells += [f"{ours:.2f} s", f"{plain:.2f} s"]
            cells += [f"{ratio:.2f} x ({ratio.low:.2f} to {ratio.high:.2f})"]
        lines.append(f"| {' | '.join(cells)} |")
    return {"rows": "\n".join(lines), "rounds": len(names(rows, "round"))}


def counts(rows: Rows) -> Found:
    """wordcount.py: the time of each program, and by that of the first one."""
    programs = names(those(rows, what="words"), "program")
    found: Found = {}
    for program in programs:
        name = program.lower().replace(" ", "_")
        found[name] = span(rows, what="words", program=program)
        found[f"{name}_ratio"] = by(rows, program, programs[0], what="words")
    return found


def streaming(rows: Rows) -> Found:
    """wordcount.py: scripts, and `cat`, by gristmill streaming and by others."""
    scripts, cat = those(rows, what="words"), those(rows, what="nothing")
    ours = span(scripts, program="gristmill streaming")
    one, two = "gristmill streaming with one reducer", "gristmill streaming"
    return {
        "scripts": ours,
        "alone_ratio": span(scripts, "cpu_s", program="scripts alone") / 2 / ours,
        "hadoop_ratio": by(scripts, "Hadoop Streaming", "gristmill streaming"),
        "cat_one": span(cat, program=one),
        "cat_two": span(cat, program=two),
        "cat_pipe": span(cat, program="cat | sort | cat"),
        "cat_hadoop": span(cat, program="Hadoop Streaming"),
        "cat_two_ratio": by(cat, two, one),
        "cat_pipe_ratio": by(cat, "cat | sort | cat", one),
        "cat_hadoop_ratio": by(cat, "Hadoop Streaming", two),
    }


def plain(rows: Rows) -> Found:
    """wordcount.py: `cat` by Hadoop as it comes."""
    hadoop, ours = "Hadoop Streaming as it comes", "gristmill streaming with one reducer"
    return {
        "cat": span(rows, program=hadoop),
        "cat_ratio": by(rows, hadoop, ours),
        "ours": span(rows, program=ours),
    }


def s3(rows: Rows) -> Found:
    """s3.py: from S3 to S3 beside download and upload; or with latency beside none."""
    if those(rows, program="far"):
        near, far = span(rows, program="near"), span(rows, program="far")
        return {"near": near, "far": far, "ratio": far / near}
    wall = span(rows, program="sort")
    rclone, aws = (
        span(rows, program=f"{name}_download") + span(rows, program=f"{name}_upload")
        for name in ("rclone", "aws")
    )
    faster = Span(map(min, rclone.values, aws.values))
    return {"wall": wall, "aws": aws, "ratio": wall / faster}


def hdfs(rows: Rows) -> Found:
    """hdfs.py: from HDFS to HDFS beside get and put."""
    wall = span(rows, program="sort")
    moved = span(rows, program="get") + span(rows, program="put")
    return {"wall": wall, "moved": moved, "ratio": wall / moved}


def cluster(rows: Rows) -> Found:
    """cluster.py: jobs on two nodes of Ray."""
    programs = names(rows, "program")
    if "threads" in programs:
        found: Found = {name: span(rows, program=name) for name in programs}
        found["ratio"] = by(rows, "files", "threads")
        return found | {"http_ratio": by(rows, "http", "threads")}
    if "at_once" in programs:
        return {"ratio": by(rows, "at_once", "in_turn")}
    return {"ratio": span(rows)}


def tasks(rows: Rows) -> Found:
    """cluster.py tasks: how many tasks that do nothing there are in a second."""
    return {
        name: span(rows, "tasks", program=name) / span(rows, program=name)
        for name in names(rows, "program")
    }


def memory(rows: Rows) -> Found:
    """memory.py: how many jobs, and their peaks as shares of their budgets."""
    refused = sum("is too small for" in row.get("said", "") for row in rows)
    told = f"{len(rows)}, of them {refused} refused" if refused else len(rows)
    shares = span(rows, "peak_bytes") / span(rows, "budget")
    return {"jobs": told, "highest": Span([shares.high])}


def coverage(rows: Rows) -> Found:
    """coverage.py: settings whose intervals held the true values; the bootstrap's in per cent."""
    found: Found = {
        "within": sum(row["within"] for row in rows),
        "settings": len(rows),
        "trials": rows[0]["trials"],
        "singly": rows[0]["singly"],
    }
    columns = [name for name in rows[0] if name.startswith("bootstrap.")]
    if columns:
        shares = {name: [100 * row[name] for row in rows] for name in columns}
        found["bootstrap"] = Span(mean(each) for each in shares.values())
        found["bootstrap_each"] = Span(share for each in shares.values() for share in each)
    return found


def causes(rows: Rows) -> Found:
    """causes.py: how many causes were named, and how busy the machine was."""
    cases = {row["case"]: row for row in rows}
    return {
        "right": sum(row["right"] for row in cases.values()),
        "of": len(cases),
        "kinds": len({row["fault"] for row in rows} - {"none"}),
        "load": rows[0]["load"],
    }
