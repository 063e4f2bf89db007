"""`python -m gristmill`: the command line, where the `gristmill` program is not on the PATH."""

import sys

from gristmill.cli.main import program

if __name__ == "__main__":
    sys.exit(program())
