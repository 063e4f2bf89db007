"""The device of benchmarks/scaling.py: a server on 127.0.0.1 that has the disks of a cluster.

    worker ── "read 17" ──▶ cached on node 17 mod p? ──────────────────────────▶ the block
                                  │ no                                    ▲
                                  └──▶ queue of that node's disk ─ time ──┘

Each of the p nodes has a disk, and memory that caches `cache` blocks. Blocks are dealt out: block b
is on node b mod p. Of its share, a node has the last `cache` blocks in memory, as they were written
last; all others are on its disk. A disk reads one block after the other, in the order of the
requests. A block takes its bytes divided by the rate, times a number between 0.5 and 1.5 that is
drawn for each block, as the head has to move. What was asked for is read to its end, even if the
one who asked has gone; then it waits in memory for the next request.

Commands are lines: `setup JSON`, `stats`, `ready`, `read NUMBER`. An answer is 8 bytes of length,
and the bytes. `ready` is answered once p connections have said it: so all workers begin together.
"""

import asyncio
import json
import random
import sys
from dataclasses import asdict, dataclass, field

__all__ = ["BLOCK_BYTES", "Cluster", "text_of_block"]

WORDS = tuple(f"word{number:03d}" for number in range(200))
BLOCK_BYTES = 8 * 196_608 - 1
"""Of words with seven letters, and a space between them."""


def text_of_block() -> bytes:
    """The text of each block: all are the same."""
    return " ".join(random.Random(17).choices(WORDS, k=(BLOCK_BYTES + 1) // 8)).encode()


@dataclass
class Cluster:
    """The disks and caches of p nodes.

    Without a rate nothing is on disk:

    >>> Cluster(p=2, blocks=8).ready_at(0, now=5.0)
    5.0

    One node with memory for two blocks of four; the others queue for its disk:

    >>> one = Cluster(p=1, blocks=4, cache=2, bytes_per_s=BLOCK_BYTES, spread=0.0)
    >>> [one.ready_at(block, now=0.0) for block in range(4)]
    [1.0, 2.0, 0.0, 0.0]
    >>> one.ready_at(0, now=1.5), one.from_disk
    (1.5, 2)

    Two nodes have memory for all of them:

    >>> two = Cluster(p=2, blocks=4, cache=2, bytes_per_s=BLOCK_BYTES)
    >>> [two.ready_at(block, now=0.0) for block in range(4)]
    [0.0, 0.0, 0.0, 0.0]
    """

    p: int
    blocks: int
    cache: int = 0
    bytes_per_s: float | None = None
    spread: float = 0.5
    seed: int = 0
    from_disk: int = 0
    """Blocks that disks read."""
    busy_s: float = 0.0
    """Seconds that all disks together read."""
    _done_at: dict[int, float] = field(default_factory=dict)
    _free_at: dict[int, float] = field(default_factory=dict)

    def ready_at(self, block: int, now: float) -> float:
        """When a block that is asked for now can be sent."""
        if self.is_cached(block):
            return now
        if block not in self._done_at:
            node = block % self.p
            begins = max(now, self._free_at.get(node, now))
            takes = self._seconds_of(block)
            self._done_at[block] = self._free_at[node] = begins + takes
            self.from_disk += 1
            self.busy_s += takes
        return max(now, self._done_at[block])

    def is_cached(self, block: int) -> bool:
        """Whether a block is in the memory of its node."""
        if self.bytes_per_s is None:
            return True
        share = len(range(block % self.p, self.blocks, self.p))
        return block // self.p >= share - self.cache

    def _seconds_of(self, block: int) -> float:
        assert self.bytes_per_s is not None
        drawn = random.Random(f"{self.seed} {block}").uniform(1 - self.spread, 1 + self.spread)
        return BLOCK_BYTES / self.bytes_per_s * drawn


class Server:
    """Answers the connections of workers, and of the benchmark."""

    def __init__(self) -> None:
        self.cluster = Cluster(p=1, blocks=0)
        self.text = text_of_block()
        self.waiting: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a connection until it ends."""
        try:
            while line := await reader.readline():
                await self._answer(line.decode(), reader, writer)
        except ConnectionError:
            pass  # a client that gave up
        finally:
            writer.close()

    async def _answer(
        self, line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        word, _, rest = line.strip().partition(" ")
        match word:
            case "setup":
                self.cluster, self.waiting = Cluster(**json.loads(rest)), []
                send(writer, b"ok")
            case "stats":
                known = asdict(self.cluster)
                told = {name: known[name] for name in ("from_disk", "busy_s")}
                send(writer, json.dumps(told).encode())
            case "ready":
                self.waiting.append(writer)
                if len(self.waiting) == self.cluster.p:
                    for one in self.waiting:
                        send(one, b"go")
            case "read":
                now = asyncio.get_running_loop().time()
                wait = self.cluster.ready_at(int(rest), now) - now
                if wait > 0:
                    await asyncio.sleep(wait)
                if not reader.at_eof():  # else the worker has given up
                    send(writer, self.text)
                    await writer.drain()
            case _:
                send(writer, b"unknown")


def send(writer: asyncio.StreamWriter, payload: bytes) -> None:
    writer.write(len(payload).to_bytes(8, "little") + payload)


async def main() -> None:
    server = await asyncio.start_server(Server().serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, sys.stdin.read)  # it ends when the benchmark does


if __name__ == "__main__":
    asyncio.run(main())
