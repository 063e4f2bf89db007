"""What the ten usual jobs read: made by chance, the same each time.

Sizes are those of the page, times `scale`.
"""

import json
import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path


def make_log(folder: Path, scale: float) -> None:
    drawn, first = random.Random(1), datetime(2026, 1, 1, tzinfo=UTC)
    found: list[tuple[datetime, int]] = []
    while len(found) < 400_000 * scale:
        user = int(20_000 * drawn.random() ** 2)
        at = first + timedelta(seconds=drawn.randrange(30 * 86_400))
        for _ in range(drawn.randrange(1, 20)):
            found.append((at, user))
            at += timedelta(seconds=drawn.randrange(600))
    found.sort()
    with (folder / "in.log").open("w") as out:
        for at, user in found:
            out.write(
                f"10.0.{user % 250}.{user % 199} - user{user:05} [{at:%d/%b/%Y:%H:%M:%S %z}]"
                f' "GET /page/{drawn.randrange(500)} HTTP/1.1" 200 {drawn.randrange(9999)}\n'
            )


def make_documents(folder: Path, scale: float) -> None:
    drawn = random.Random(2)
    with (folder / "in.tsv").open("w") as out:
        for number in range(int(80_000 * scale)):
            words = (f"w{int(20_000 * drawn.random() ** 3)}" for _ in range(60))
            out.write(f"doc{number:06}\t{' '.join(words)}\n")


def make_orders(folder: Path, scale: float) -> None:
    drawn, customers = random.Random(3), int(20_000 * scale)
    with (folder / "in-customers.csv").open("w") as out:
        out.write("id,name,city\n")
        out.writelines(f"{one},name {one},city {one % 97}\n" for one in range(customers))
    with (folder / "in-orders.csv").open("w") as out:
        out.write("order,customer,amount\n")
        for order in range(10 * customers):
            out.write(f"{order},{drawn.randrange(customers * 11 // 10)},{drawn.random():.2f}\n")


def make_products(folder: Path, scale: float) -> None:
    drawn = random.Random(4)
    with (folder / "in.csv").open("w") as out:
        out.write("name,category,price\n")
        for number in range(int(1_200_000 * scale)):
            out.write(
                f"product {number},category {drawn.randrange(40)},{drawn.random() * 500:.2f}\n"
            )


def make_uses(folder: Path, scale: float) -> None:
    drawn = random.Random(5)
    with (folder / "in.log").open("w") as out:
        for _ in range(int(1_600_000 * scale)):
            user = int(50_000 * drawn.random() ** 2)
            out.write(f"2026-01-{drawn.randrange(1, 31):02}T12:00:00 user{user} /page\n")


def make_weather(folder: Path, scale: float) -> None:
    drawn, first = random.Random(6), date(2000, 1, 1)
    days = [(station, day) for station in range(97) for day in range(int(1000 * scale))]
    drawn.shuffle(days)
    with (folder / "in.csv").open("w") as out:
        out.write("station,day,degrees\n")
        for station, day in days:
            out.write(f"S{station},{first + timedelta(day)},{drawn.gauss(10, 9):.1f}\n")


def make_sales(folder: Path, scale: float) -> None:
    drawn, first = random.Random(7), date(2026, 1, 1)
    with (folder / "in.csv").open("w") as out:
        out.write("id,day,shop,amount\n")
        for number in range(int(800_000 * scale)):
            day = first + timedelta(drawn.randrange(365))
            out.write(f"{number},{day},shop {drawn.randrange(50)},{drawn.random() * 90:.2f}\n")


def make_events(folder: Path, scale: float) -> None:
    drawn = random.Random(8)
    with (folder / "in.jsonl").open("w") as out:
        for number in range(int(800_000 * scale)):
            event = {
                "id": number,
                "kind": drawn.choice("abcde"),
                "tags": ["x"] * drawn.randrange(4),
            }
            line = json.dumps(event)
            out.write(f"{line[: drawn.randrange(20)] if drawn.random() < 0.02 else line}\n")


def make_graph(folder: Path, scale: float) -> None:
    drawn, nodes = random.Random(9), int(80_000 * scale)
    with (folder / "in.txt").open("w") as out:
        for node in range(nodes):
            for _ in range(drawn.randrange(1, 10)):
                out.write(f"{node} {int(nodes * drawn.random() ** 2)}\n")


def make_changes(folder: Path, scale: float) -> None:
    drawn, changes = random.Random(10), int(100_000 * scale)
    with (folder / "in.jsonl").open("w") as out:
        for number in range(changes):
            at = datetime(2026, 1, 1) + timedelta(seconds=number)
            change = {"id": drawn.randrange(changes // 4), "changed": at.isoformat()}
            change |= {"name": f"name {number}", "price": number}
            out.write(json.dumps(change) + "\n")
