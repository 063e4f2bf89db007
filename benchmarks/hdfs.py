"""Sorts from HDFS to HDFS, paired with what it takes to get and to put the same bytes.

    python benchmarks/hdfs.py --rows 50m --pairs 5

HDFS is Hadoop's MiniDFSCluster, on the same machine, with blocks of 128 MB and one copy of each;
who gets and puts is Hadoop's own `hdfs dfs`, in Java. The table goes to benchmarks/results.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from running import GRISTMILL, seconds_of
from tables import Row, keep, rows_of, span

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.cli.hdfs_server import Cluster, class_path, serving, settings

BLOCKS = {"dfs.blocksize": 128 << 20, "dfs.replication": 1}


def gristmill(conf: Path, *words: str | Path) -> float:
    """Run one of our commands."""
    return seconds_of(GRISTMILL, *words, HADOOP_CONF_DIR=str(conf), HADOOP_USER_NAME="super")


def dfs(conf: Path, *words: str | Path) -> float:
    """Run a command of `hdfs dfs`."""
    path = f"{conf}{os.pathsep}{class_path()}"
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    shell = ["java", quiet, "-cp", path, "org.apache.hadoop.fs.FsShell"]
    return seconds_of(*shell, *words, HADOOP_USER_NAME="super")


def sort(cluster: Cluster, conf: Path, scratch: Path) -> float:
    """Sort from HDFS to HDFS."""
    command = ["terasort", cluster.url("in"), cluster.url("out"), "--spill-dir", scratch]
    taken_s = gristmill(conf, *command)
    gristmill(conf, "teravalidate", cluster.url("out"), "--against", cluster.url("in"))
    gristmill(conf, "hadoop", "fs", "-rm", "-r", cluster.url("out"))
    return taken_s


def copy(cluster: Cluster, conf: Path, scratch: Path) -> tuple[float, float]:
    """Get all files, and put them."""
    folder = scratch / "copy"
    get_s = dfs(conf, "-get", cluster.url("in"), folder)
    put_s = dfs(conf, "-put", folder, cluster.url("copy"))
    shutil.rmtree(folder)
    gristmill(conf, "hadoop", "fs", "-rm", "-r", cluster.url("copy"))
    return get_s, put_s


def pair(cluster: Cluster, conf: Path, scratch: Path, *, sort_first: bool) -> dict[str, Row]:
    """One pair of measurements."""
    sort_s = sort(cluster, conf, scratch) if sort_first else 0.0
    get_s, put_s = copy(cluster, conf, scratch)
    sort_s = sort_s or sort(cluster, conf, scratch)
    times = {"sort": sort_s, "get": get_s, "put": put_s}
    return {name: {"wall_s": wall_s} for name, wall_s in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Sorts from HDFS to HDFS.")
    parser.add_argument("--rows", default="10m", help="records of 100 bytes")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where all files are")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as made:
        scratch, data = Path(made) / "scratch", Path(made) / "data"
        scratch.mkdir()
        data.mkdir()
        conf = settings(Path(made) / "conf", BLOCKS)
        with serving(data, for_tests=False) as cluster:
            gristmill(conf, "teragen", options.rows, cluster.url("in"))
            pairs: list[dict[str, Row]] = []
            for number in range(options.pairs):
                pairs.append(pair(cluster, conf, scratch, sort_first=number % 2 == 0))
                print(json.dumps(pairs[-1]), flush=True)
    rows = rows_of(pairs, rows=options.rows)
    moved = span(rows, program="get") + span(rows, program="put")
    print(f"ratio: {(span(rows, program='sort') / moved).shown('.2f')}")
    keep("hdfs", rows)


if __name__ == "__main__":
    main()
