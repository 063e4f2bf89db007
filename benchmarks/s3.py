"""Sorts from S3 to S3, paired with what it takes to download and to upload the same bytes.

    python benchmarks/s3.py --rows 10m --pairs 3
    python benchmarks/s3.py --rows 10m --latency-ms 50
    python benchmarks/s3.py --rows 50m --gbit 1
    python benchmarks/s3.py --text 200 --latency-ms 50
    python benchmarks/s3.py --text 10 --files 1000 --latency-ms 50

The server is versitygw, on the same machine; rclone and the AWS CLI with its CRT (`pip install
awscli awscrt`) download and upload, and the faster one counts. With `--gbit`, the server is behind
a link that is so fast each way. With `--latency-ms`, requests go through a proxy that holds each of
them for so long, and each sort is paired with one through the same proxy without that. With
`--text` the jobs are a `wordcount` and one of Python functions, of so many MB of lines in `--files`
objects. The table goes to benchmarks/results.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from running import GRISTMILL
from running import seconds_of as timed
from tables import Row, keep, names, rows_of, span

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.cli.s3_server import Server, serving
from tests.cli.servers import HERE, Host

BLOCK_BYTES = 256 << 10


class Proxy:
    """Hands bytes on; what a client sends after a reply, a request, is held first."""

    def __init__(self, endpoint: str, latency_s: float) -> None:
        self.to = urlsplit(endpoint)
        self.latency_s = latency_s
        self.requests = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        server, client = await asyncio.open_connection(self.to.hostname, self.to.port)
        answered = True

        async def up() -> None:
            nonlocal answered
            while data := await reader.read(BLOCK_BYTES):
                if answered:
                    answered = False
                    self.requests += 1
                    await asyncio.sleep(self.latency_s)
                client.write(data)
                await client.drain()
            client.close()

        async def down() -> None:
            nonlocal answered
            while data := await server.read(BLOCK_BYTES):
                answered = True
                writer.write(data)
                await writer.drain()
            writer.close()

        with suppress(asyncio.CancelledError):  # at the end
            await asyncio.gather(up(), down(), return_exceptions=True)


@contextmanager
def behind(gbit: float) -> Generator[Host]:
    """A host behind a link of so many Gbit/s each way: a network namespace (needs root)."""
    name = f"bench{os.getpid()}"
    near, far = f"{name}a", f"{name}b"

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True)

    def hold(link: str, *before: str) -> None:
        held = ["root", "tbf", "rate", f"{gbit}gbit", "burst", "256kb", "latency", "20ms"]
        subprocess.run([*before, "tc", "qdisc", "add", "dev", link, *held], check=True)

    there = ("ip", "netns", "exec", name)
    ip("netns", "add", name)
    try:
        ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", name)
        ip("address", "add", "10.231.7.1/30", "dev", near)
        ip("-n", name, "address", "add", "10.231.7.2/30", "dev", far)
        ip("link", "set", near, "up")
        ip("-n", name, "link", "set", far, "up")
        hold(near)
        hold(far, *there)
        yield Host("10.231.7.2", there)
    finally:
        ip("netns", "delete", name)


@contextmanager
def delayed(endpoint: str, latency_ms: float) -> Generator[tuple[str, Proxy]]:
    """Serve as a proxy, in a thread of its own."""
    proxy, loop = Proxy(endpoint, latency_ms / 1000), asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(proxy.serve, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", proxy
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:  # nothing has a loop of its own
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        server.close()
        loop.close()


def sort(server: Server, scratch: Path, endpoint: str) -> float:
    """Sort from the bucket to the bucket."""
    environment = {**server.environment, "AWS_ENDPOINT_URL": endpoint}
    command = [GRISTMILL, "terasort", "s3://bench/in", "s3://bench/out", "--overwrite"]
    return timed(*command, "--spill-dir", scratch, **environment)


JOB = """
import gristmill as gm


def words(line):
    yield line[:3], 1


def job(input, output):
    return gm.Job(gm.text(input), map=words, reduce=gm.sum(), output=gm.tsv(output))
