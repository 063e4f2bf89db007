"""Sorts and counts by the programs that others use, as their experts would run them.

    python benchmarks/peers.py PEER INPUT OUTPUT MEMORY

Every peer gets the same data in the form it is best at, as many threads as there are cores, and the
memory in bytes; it makes its output durable, as gristmill does. `FORMS` says which form: `raw` for
records of 100 bytes, `text` for the same as lines (gensort's ASCII layout), `parquet` for key and
value in a Parquet file.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

THREADS = os.cpu_count() or 1
RECORD_BYTES = 100
KEY_BYTES = 10

#: The form in which each peer takes the records of the sort benchmark.
FORMS = {
    "gnu": "text",
    "duckdb": "text",
    "clickhouse": "raw",
    "polars": "parquet",
    "numpy": "raw",
    "daft": "parquet",
    "spark": "parquet",
    "ray": "parquet",
    "hadoop": "raw",
}

#: Peers that live in a Python of their own, as they want other versions of what they share.
FRAMEWORKS = ["daft", "spark", "ray"]


def durable(path: Path) -> None:
    """Wait until a file is on its device."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def gnu(source: Path, output: Path, memory: int) -> None:
    """GNU sort with as much buffer as there is memory, in the C locale."""
    buffer = ["-S", f"{memory // 1024}K", f"--parallel={THREADS}", "-T", output.parent]
    command = ["sort", *buffer, "-o", output, source]
    subprocess.run(command, env={**os.environ, "LC_ALL": "C"}, check=True)


def connection(output: Path, memory: int) -> Any:  # noqa: ANN401 - not installed everywhere
    """DuckDB with that much memory; what does not fit goes beside the output."""
    import duckdb

    database = duckdb.connect()
    database.execute(f"SET memory_limit = '{memory} B'")
    database.execute(f"SET threads = {THREADS}")
    database.execute(f"SET temp_directory = '{output.parent}/duckdb'")
    database.execute("SET preserve_insertion_order = false")
    return database


#: Whole lines as one column: no byte of the data separates, quotes or escapes.
WHOLE_LINES = (
    "columns = {'line': 'VARCHAR'}, delim = '\x01', quote = '', escape = '', header = false"
)


def duckdb_sort(source: Path, output: Path, memory: int) -> None:
    """DuckDB, from lines to lines."""
    lines = f"SELECT line FROM read_csv('{source}', {WHOLE_LINES}) ORDER BY line"
    form = "(FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\x01')"
    connection(output, memory).execute(f"COPY ({lines}) TO '{output}' {form}")


def clickhouse(source: Path, output: Path, memory: int) -> None:
    """ClickHouse in this process, from raw records to raw records."""
    import chdb

    record = f"'RowBinary', 'k FixedString({KEY_BYTES}), v FixedString({RECORD_BYTES - KEY_BYTES})'"
    settings = {
        "max_threads": THREADS,
        "max_memory_usage": memory,
        "max_bytes_before_external_sort": memory // 4,
        "min_insert_block_size_bytes": memory // 32,
        "max_insert_block_size": 100_000,
        "engine_file_truncate_on_insert": 1,
    }
    chdb.query(
        f"INSERT INTO FUNCTION file('{output}', {record})"
        f" SELECT k, v FROM file('{source}/part-*', {record}) ORDER BY k"
        f" SETTINGS {', '.join(f'{name} = {value}' for name, value in settings.items())}"
    )


def polars_sort(source: Path, output: Path, _memory: int) -> None:
    """Polars' streaming engine, from Parquet to Parquet; it takes the memory it wants."""
    import polars as pl

    pl.scan_parquet(source).sort("key").sink_parquet(output, compression="uncompressed")


def numpy_sort(source: Path, output: Path, _memory: int) -> None:
    """NumPy: argsort of the keys' first eight bytes, then blocks of records in that order."""
    import numpy as np

    paths = sorted(source.glob("part-*"))
    files = [np.memmap(path, np.uint8, "r").reshape(-1, RECORD_BYTES) for path in paths]
    records = files[0] if len(files) == 1 else np.concatenate(files)
    keys = np.ascontiguousarray(records[:, :8]).view(">u8").ravel().astype(np.uint64)
    order = np.argsort(keys)
    with output.open("wb", buffering=0) as file:
        for first in range(0, len(order), 1 << 18):
            file.write(records[order[first : first + (1 << 18)]].data)


def daft_sort(source: Path, output: Path, _memory: int) -> None:
    """Daft's native runner, from Parquet to Parquet; it takes the memory it wants."""
    import daft

    daft.read_parquet(str(source)).sort("key").write_parquet(str(output), compression="none")


