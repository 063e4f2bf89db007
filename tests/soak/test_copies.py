"""`make soak`: copies to and from all places, killed at random moments.

COPIES says how many, COPIES_SEED which ones, and COPIES_FIRST the number of the first.
"""

import os
import random
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.cli.clouds import Cloud, CloudBucket, serving_azure, serving_gcs

from .copies import Place, campaign
from .grounds import bucket_in, directory_of_hdfs
from .jobs import LONGEST_S

COPIES = int(os.environ.get("COPIES") or 100)


@contextmanager
def in_cloud(
    folder: Path, serving: Callable[[Path], AbstractContextManager[Cloud]]
) -> Generator[Place]:
    """A bucket of a server that is started."""
    folder.mkdir()
    with serving(folder) as cloud:
        cloud.make_bucket("copies")
        bucket = CloudBucket(cloud, "copies")
        environment = {**cloud.environment, "NO_PROXY": "127.0.0.1"}
        yield Place(cloud.name, bucket.url("c"), bucket.uploads, environment)


@pytest.fixture
def places(tmp_path: Path) -> Generator[list[Place]]:
    """A disk, and the servers of all stores."""
    with ExitStack() as stack:
        bucket = stack.enter_context(bucket_in(tmp_path / "s3"))
        hdfs = stack.enter_context(directory_of_hdfs(tmp_path / "hdfs"))
        yield [
            Place("a disk", str(tmp_path / "disk")),
            Place("S3", bucket.location("c"), lambda: bucket.left(0), bucket.environment),
            stack.enter_context(in_cloud(tmp_path / "gcs", serving_gcs)),
            stack.enter_context(in_cloud(tmp_path / "azure", serving_azure)),
            Place("HDFS", hdfs.location("c"), lambda: hdfs.left(0), hdfs.environment),
        ]


@pytest.mark.timeout(COPIES * 4 * LONGEST_S)
def test_copies_at_random(tmp_path: Path, places: list[Place]) -> None:
    seed = int(os.environ.get("COPIES_SEED") or random.SystemRandom().randrange(1, 1 << 32))
    print(f"COPIES_SEED={seed}", file=sys.stderr, flush=True)
    first = int(os.environ.get("COPIES_FIRST") or 0)
    campaign(range(first, first + COPIES), seed, say, tmp_path, places)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
