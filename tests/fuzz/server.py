"""Runs the program many times in a second: a process that has imported it forks for each run.

    a line of JSON on stdin: words, folder, files for the three streams  ──▶  fork ──▶ `main(words)`
    a line of JSON on stdout: the exit code, 128 + n for a signal

A fork has no threads of others: the engine starts its own. What is imported here is what a command
imports; what a command does is in the fork alone.
"""

import json
import os
import sys
from importlib import import_module
from typing import Any

from gristmill.cli.main import main
from gristmill.options import commands

IMPORTED = (
    "generated",
    "gnu.gnu_grep",
    "gnu.gnu_sort",
    "commands.grep",
    "program",
    "runner",
    "render.summary",
)
"""Modules of gristmill.cli that a command imports when it runs."""


def serve() -> None:
    for name in IMPORTED:
        import_module(f"gristmill.cli.{name}")
    commands()
    for line in sys.stdin:
        print(json.dumps(ran(json.loads(line))), flush=True)


def ran(asked: dict[str, Any]) -> int:
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.chdir(asked["folder"])
            feed(asked)
            for name, number in (("stdout", 1), ("stderr", 2)):
                given = os.open(asked[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                os.dup2(given, number)
                os.close(given)
            code = main(asked["words"])
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def feed(asked: dict[str, Any]) -> None:
    """Lead the file to standard input, itself or through a pipe, in pieces of any size."""
    given = os.open(asked["stdin"], os.O_RDONLY)
    if not asked["pieces"]:
        os.dup2(given, 0)
        os.close(given)
        return
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            os.close(reading)
            at = 0
            while piece := os.read(given, asked["pieces"][at % len(asked["pieces"])]):
                os.write(writing, piece)
                at += 1
        finally:
            os._exit(0)  # also where nobody reads on
    for number in (given, writing):
        os.close(number)
    os.dup2(reading, 0)
    os.close(reading)


if __name__ == "__main__":
    serve()
