"""Standard output is that of the job, whatever Ray has to say while it runs."""

import subprocess
import sys

import pytest

from .harness import clean_environment

#: A node complains, as one does whose memory for objects is full.
PROGRAM = """
import time
from gristmill.cluster.connection import connected, load

ray = load()
with connected(ray):
    from ray._private import utils, worker

    client = worker.global_worker.gcs_client
    utils.publish_error_to_driver("spill", "Spilled 328 MiB, 5 objects", gcs_client=client)
    time.sleep(2)
    print("{}")
"""


@pytest.mark.usefixtures("on_ray")
def test_what_nodes_complain_of_is_not_printed_into_a_report() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env=clean_environment(),
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "{}\n"
