"""What the page of benchmarks says of a raw result: medians and ranges, by name.

A figure is a `Span`: `{floor.wall:.1f}` in the page is its median, `{floor.wall.low:.1f}` and
`{floor.wall.high:.1f}` are the ends of its range. Each kind of raw result has a function here that
finds its figures.
"""

from collections.abc import Iterable
from statistics import mean, median
from typing import Any

from compare import CELLS, NAMES, medians

Raw = dict[str, Any]


class Span:
    """The values of one figure in the rounds."""

    def __init__(self, values: Iterable[float]) -> None:
        self.values = list(values)

    @property
    def low(self) -> float:
        """The least of them."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The largest of them."""
        return max(self.values)

    def __format__(self, spec: str) -> str:
        return format(median(self.values), spec)


def of(rounds: list[Raw], *names: str) -> Span:
    """A figure that each round has under these names, one within another."""

    def look(found: Any) -> float:  # noqa: ANN401 - JSON
        for name in names:
            found = found[name]
        return found

    return Span(look(one) for one in rounds)


def ratio(rounds: list[Raw], over: tuple[str, ...], under: tuple[str, ...]) -> Span:
    """One figure by another, round by round."""
    pairs = zip(of(rounds, *over).values, of(rounds, *under).values, strict=True)
    return Span(a / b for a, b in pairs)


def floor(raw: Raw) -> dict[str, object]:
    """run.py: TeraSort beside the floor of its device."""
    rounds, start = raw["rounds"], raw["start_up"]
    return {
        "wall": of(rounds, "sort", "process_s"),
        "ratio": of(rounds, "ratio"),
        "cpu": of(rounds, "user_s_per_gb"),
        "version": Span(start["version_s"]),
        "small": Span(start["sort_1mb_s"]),
    }


def external(raw: Raw, kind: str) -> dict[str, object]:
    """external.py: a TeraSort beside the floor of its device."""
    rounds, gigabytes = raw[kind]["rounds"], raw[kind]["size"] / 1e9
    return {
        "wall": of(rounds, "sort", "process_s"),
        "ratio": ratio(rounds, ("sort", "process_s"), ("floor", "floor_s")),
        "cpu": Span(user_s / gigabytes for user_s in of(rounds, "sort", "user_s").values),
    }


def skew(raw: Raw) -> dict[str, object]:
    """external.py: hard distributions of keys, the hardest by its median and by one round."""
    found: dict[str, object] = {}
    for memory, rounds in raw["skew"].items():
        hard = [
            ratio(rounds, (name, "process_s"), ("random", "process_s"))
            for name in rounds[0]
            if name != "random"
        ]
        found[memory] = Span([max(median(span.values) for span in hard)])
        found[f"{memory}_worst"] = Span([max(span.high for span in hard)])
    return found


def lines(raw: Raw) -> dict[str, object]:
    """external.py: lines against GNU sort."""
    found: dict[str, object] = {}
    for kind, rounds in raw["lines"].items():
        name = kind.replace("-", "_").lower()
        found[name] = of(rounds, "sort", "process_s")
        found[f"{name}_gnu"] = of(rounds, "gnu", "process_s")
        found[f"{name}_ratio"] = ratio(rounds, ("gnu", "process_s"), ("sort", "process_s"))
        found[f"{name}_cpu"] = Span(
            one["sort"]["user_s"] / one["sort"]["input_bytes"] * 1e9 for one in rounds
        )
    return found


def compare(raw: Raw) -> dict[str, object]:
    """compare.py: a table for each cell."""
    return {cell: table_of(raw, cell, found) for cell, found in medians(raw).items()}