"""


def write_text(folder: Path, megabytes: float, files: int) -> None:
    """Write lines of words to so many files."""
    folder.mkdir(parents=True)
    words = [f"word{number * 7919 % 5000}" for number in range(20_000)]
    lines = (" ".join(words[at : at + 12]) + "\n" for at in range(0, len(words), 12))
    block = "".join(lines).encode()
    size = int(megabytes * 1e6 / files)
    whole = block * (size // len(block) + 1)
    for number in range(files):
        (folder / f"{number:05}.txt").write_bytes(whole[: whole.rfind(b"\n", 0, size) + 1])


def count(kind: str, server: Server, scratch: Path, endpoint: str) -> float:
    """Count words, or beginnings of lines, of all text in the bucket."""
    environment = {**server.environment, "AWS_ENDPOINT_URL": endpoint}
    output = scratch / "counted"
    shutil.rmtree(output, ignore_errors=True)
    if kind == "wordcount":
        return timed(GRISTMILL, "wordcount", "s3://bench/text", output, **environment)
    (scratch / "job.py").write_text(JOB)
    command = ["run", scratch / "job.py", "--job", "job", "--input", "s3://bench/text"]
    return timed(GRISTMILL, *command, "--output", output, **environment)


def settings(server: Server, scratch: Path) -> dict[str, str]:
    """What rclone is told: parts of 64 MB, no MD5 beforehand; and the AWS CLI: its CRT."""
    config = scratch / "config"
    config.write_text(
        "[default]\ns3 =\n  preferred_transfer_client = crt\n  target_bandwidth = 10GB/s\n"
    )
    return {
        **server.environment,
        "AWS_CONFIG_FILE": str(config),
        "RCLONE_CONFIG_S_TYPE": "s3",
        "RCLONE_CONFIG_S_PROVIDER": "Other",
        "RCLONE_CONFIG_S_ENDPOINT": server.endpoint,
        "RCLONE_CONFIG_S_ACCESS_KEY_ID": server.key,
        "RCLONE_CONFIG_S_SECRET_ACCESS_KEY": server.secret,
        "RCLONE_S3_CHUNK_SIZE": "64M",
        "RCLONE_S3_DISABLE_CHECKSUM": "true",
        "NO_PROXY": "*",
    }


def copy(program: str, server: Server, scratch: Path) -> dict[str, Row]:
    """Download by one of the programs, and upload; how many seconds each took."""
    environment, folder = settings(server, scratch), scratch / "copy"
    if program == "rclone":
        command, bucket = ["rclone", "copy", "--transfers", "4"], "s:bench"
    else:
        command, bucket = ["aws", "s3", "cp", "--recursive", "--quiet"], "s3://bench"
    down = timed(*command, f"{bucket}/in", folder, **environment)
    up = timed(*command, folder, f"{bucket}/copy", **environment)
    shutil.rmtree(folder)
    shutil.rmtree(server.folder / "bench" / "copy")
    return {f"{program}_download": {"wall_s": down}, f"{program}_upload": {"wall_s": up}}


def delayed_pair(server: Server, latency_ms: float, job: Callable[[str], float]) -> dict[str, Row]:
    """A job without latency, and with it."""
    with delayed(server.endpoint, 0) as (endpoint, proxy):
        near = {"wall_s": job(endpoint), "requests": proxy.requests}
    with delayed(server.endpoint, latency_ms) as (endpoint, _):
        return {"near": near, "far": {"wall_s": job(endpoint)}}


def pair(server: Server, scratch: Path) -> dict[str, Row]:
    """A sort, and both programs that copy."""
    times = {"sort": {"wall_s": sort(server, scratch, server.endpoint)}}
    for program in ("rclone", "aws"):
        times |= copy(program, server, scratch)
    return times


def measure(
    options: argparse.Namespace, server: Server, scratch: Path
) -> dict[str, dict[str, Row]]:
    """One pair of each job."""
    if options.text:
        return {
            kind: delayed_pair(server, options.latency_ms, partial(count, kind, server, scratch))
            for kind in ("wordcount", "python")
        }
    if options.latency_ms:
        job = partial(sort, server, scratch)
        return {"terasort": delayed_pair(server, options.latency_ms, job)}
    return {"terasort": pair(server, scratch)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Sorts from S3 to S3.")
    parser.add_argument("--rows", default="10m", help="records of 100 bytes")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--latency-ms", type=float, default=0)
    parser.add_argument("--gbit", type=float, default=0, help="the link to the server (root)")
    parser.add_argument("--text", type=float, default=0, help="MB of lines, in place of records")
    parser.add_argument("--files", type=int, default=1, help="objects that the lines are in")
    parser.add_argument("--folder", type=Path, help="where all files are")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as made:
        scratch, buckets = Path(made) / "scratch", Path(made) / "buckets"
        scratch.mkdir()
        (buckets / "bench").mkdir(parents=True)
        link = behind(options.gbit) if options.gbit else nullcontext(HERE)
        with link as host, serving(buckets, host) as server:
            if options.text:
                write_text(buckets / "bench" / "text", options.text, options.files)
            else:
                timed(GRISTMILL, "teragen", options.rows, "s3://bench/in", **server.environment)
            pairs: list[dict[str, dict[str, Row]]] = []
            for _ in range(options.pairs):
                pairs.append(measure(options, server, scratch))
                print(json.dumps(pairs[-1]), flush=True)
    given = {"rows": options.rows, "latency_ms": options.latency_ms, "gbit": options.gbit}
    if options.text:
        given = {"text_mb": options.text, "files": options.files, "latency_ms": options.latency_ms}
    rows = [
        row
        for what in pairs[0]
        for row in rows_of((found[what] for found in pairs), what=what, **given)
    ]
    for what in names(rows, "what"):
        for program in names(rows, "program"):
            print(f"{what}, {program}: {span(rows, what=what, program=program).shown('.2f')} s")
    keep("s3", rows)


if __name__ == "__main__":
    main()
