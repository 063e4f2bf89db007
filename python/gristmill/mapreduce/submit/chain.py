"""A chain of jobs: where each reads and writes, and what is kept until all are done.

    Job.then(…).then(…) ──▶ Chain: jobs with inputs and outputs ──▶ kept: its folder, while it runs

The folder has the outputs of jobs without `output=`, which the next job reads, and the definition
by which another process resumes the chain (history/chains.py says how it looks).

Decision: docs/decisions/chains.md.
"""

import hashlib
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gristmill import _core
from gristmill.history import jobs_folder
from gristmill.history.chains import BEGUN, DEFINITION, is_chain_folder, locked
from gristmill.job import new_job_id
from gristmill.locations import absolute, is_remote, workplace
from gristmill.mapreduce.formats.format import Format, Input, Output
from gristmill.mapreduce.formats.keyvalue import kv
from gristmill.mapreduce.run_options import Options
from gristmill.mapreduce.spec import Spec
from gristmill.names import from_json, to_json
from gristmill.report import JobReport

__all__ = ["Chain", "ChainRecord", "is_dead", "kept", "removed"]


@dataclass(frozen=True, slots=True)
class Chain:
    """Jobs, each with an output, and with an input that is no job."""

    jobs: tuple[Spec, ...]
    kept: tuple[bool, ...]
    """Whether the output of each is kept for the next job alone."""
    folder: Path

    @classmethod
    def of(cls, job: Spec, options: Options) -> "Chain":
        """Return the chain that ends with a job, which may be its only one.

        Raises:
            ValueError: The job has no output; one before it has named outputs, and no other.
        """
        if job.output is None:
            raise ValueError(
                f"cannot run {job.name}: it has no output. What to do: give output=, such as"
                ' gm.tsv("counts/").'
            )
        last, given = job.output.folder, job.chain()
        on_nodes = options.get("on") == "ray"  # which see no disk of ours, and spill on their own
        here = [] if on_nodes else options.spill_dirs
        folder = workplace(last, here) / f".{Path(last).name}.{new_job_id()}"
        beside = str(folder)
        if is_remote(last) and on_nodes:
            beside = f"{last.rstrip('/').rpartition('/')[0]}/{folder.name}"
        outputs = [
            kv(f"{beside}/{number}") if one.output is None else _normal(one.output)
            for number, one in enumerate(given)
        ]
        for one in given:
            if one.output is None and one.outputs:
                named = ", ".join(one.outputs)
                raise ValueError(
                    f"cannot run {one.name}: it has no output that stays, and its named outputs"
                    f" ({named}) are files of that. What to do: give it output=, such as"
                    ' gm.kv("between/").'
                )
        kept = tuple(one.output is None for one in given)
        return cls(_linked(given, outputs), kept, folder)

    def placed(self) -> "Chain":
        """Return the chain for a process in another directory."""
        outputs: list[Output] = []
        for one in self.jobs:
            output = one.output
            assert output is not None
            if isinstance(output, Format):
                output = replace(output, paths=(absolute(output.folder),))
            outputs.append(output)
        return replace(self, jobs=_linked(self.jobs, outputs))


def _normal(output: Output) -> Output:
    """An output by a path without `..`, so that it is read where it was written."""
    if isinstance(output, Format) and "/../" in output.folder:
        return replace(output, paths=(absolute(output.folder),))
    return output


def _linked(jobs: "list[Spec] | tuple[Spec, ...]", outputs: list[Output]) -> tuple[Spec, ...]:
    """The jobs with these outputs, each of which the next one reads."""
    sources: list[Any] = [jobs[0].input, *(output.as_written() for output in outputs)]
    linked: list[Spec] = []
    for one, source, output in zip(jobs, sources, outputs, strict=False):
        assert isinstance(source, (Input, Spec))
        linked.append(replace(one, input=source, output=output))
    return tuple(linked)