def spark_sort(source: Path, output: Path, memory: int) -> None:
    """Spark in one process with as many threads as cores: DataFrames, from Parquet to Parquet."""
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_HOSTNAME"] = "localhost"  # it would look its own name up, and wait
    builder = SparkSession.builder.master(f"local[{THREADS}]")
    settings = {
        "spark.driver.memory": f"{memory // 1_000_000}m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(output.parent),
        "spark.ui.enabled": "false",
        "spark.sql.parquet.compression.codec": "uncompressed",
        "spark.sql.shuffle.partitions": str(8 * THREADS),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.read.parquet(str(source)).sort("key").write.parquet(str(output))
    gateway = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()  # or its CPU seconds would count for nothing


def ray_sort(source: Path, output: Path, memory: int) -> None:
    """Ray Data on one node of its own, Parquet to Parquet; half of the memory is its store's."""
    import ray

    ray.init(
        num_cpus=THREADS,
        object_store_memory=memory // 2,
        include_dashboard=False,
        logging_level="warning",
        _temp_dir=f"/tmp/ray-{os.getpid()}",
    )
    ray.data.read_parquet(str(source)).sort("key").write_parquet(str(output))
    ray.shutdown()
    shutil.rmtree(f"/tmp/ray-{os.getpid()}", ignore_errors=True)


def hadoop(scratch: Path) -> Any:  # noqa: ANN401 - the tests' own
    """Hadoop as the tests run it; the first time, Maven fetches it."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from hadoop.harness import Hadoop

    return Hadoop.prepare(scratch)


def hadoop_sort(source: Path, output: Path, memory: int) -> None:
    """Hadoop's own TeraSort in its local runner, with buffers large enough for one spill a map."""
    tuned = {
        "mapreduce.job.reduces": str(THREADS),
        "mapreduce.local.map.tasks.maximum": str(THREADS),
        "mapreduce.local.reduce.tasks.maximum": str(THREADS),
        "mapreduce.task.io.sort.mb": "256",
        "mapreduce.map.sort.spill.percent": "0.95",
        "mapreduce.task.io.sort.factor": "200",
    }
    heap = f"-Xmx{memory // 1_000_000}m"
    hadoop(output.parent).tuned_terasort(source, output, tuned, heap)


def duckdb_words(source: Path, output: Path, memory: int) -> None:
    """DuckDB counts the words between spaces."""
    lines = (
        f"SELECT unnest(string_split(line, ' ')) AS word FROM read_csv('{source}', {WHOLE_LINES})"
    )
    counts = f"SELECT word, count(*) FROM ({lines}) GROUP BY word"
    connection(output, memory).execute(f"COPY ({counts}) TO '{output}' (FORMAT csv, HEADER false)")


def clickhouse_words(source: Path, output: Path, memory: int) -> None:
    """ClickHouse counts the words between spaces."""
    import chdb

    chdb.query(
        f"INSERT INTO FUNCTION file('{output}', 'TSV', 'word String, n UInt64')"
        " SELECT arrayJoin(splitByChar(' ', line)) AS word, count()"
        f" FROM file('{source}', 'LineAsString') GROUP BY word SETTINGS max_threads = {THREADS},"
        f" max_memory_usage = {memory}, engine_file_truncate_on_insert = 1"
    )


def polars_words(source: Path, output: Path, _memory: int) -> None:
    """Polars' streaming engine counts the words between spaces."""
    import polars as pl

    lines = pl.scan_csv(
        source, has_header=False, separator="\x01", quote_char=None, new_columns=["line"]
    )
    found = lines.select(pl.col("line").str.split(" ").alias("word")).explode("word")
    found.group_by("word").len().sink_csv(output, include_header=False)


PEERS: dict[str, Callable[[Path, Path, int], None]] = {
    "gnu": gnu,
    "duckdb": duckdb_sort,
    "clickhouse": clickhouse,
    "polars": polars_sort,
    "numpy": numpy_sort,
    "daft": daft_sort,
    "spark": spark_sort,
    "ray": ray_sort,
    "hadoop": hadoop_sort,
    "duckdb-words": duckdb_words,
    "clickhouse-words": clickhouse_words,
    "polars-words": polars_words,
}


def to_parquet(text: Path, parquet: Path, memory: int) -> None:
    """The lines of `text` as a Parquet file of keys and values; not timed."""
    lines = f"SELECT line[:{KEY_BYTES}] AS key, line[{KEY_BYTES + 1}:] AS value"
    lines += f" FROM read_csv('{text}', {WHOLE_LINES})"
    connection(parquet, memory).execute(
        f"COPY ({lines}) TO '{parquet}' (FORMAT parquet, COMPRESSION uncompressed)"
    )


def main() -> None:
    peer, source, output, memory = sys.argv[1:]
    if peer == "to-parquet":
        to_parquet(Path(source), Path(output), int(memory))
        return
    if peer == "prepare-hadoop":
        hadoop(Path(output).parent)
        return
    made = Path(output)
    PEERS[peer](Path(source), made, int(memory))
    for path in [made] if made.is_file() else filter(Path.is_file, made.rglob("*")):
        durable(path)


if __name__ == "__main__":
    main()
