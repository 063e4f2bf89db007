"""The ten jobs of ten_jobs.py: their input, their functions, the job and the plain loop.

`python ten_jobs_cases.py CASE PROGRAM FOLDER` runs one of them: it reads `FOLDER/in*` and writes
`FOLDER/PROGRAM/`. The plain loops do not import gristmill.
"""

import csv
import json
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ten_jobs_inputs import (
    make_changes,
    make_documents,
    make_events,
    make_graph,
    make_log,
    make_orders,
    make_products,
    make_sales,
    make_uses,
    make_weather,
)

if TYPE_CHECKING:
    import gristmill

Pair = tuple[Any, Any]
Pairs = Iterable[Pair]


# --- what the plain loops share ---


def lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield line.rstrip("\n")


def rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def grouped(pairs: Pairs, sort_by: Callable[..., Any] | None = None) -> Iterator[Pair]:
    """Keys in order, each with its values; those in order, too, with `sort_by`."""
    groups: dict[Any, list[Any]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    for key in sorted(groups):
        values = groups[key]
        if sort_by is not None:
            values.sort(key=partial(sort_by, key))
        yield key, iter(values)


def reduced(
    pairs: Pairs, reduce: Callable[..., Any], sort_by: Callable[..., Any] | None = None
) -> Iterator[Any]:
    for key, values in grouped(pairs, sort_by):
        yield from reduce(key, values)


def write_tsv(records: Iterable[Any], path: Path) -> None:
    with path.open("w", encoding="utf-8") as out:
        for record in records:
            out.write("\t".join(map(str, record)) + "\n")


def write_json(records: Iterable[Any], path: Path) -> None:
    with path.open("w", encoding="utf-8") as out:
        for record in records:
            out.write(json.dumps(record, ensure_ascii=False) + "\n")


def write_parquet(records: Iterable[Any], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(list(records)), path)


# --- sessions: visits of a user without a break of half an hour ---

VISIT = re.compile(r'(\S+) \S+ (\S+) \[([^\]]+)\] "(?:GET|POST) (\S+) [^"]*" (\d+) (\d+)')
BREAK = timedelta(minutes=30)


def visits(line: str) -> Iterator[Pair]:
    found = VISIT.match(line)
    if found:
        yield found[2], (datetime.strptime(found[3], "%d/%b/%Y:%H:%M:%S %z"), found[4])


def by_time(_: str, visit: Pair) -> datetime:
    return visit[0]


def session(user: str, visits: Iterator[Pair]) -> Iterator[dict[str, Any]]:
    begin, _ = next(visits)
    end, pages = begin, 1
    for at, _ in visits:
        if at - end > BREAK:
            yield {"user": user, "begin": begin, "end": end, "pages": pages}
            begin, pages = at, 0
        end, pages = at, pages + 1
    yield {"user": user, "begin": begin, "end": end, "pages": pages}


def sessions(folder: Path, out: str) -> None:
    import gristmill as gm

    log, to = gm.text(folder / "in.log"), gm.parquet(out)
    gm.Job(log, map=visits, sort_by=by_time, reduce=session, output=to).run()


def sessions_plain(folder: Path, out: Path) -> None:
    pairs = chain.from_iterable(map(visits, lines(folder / "in.log")))
    write_parquet(reduced(pairs, session, sort_by=by_time), out / "all.parquet")


# --- index: in which documents a word stands ---


def words_of(line: str) -> Iterator[Pair]:
    document, _, text = line.partition("\t")
    for word in set(text.split()):
        yield word, document


def posting(word: str, documents: Iterator[str]) -> Iterator[Pair]:
    yield word, " ".join(sorted(documents))


def index(folder: Path, out: str) -> None:
    import gristmill as gm

    gm.Job(gm.text(folder / "in.tsv"), map=words_of, reduce=posting, output=gm.tsv(out)).run()


def index_plain(folder: Path, out: Path) -> None:
    pairs = chain.from_iterable(map(words_of, lines(folder / "in.tsv")))
    write_tsv(reduced(pairs, posting), out / "all.tsv")


# --- join: orders with the names of their customers, and customers without orders ---


def customer(row: dict[str, str]) -> Iterator[Pair]:
    yield int(row["id"]), ("customer", row["name"], row["city"])


def order(row: dict[str, str]) -> Iterator[Pair]:
    yield int(row["customer"]), ("order", int(row["order"]), float(row["amount"]))


def either(row: dict[str, str], context: "gristmill.Context") -> Iterator[Pair]:
    return customer(row) if context.tag == "customers" else order(row)


def joined(number: int, values: Iterator[Any]) -> Iterator[Any]:
    name, city, orders = "", "", 0
    for value in values:
        if value[0] == "customer":
            _, name, city = value
        else:
            orders += 1
            yield number, name, city, value[1], value[2]
    if not orders:
        yield number, name, city, "", ""


def join(folder: Path, out: str) -> None:
    import gristmill as gm

    customers = gm.csv(folder / "in-customers.csv", tag="customers")
    sides = [customers, gm.csv(folder / "in-orders.csv", tag="orders")]
    gm.Job(sides, map=either, reduce=joined, output=gm.tsv(out)).run()


def join_plain(folder: Path, out: Path) -> None:
    sides = (
        map(customer, rows(folder / "in-customers.csv")),
        map(order, rows(folder / "in-orders.csv")),
    )
    pairs = chain.from_iterable(chain(*sides))
    write_tsv(reduced(pairs, joined), out / "all.tsv")


# --- top: the five dearest products of each category ---


def priced(row: dict[str, str]) -> Iterator[Pair]:
    yield row["category"], (float(row["price"]), row["name"])


def dearest(category: str, values: Iterator[Any]) -> Iterator[Pair]:
    yield category, sorted(values, reverse=True)[:5]


def top(folder: Path, out: str) -> None:
    import gristmill as gm

    gm.Job(gm.csv(folder / "in.csv"), map=priced, reduce=gm.top(5), output=gm.jsonl(out)).run()


def top_plain(folder: Path, out: Path) -> None:
    pairs = chain.from_iterable(map(priced, rows(folder / "in.csv")))
    write_json(map(pair_as_json, reduced(pairs, dearest)), out / "all.jsonl")


def pair_as_json(pair: Pair) -> dict[str, Any]:
    return {"key": pair[0], "value": pair[1]}


# --- distinct: users of each day ---


def used(line: str) -> Iterator[Pair]:
    at, user, _ = line.split(" ", 2)
    yield at[:10], user


def number_of(day: str, users: Iterator[str]) -> Iterator[Pair]:
    yield day, len(set(users))


def distinct(folder: Path, out: str) -> None:
    import gristmill as gm

    log = gm.text(folder / "in.log")
    gm.Job(log, map=used, reduce=gm.count_distinct(), output=gm.tsv(out)).run()


def approximate(folder: Path, out: str) -> None:
    import gristmill as gm

    log = gm.text(folder / "in.log")
    gm.Job(log, map=used, reduce=gm.approx_distinct(), output=gm.tsv(out)).run()


def distinct_plain(folder: Path, out: Path) -> None:
    pairs = chain.from_iterable(map(used, lines(folder / "in.log")))
    write_tsv(reduced(pairs, number_of), out / "all.tsv")


# --- moving: the mean of seven days at each station ---


def measured(row: dict[str, str]) -> Iterator[Pair]:
    yield row["station"], (date.fromisoformat(row["day"]), float(row["degrees"]))


def by_day(_: str, value: Pair) -> date:
    return value[0]


def means(station: str, values: Iterator[Pair]) -> Iterator[Any]:
    last: deque[float] = deque(maxlen=7)
    for day, degrees in values:
        last.append(degrees)
        yield station, day.isoformat(), round(sum(last) / len(last), 3)


def moving(folder: Path, out: str) -> None:
    import gristmill as gm

    table, to = gm.csv(folder / "in.csv"), gm.tsv(out)
    gm.Job(table, map=measured, sort_by=by_day, reduce=means, output=to).run()


def moving_plain(folder: Path, out: Path) -> None:
    pairs = chain.from_iterable(map(measured, rows(folder / "in.csv")))
    write_tsv(reduced(pairs, means, sort_by=by_day), out / "all.tsv")


# --- typed: a table of texts as Parquet ---


def typed_row(row: dict[str, str]) -> Iterator[dict[str, Any]]:
    yield {
        "id": int(row["id"]),
        "day": date.fromisoformat(row["day"]),
        "shop": row["shop"],
        "amount": float(row["amount"]),
    }


def typed(folder: Path, out: str) -> None:
    import gristmill as gm

    gm.Job(gm.csv(folder / "in.csv"), map=typed_row, output=gm.parquet(out)).run()


def typed_plain(folder: Path, out: Path) -> None:
    records = chain.from_iterable(map(typed_row, rows(folder / "in.csv")))
    write_parquet(records, out / "all.parquet")


# --- odd: JSON of which some is not; counters, and a side output ---


def events(line: str, context: "gristmill.Context | Here") -> Iterator[Pair]:
    try:
        event = json.loads(line)
        yield event["kind"], len(event["tags"])
    except (ValueError, KeyError, TypeError):
        context.count("events", "bad")
        context.output("bad").write((line,))


def total(kind: str, tags: Iterator[int]) -> Iterator[Pair]:
    yield kind, sum(tags)


def odd(folder: Path, out: str) -> None:
    import gristmill as gm

    text, bad = gm.text(folder / "in.jsonl"), {"bad": gm.tsv()}
    gm.Job(text, map=events, reduce=gm.sum(), outputs=bad, output=gm.tsv(out)).run()


class Here:
    """What the plain loop counts in, and writes beside its output."""

    def __init__(self, bad: Any) -> None:  # noqa: ANN401 - a file
        self.counts: dict[tuple[str, str], int] = {}
        self.bad = bad

    def count(self, group: str, name: str) -> None:
        self.counts[group, name] = self.counts.get((group, name), 0) + 1

    def output(self, _name: str) -> "Here":
        return self

    def write(self, record: tuple[str]) -> None:
        self.bad.write(f"{record[0]}\n")


def odd_plain(folder: Path, out: Path) -> None:
    with (out / "bad.tsv").open("w") as bad:
        context = Here(bad)
        pairs = chain.from_iterable(events(line, context) for line in lines(folder / "in.jsonl"))
        write_tsv(reduced(pairs, total), out / "all.tsv")


# --- rank: PageRank, five steps ---

STEPS, DAMPING = 5, 0.85


def edge(line: str) -> Iterator[Pair]:
    source, target = line.split()
    yield int(source), int(target)


def node(source: int, targets: Iterator[int]) -> Iterator[Pair]:
    yield source, (1.0, list(targets))


def shares(record: Pair) -> Iterator[Pair]:
    source, (rank, targets) = record
    yield source, targets
    for target in targets:
        yield target, rank / len(targets)


def ranked(source: int, values: Iterator[Any]) -> Iterator[Pair]:
    targets: list[int] = []
    rank = 1 - DAMPING
    for value in values:
        if isinstance(value, list):
            targets = value
        else:
            rank += DAMPING * value
    yield source, (rank, targets)


def rank_of(record: Pair) -> Iterator[Pair]:
    yield record[0], round(record[1][0], 6)


def rank(folder: Path, out: str) -> None:
    import gristmill as gm

    job = gm.Job(gm.text(folder / "in.txt"), map=edge, reduce=node)
    for _ in range(STEPS):
        job = job.then(map=shares, reduce=ranked)
    job.then(map=rank_of, output=gm.tsv(out)).run()


def rank_plain(folder: Path, out: Path) -> None:
    graph = list(reduced(chain.from_iterable(map(edge, lines(folder / "in.txt"))), node))
    for _ in range(STEPS):
        graph = list(reduced(chain.from_iterable(map(shares, graph)), ranked))
    write_tsv(chain.from_iterable(map(rank_of, graph)), out / "all.tsv")


# --- newest: of each id the record changed last ---


def change(record: dict[str, Any]) -> Iterator[Pair]:
    yield record["id"], {**record, "changed": datetime.fromisoformat(record["changed"])}


def last_change(_: int, changes: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    found = max(changes, key=lambda change: change["changed"])
    yield {**found, "changed": found["changed"].isoformat()}


def newest(folder: Path, out: str) -> None:
    import gristmill as gm

    records, to = gm.jsonl(folder / "in.jsonl"), gm.jsonl(out)
    gm.Job(records, map=change, reduce=last_change, output=to).run()


def newest_plain(folder: Path, out: Path) -> None:
    pairs = chain.from_iterable(change(json.loads(line)) for line in lines(folder / "in.jsonl"))
    write_json(reduced(pairs, last_change), out / "all.jsonl")


# --- all of them ---


def texts(out: Path) -> list[str]:
    """The records of an output, in any order, each as a text."""
    found: list[str] = []
    for path in sorted(out.iterdir()):
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            found += map(repr, pq.read_table(path).to_pylist())
        elif path.suffix in (".tsv", ".jsonl"):
            found += path.read_text(encoding="utf-8").splitlines()
    return sorted(found)


def equal(ours: list[str], plain: list[str]) -> bool:
    return ours == plain


def near(ours: list[str], plain: list[str]) -> bool:
    """Whether the numbers behind the keys differ by a twentieth at most."""
    pairs = zip(map(str.split, ours), map(str.split, plain), strict=True)
    return all(a == b and abs(int(x) - int(y)) * 20 <= int(y) for (a, x), (b, y) in pairs)


@dataclass(frozen=True)
class Case:
    """A job: what makes its input, what runs it, and whether two outputs are the same."""

    make: Callable[[Path, float], None]
    gristmill: Callable[[Path, str], None]
    plain: Callable[[Path, Path], None]
    same: Callable[[list[str], list[str]], bool] = equal
    records: Callable[[Path], list[str]] = texts


CASES = {
    "sessions": Case(make_log, sessions, sessions_plain),
    "index": Case(make_documents, index, index_plain),
    "join": Case(make_orders, join, join_plain),
    "top": Case(make_products, top, top_plain),
    "distinct": Case(make_uses, distinct, distinct_plain),
    "approximate": Case(make_uses, approximate, distinct_plain, near),
    "moving": Case(make_weather, moving, moving_plain),
    "typed": Case(make_sales, typed, typed_plain),
    "odd": Case(make_events, odd, odd_plain),
    "rank": Case(make_graph, rank, rank_plain),
    "newest": Case(make_changes, newest, newest_plain),
}


def main() -> None:
    import shutil

    case, program, name = sys.argv[1:]
    folder, out = Path(name), Path(name, program)
    shutil.rmtree(out, ignore_errors=True)
    if program == "plain":
        out.mkdir()
        CASES[case].plain(folder, out)
    else:
        CASES[case].gristmill(folder, f"{out}/")


if __name__ == "__main__":
    main()