@dataclass(slots=True)
class ChainRecord:
    """Which jobs of a chain began, and what became of them."""

    folder: Path
    names: dict[int, str] = field(default_factory=dict[int, str])
    """Of those that began, by their numbers from 0."""
    reports: dict[int, JobReport] = field(default_factory=dict[int, JobReport])
    """Of those that ended."""
    place: dict[str, Any] | None = None
    """What the histories of its jobs say of it; nothing where no other process could go on."""

    @classmethod
    def read(cls, folder: Path, place: dict[str, Any]) -> "ChainRecord":
        """Return what a dead process has recorded; the rest of a line that it began goes."""
        found = cls(folder, place=place)
        with suppress(FileNotFoundError), (folder / BEGUN).open("rb+") as file:
            text = file.read()
            whole = text.rfind(b"\n") + 1
            file.truncate(whole)
            for line in text[:whole].splitlines():
                found._take(from_json(line))
        return found

    def _take(self, said: dict[str, Any]) -> None:
        if "job_id" in said:
            self.names[said["number"]] = said["job_id"]
        else:
            self.reports[said["number"]] = JobReport.from_json(said["report"])

    def begins(self, number: int, job_id: str) -> None:
        """Record that a job begins."""
        self._put({"number": number, "job_id": job_id})

    def ended(self, number: int, report: JobReport) -> None:
        """Record the report of a job that succeeded."""
        self._put({"number": number, "report": report.to_json()})

    def _put(self, said: dict[str, Any]) -> None:
        if self.place is not None:
            with (self.folder / BEGUN).open("a", encoding="utf-8") as file:
                file.write(f"{to_json(said)}\n")
        self._take(said)


def is_dead(job_id: str) -> bool:
    """Whether a job was killed that can be resumed."""
    from gristmill.history.brief import load_brief

    try:
        return load_brief(jobs_folder() / job_id).resumable
    except (OSError, ValueError):
        return False


@contextmanager
def kept(chain: Chain, definition: bytes | None) -> Generator[ChainRecord]:
    """Have the folder of a chain while it runs; of a single job there is none.

    Args:
        chain: The chain.
        definition: What it is, if another process may go on with it.
    """
    if len(chain.jobs) == 1:
        yield ChainRecord(chain.folder)
        return
    _clear_dead(chain)
    chain.folder.mkdir(exist_ok=True)  # as the directory above the outputs in it
    try:
        if definition is None:
            yield ChainRecord(chain.folder)
            return
        made = chain.folder / f".{DEFINITION}"
        with os.fdopen(os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            locked(file)
            file.write(definition)
            file.flush()
            made.rename(chain.folder / DEFINITION)  # nobody sees it who could lock it
            sha256 = hashlib.sha256(definition).hexdigest()
            yield ChainRecord(chain.folder, place={"folder": str(chain.folder), "sha256": sha256})
    finally:
        removed(chain)


def _clear_dead(chain: Chain) -> None:
    """Remove the folders of dead chains with the same output, as a job does with those of jobs."""
    begin = chain.folder.name.rpartition(".job_")[0]
    found: list[Path] = []
    with suppress(OSError):  # a directory that may be written, and not be read
        found = [path for path in chain.folder.parent.iterdir() if is_chain_folder(path)]
    for path in found:
        if path.name.rpartition(".job_")[0] == begin and not path.is_symlink():
            with suppress(OSError), (path / DEFINITION).open("rb") as file:
                if os.fstat(file.fileno()).st_uid == os.geteuid() and locked(file):
                    shutil.rmtree(path)


def removed(chain: Chain) -> None:
    """Remove the folder of a chain, and what its jobs kept for the next one in stores."""
    for one, is_kept in zip(chain.jobs, chain.kept, strict=True):
        if is_kept and one.output is not None and is_remote(one.output.folder):
            with suppress(OSError):
                _core.remove_whole(one.output.folder)
    shutil.rmtree(chain.folder, ignore_errors=True)
