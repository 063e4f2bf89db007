"""What records.py measures, by DuckDB and by Polars, as their experts would run them.

    python benchmarks/record_peers.py PEER-WHAT ORDERS OUTPUT MEMORY

Both read CSV and write CSV, with as many threads as there are cores, and make the output durable.
The customers are beside the orders. Columns are text but for the amount.
"""

import sys
from pathlib import Path

from peers import connection, durable

TYPES = {
    "id": "VARCHAR",
    "city": "VARCHAR",
    "customer": "VARCHAR",
    "amount": "BIGINT",
    "note": "VARCHAR",
}
QUERIES = {
    "distinct": "SELECT DISTINCT ON (id) * FROM orders",
    "group": "SELECT city, count(*), sum(amount) AS amount_sum FROM orders GROUP BY city",
    "join": "SELECT * FROM orders JOIN customers USING (customer)",
    "top": "SELECT * FROM orders ORDER BY amount DESC LIMIT 100",
    "shuf": "SELECT * FROM orders ORDER BY random()",
}


def by_duckdb(what: str, orders: Path, output: Path, memory: int) -> None:
    """DuckDB, with that much memory."""
    database = connection(output, memory)
    columns = f"header = true, columns = {TYPES}"
    customers = orders.with_name("customers.csv")
    database.execute(f"CREATE VIEW orders AS SELECT * FROM read_csv('{orders}', {columns})")
    database.execute(
        f"CREATE VIEW customers AS SELECT * FROM read_csv('{customers}', header = true)"
    )
    query = QUERIES[what].replace("count(*)", "count(*) AS count")
    database.execute(f"COPY ({query}) TO '{output}' (FORMAT csv, HEADER true)")


def by_polars(what: str, orders: Path, output: Path) -> None:
    """Polars' streaming engine; it takes the memory it wants."""
    import polars as pl

    types = {name: pl.Int64 if kind == "BIGINT" else pl.String for name, kind in TYPES.items()}
    table = pl.scan_csv(orders, schema=types)
    match what:
        case "distinct":
            found = table.unique(subset="id", keep="any")
        case "group":
            figures = [pl.len().alias("count"), pl.col("amount").sum().alias("amount_sum")]
            found = table.group_by("city").agg(figures)
        case "join":
            found = table.join(pl.scan_csv(orders.with_name("customers.csv")), on="customer")
        case "top":
            found = table.top_k(100, by="amount")
        case _:
            table.collect(engine="streaming").sample(fraction=1, shuffle=True).write_csv(output)
            return
    found.sink_csv(output)


def main() -> None:
    named, orders, output, memory = sys.argv[1:]
    peer, _, what = named.partition("-")
    if peer == "duckdb":
        by_duckdb(what, Path(orders), Path(output), int(memory))
    else:
        by_polars(what, Path(orders), Path(output))
    durable(Path(output))


if __name__ == "__main__":
    main()