def table_of(raw: Raw, cell: str, programs: dict[str, Raw]) -> str:
    """The programs of a cell, the fastest first."""
    size = raw["line_bytes"] if CELLS[cell].lines else raw["bytes"]
    ours = programs["gristmill"]["wall_s"]
    head = "time | range | time / Gristmill's time | CPU per GB"
    rows = [f"| {CELLS[cell].title}, {size / 1e9:.3g} GB | {head} |", "|---|---|---|---|---|"]
    for program, found in sorted(programs.items(), key=lambda item: item[1]["wall_s"]):
        cpu = "" if found["cpu_s"] is None else f"{found['cpu_s'] / size * 1e9:.1f} s"
        span = f"{found['low_s']:.1f} to {found['high_s']:.1f}"
        times = f"{found['wall_s']:.1f} s | {span} | {found['wall_s'] / ours:.1f} x"
        rows.append(f"| {NAMES[program]} | {times} | {cpu} |")
    return "\n".join(rows)


def commands(raw: Raw) -> dict[str, object]:
    """commands.py: a row for each program of each cell, ours first."""
    rows = []
    for title, rounds in raw["runs"].items():
        for name in rounds[0]:
            wall = of(rounds, name, "wall_s")
            times = ratio(rounds, (name, "wall_s"), ("gristmill", "wall_s"))
            shown = title if name == "gristmill" else "..."
            rows.append(
                f"| {shown} | {PROGRAMS.get(name, name)} | {wall:.2f} s |"
                f" {wall.low:.2f} to {wall.high:.2f} |"
                f" {times:.2f} x ({times.low:.2f} to {times.high:.2f}) |"
            )
    return {"rows": "\n".join(rows)}


PROGRAMS = {**NAMES, "device": "the device: direct reads", "ripgrep": "ripgrep"}


def python_jobs(raw: Raw) -> dict[str, object]:
    """mapreduce.py: jobs of Python functions beside the bare loops."""
    found: dict[str, object] = {}
    for name in ("words", "batches"):
        found[name] = of(raw["rounds"], name, "ours", "wall_s")
        found[f"{name}_ratio"] = ratio(
            raw["rounds"], (name, "theirs", "wall_s"), (name, "ours", "wall_s")
        )
    return found


