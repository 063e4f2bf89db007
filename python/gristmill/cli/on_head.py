"""A submitted command on the head of its cluster: the same program, and what its follower is told.

    home JSON    at the beginning: the machine, and where its histories are
    at JSON      progress, in place of a bar
    key BASE64   by which the follower seals the variables of stores, if there are any

The lines go to a descriptor of their own: gristmill.cluster.submission.on_head puts them into the
log, which the follower reads (cli/on_cluster/submitted.py).
"""

import json
import os
import sys

from gristmill.cli.failures import FAILED, fail
from gristmill.cluster.submission.secrets import received
from gristmill.errors import is_of_system
from gristmill.history.home import jobs_folder
from gristmill.names import show_path, show_text
from gristmill.terminal import progress

__all__ = ["main"]


def main() -> int:
    """Run the command line that follows the number of a descriptor, and what it waits for.

    Returns:
        Its exit code.

    Example:
        >>> callable(main)
        True
    """
    told = os.fdopen(int(sys.argv[1]), "w", encoding="utf-8")
    awaits_variables = sys.argv[2] == "variables"
    sys.argv = ["gristmill", *sys.argv[3:]]
    home = {"host": show_text(os.uname().nodename), "folder": show_path(jobs_folder())}
    print("home", json.dumps(home), file=told, flush=True)
    progress.send_to(told)
    from gristmill.cli.main import main as program

    if not awaits_variables:
        return program()
    try:
        with received(lambda key: print("key", key, file=told, flush=True)):
            return program()
    except (ValueError, OSError) as error:
        if is_of_system(error):
            raise
        fail(sys.argv[1], str(error))
        return FAILED
