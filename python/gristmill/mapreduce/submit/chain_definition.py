"""What a chain of jobs is, as bytes: another process resumes it from these.

    Chain, Options ─cloudpickle─▶ bytes ─▶ sys.path first, then the jobs

As the definition of a job, which its workers get: the functions are as they were when the chain
began. The other process needs the Python, the Gristmill and the modules of the first one.
"""

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gristmill import _core, worker
from gristmill.errors import ours
from gristmill.mapreduce.definition import known_again, record_classes
from gristmill.mapreduce.pickling import dumps, loads
from gristmill.mapreduce.run_options import Options
from gristmill.mapreduce.source import script
from gristmill.mapreduce.submit.chain import Chain
from gristmill.mapreduce.submit.code import code_files
from gristmill.mapreduce.submit.preparing import bare, side_files, source_of
from gristmill.names import show_path

__all__ = ["definition_of", "opened", "refusal"]


@dataclass(frozen=True, kw_only=True)
class _Definition:
    """What is pickled."""

    payload: bytes
    """The pickled chain and its options."""
    python: str
    """Which Python."""
    program: str
    """Which Gristmill."""
    code: Mapping[str, str]
    """The SHA-256 of each file that the code of its jobs is in."""
    path: list[str]
    """Where modules are looked for."""
    classes: tuple[bytes, ...]
    """See `record_classes`."""


def definition_of(chain: Chain, options: Options) -> bytes:
    """Return what a chain is that is about to run here.

    Its functions can be pickled, and its side files are there.
    """
    placed = chain.placed()
    first, *rest = (replace(one, files=tuple(side_files(one).values())) for one in placed.jobs)
    first = replace(first, input=bare(source_of(first)))  # its own definition has what it reads
    here = replace(
        options.but(spill_dir=options.spill_dirs or None),
        source=options.source or script(),
        worker=worker.command(),
    )
    return dumps(
        _Definition(
            payload=dumps((replace(placed, jobs=(first, *rest)), here)),
            python=_python(),
            program=_core.VERSION,
            code={path: _sha256(path) for path in code_files()},
            path=[entry or str(Path.cwd()) for entry in sys.path],
            classes=record_classes(),
        )
    )


def opened(definition: bytes) -> tuple[Chain, Options]:
    """Return the chain and its options, in another process.

    Raises:
        ValueError: That has another Python or Gristmill, or a file of the code has changed.
        ImportError: A module is not there, or anything that loading a user's module raises.
    """
    found: _Definition = loads(definition)
    for what, began, this in (
        ("Python", found.python, _python()),
        ("Gristmill", found.program, _core.VERSION),
    ):
        if began != this:
            raise refusal(
                f"{what} {began} began it, and this is {this}",
                f"resume it with the {what} that began it, or run it anew",
            )
    for path, sha256 in found.code.items():
        if _sha256(path) != sha256:
            raise refusal(
                f"a file of its code has changed since it began: {show_path(path)}",
                "put back what was there, or run it anew",
            )
    known_again(found.path, found.classes)
    chain, options = loads(found.payload)
    return chain, options


def refusal(what: str, advice: str) -> ValueError:
    """Return the error of a chain that is not resumed."""
    return ours(
        ValueError(f"cannot resume a chain of jobs: {what}. What to do: {advice}."), "bad_input"
    )


def _python() -> str:
    return f"{sys.version.split()[0]} at {sys.executable}"


def _sha256(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""