def ten_jobs(rows: list[Raw]) -> dict[str, object]:
    """ten_jobs.py: usual jobs beside plain loops, a row of the page each."""
    found: list[str] = []
    for case in dict.fromkeys(row["case"] for row in rows):
        cells = [case]
        for what in ("cpu_s", "wall_s"):
            ours, plain = (
                Span(
                    float(row[what])
                    for row in rows
                    if row["case"] == case and row["program"] == name
                )
                for name in ("gristmill", "plain")
            )
            ratios = Span(a / b for a, b in zip(ours.values, plain.values, strict=True))
            cells += [f"{ours:.2f} s", f"{plain:.2f} s"]
            cells += [f"{ratios:.2f} x ({ratios.low:.2f} to {ratios.high:.2f})"]
        found.append(f"| {' | '.join(cells)} |")
    return {"rows": "\n".join(found), "rounds": len(rows) // len(found) // 2}


def counts(raw: Raw) -> dict[str, object]:
    """wordcount.py: the time of each program, and by that of the first one."""
    programs = raw["runs"]["words"]
    ours = next(iter(programs.values()))
    found: dict[str, object] = {}
    for program, rounds in programs.items():
        name = program.lower().replace(" ", "_")
        found[name] = of(rounds, "wall_s")
        found[f"{name}_ratio"] = by(rounds, ours)
    return found


def by(rounds: list[Raw], ours: list[Raw]) -> Span:
    """The times of a program by those of another, round by round."""
    return Span(a["wall_s"] / b["wall_s"] for a, b in zip(rounds, ours, strict=True))


def streaming(raw: Raw) -> dict[str, object]:
    """wordcount.py: scripts, and `cat`, by gristmill streaming and by others."""
    scripts, cat = raw["runs"]["words"], raw["runs"]["nothing"]
    ours = scripts["gristmill streaming"]
    alone = zip(scripts["scripts alone"], ours, strict=True)
    one, two = cat["gristmill streaming with one reducer"], cat["gristmill streaming"]
    pipe, hadoop = cat["cat | sort | cat"], cat["Hadoop Streaming"]
    return {
        "scripts": of(ours, "wall_s"),
        "alone_ratio": Span(a["cpu_s"] / 2 / b["wall_s"] for a, b in alone),
        "hadoop_ratio": by(scripts["Hadoop Streaming"], ours),
        "cat_one": of(one, "wall_s"),
        "cat_two": of(two, "wall_s"),
        "cat_pipe": of(pipe, "wall_s"),
        "cat_hadoop": of(hadoop, "wall_s"),
        "cat_two_ratio": by(two, one),
        "cat_pipe_ratio": by(pipe, one),
        "cat_hadoop_ratio": by(hadoop, two),
    }


def plain(raw: Raw) -> dict[str, object]:
    """wordcount.py: `cat` by Hadoop as it comes."""
    cat = raw["runs"]["nothing"]
    hadoop, ours = cat["Hadoop Streaming as it comes"], cat["gristmill streaming with one reducer"]
    return {
        "cat": of(hadoop, "wall_s"),
        "cat_ratio": by(hadoop, ours),
        "ours": of(ours, "wall_s"),
    }


def s3(raw: Raw) -> dict[str, object]:
    """s3.py: from S3 to S3 beside download and upload; or with latency beside none."""
    pairs = raw["pairs"]
    found: dict[str, object] = {"ratio": of(pairs, "ratio")}
    if "sort_s" in pairs[0]:
        found["wall"] = of(pairs, "sort_s")
        found["aws"] = Span(one["aws_download_s"] + one["aws_upload_s"] for one in pairs)
    if "far_s" in pairs[0]:
        found |= {"near": of(pairs, "near_s"), "far": of(pairs, "far_s")}
    return found


def hdfs(raw: Raw) -> dict[str, object]:
    """hdfs.py: from HDFS to HDFS beside get and put."""
    pairs = raw["pairs"]
    moved = Span(one["get_s"] + one["put_s"] for one in pairs)
    return {"wall": of(pairs, "sort_s"), "moved": moved, "ratio": of(pairs, "ratio")}


def cluster(raw: Raw) -> dict[str, object]:
    """cluster.py: jobs on two nodes of Ray."""
    runs = raw["runs"]
    found: dict[str, object] = {"ratio": of(runs, "ratio")}
    for name in ("files", "http"):
        if name in runs[0]:
            found[name] = of(runs, name, "wall_s")
            found[f"{name}_ratio"] = ratio(runs, (name, "wall_s"), ("threads", "wall_s"))
    return found


def tasks(raw: Raw) -> dict[str, object]:
    """cluster.py tasks: how many tasks that do nothing there are in a second."""
    runs = raw["runs"]
    names = ("ray", "local", "ray_python", "local_python")
    return {name: of(runs, name, "tasks_per_s") for name in names}


def memory(raw: Raw) -> dict[str, object]:
    """memory.py: how many jobs, and their peaks as shares of their budgets."""
    jobs = raw["jobs"]
    shares = [job["peak_bytes"] / job["drawn"]["budget"] for job in jobs]
    refused = sum("is too small for" in job["said"] for job in jobs)
    told = f"{len(jobs)}, of them {refused} refused" if refused else len(jobs)
    return {"jobs": told, "highest": Span([max(shares)])}


def coverage(raw: Raw) -> dict[str, object]:
    """coverage.py: settings whose intervals held the true values; the bootstrap's in per cent."""
    rows = raw["rows"]
    found: dict[str, object] = {
        "within": sum(row["within"] for row in rows),
        "settings": len(rows),
        "trials": raw["trials"],
        "singly": raw["singly"],
    }
    if raw["bootstraps"]:
        shares = [row["bootstrap"] for row in rows]
        found["bootstrap"] = Span(100 * mean(one[name] for one in shares) for name in shares[0])
        found["bootstrap_each"] = Span(100 * share for one in shares for share in one.values())
    return found


def causes(raw: Raw) -> dict[str, object]:
    """causes.py: how many causes were named, and how busy the machine was."""
    kinds = {case["fault"] for case in raw["cases"]} - {"none"}
    load, *_ = raw["machine"]["load_before"]
    return {"right": raw["right"], "of": raw["of"], "kinds": len(kinds), "load": load}
