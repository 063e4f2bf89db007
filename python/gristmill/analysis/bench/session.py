"""Goes through the rounds of a benchmark, and writes each run into its folder of results.

    prepare ──▶ for each turn: device's rate ─▶ for each step: cache ─▶ launch ─▶ runs.jsonl

What is there already is not run again, so a session that was broken off goes on where it was.
"""

import os
import re
import shutil
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

from gristmill import _core
from gristmill.analysis.bench import results
from gristmill.analysis.bench.bench_request import BenchRequest, Config, label, product_of
from gristmill.analysis.bench.cache import bring_about, files_of
from gristmill.analysis.bench.energy import joules_between, read_energy
from gristmill.analysis.bench.errors import BenchError, WrongOptionError
from gristmill.analysis.bench.launching import Ended, launch
from gristmill.analysis.bench.machine import SAME, cpu_times, device_of, machine, versions
from gristmill.analysis.bench.order import Turn, turns
from gristmill.analysis.bench.results import MACHINE, Measured, Results, only_session, read_results
from gristmill.analysis.bench.suites import suite_of
from gristmill.analysis.bench.suites.suite import Step, Suite, check_names
from gristmill.names import from_json, quote, to_json
from gristmill.store_options import with_store_options

__all__ = ["Session"]

Told = Callable[[str], None]
"""Is told in a line what has been done."""

_NOTHING_FOUND = 1
"""Exit code of `grep`."""

_RECORD_BYTES = 100

_WORKSPACE = "gristmill-bench-"

_NOT_KEPT = ("history", "report", "left_out", "notices")
"""Of a job's report: names of files, and what is long."""


@dataclass(frozen=True, slots=True)
class Session:
    """A benchmark that is run."""

    asked: BenchRequest
    directory: str
    """Where the data go: a folder, or a location in a store."""
    folder: Path
    """The folder of results."""
    told: Told

    def run(self) -> Results:
        """Run what is not there yet; return all of it.

        Raises:
            BenchError: A run failed, or the folder holds other results.
        """
        suite = suite_of(self.asked.suite)
        check_names(suite, list(self.asked.vary))
        vary = {**suite.vary(self.asked), **self.asked.vary}
        configs = product_of(vary)
        self.folder.mkdir(parents=True, exist_ok=True)
        with with_store_options(self.asked.store_options), only_session(self.folder):
            done = self._begun()
            _remove_old(self.folder)
            rounds = list(turns(configs, self.asked.warm_up, self.asked.repeat))
            left = [turn for turn in rounds if not self._is_done(suite, turn, done)]
            if left:
                self._run(suite, configs, left)
        return read_results(self.folder)

    def _begun(self) -> set[tuple[int, str, str]]:
        """The runs that are there; begins the folder if nothing is."""
        here, ours = machine(self._existing()), versions()
        if not (self.folder / MACHINE).exists():
            results.begin(self.folder, self.asked, here, ours)
            return set()
        found = read_results(self.folder)
        _check_same(
            self.folder,
            ("asked for", found.asked.to_json(), self.asked.to_json(), None),
            ("on the machine", found.machine, here, SAME),
            ("by", found.versions, ours, ("gristmill",)),
        )
        if self.asked.repeat > found.asked.repeat:
            results.begin(self.folder, self.asked, found.machine, found.versions)
        if found.runs:
            self.told(f"{len(found.runs)} runs are in {self.folder} already")
        return {(run.round, label(run.config), run.step) for run in found.runs}

    def _existing(self) -> str:
        """The directory, or the one above it in which it will be made."""
        if _core.is_remote(self.directory):
            return self.directory
        above = Path(self.directory).absolute()
        return str(next(one for one in (above, *above.parents) if one.exists()))

    def _is_done(self, suite: Suite, turn: Turn, done: set[tuple[int, str, str]]) -> bool:
        steps = suite.steps(self.asked, turn.config, "")
        return all((turn.round, label(turn.config), step.name) in done for step in steps)

    def _run(self, suite: Suite, configs: Sequence[Config], left: Sequence[Turn]) -> None:
        with self._workspace() as place:
            prepared: set[str] = set()
            for config in configs:
                for step in suite.prepare(self.asked, config, place):
                    if step.makes not in prepared:
                        prepared.add(step.makes)
                        self._prepare(step, config)
            for turn in left:
                steps = suite.steps(self.asked, turn.config, place)
                self._turn(suite, turn, steps, device_of(place, self._data_bytes(steps)))

    def _data_bytes(self, steps: Sequence[Step]) -> int | None:
        """About how large the data of a round are; `None` of a job whose inputs are not known."""
        found = sum(file.stat().st_size for step in steps for file in files_of(step.reads))
        return max(self.asked.rows * _RECORD_BYTES, found) or None

    @contextmanager
    def _workspace(self) -> Generator[str]:
        """A folder of this session alone below the directory; removed at its end."""
        place = f"{self.directory.rstrip('/')}/{_WORKSPACE}{token_hex(4)}"
        if not _core.is_remote(place):
            Path(place).mkdir(parents=True)
        try:
            yield place
        except BaseException:
            with suppress(OSError, ValueError):  # what failed first is what is told
                _remove(place)
            raise
        _remove(place)

    def _prepare(self, step: Step, config: Config) -> None:
        self.told(f"prepare: {step.name}")
        if step.call is not None:
            step.call()
            return
        _report_of(step, launch(_command(step, config)))

    def _turn(
        self, suite: Suite, turn: Turn, steps: Sequence[Step], device: dict[str, float] | None
    ) -> None:
        checksums: set[str] = set()
        for step in steps:
            run = self._step(turn, step, device)
            results.append(self.folder, run)
            checksums.add(run.report.get("checksum", ""))
            self.told(_line(turn, run))
        if suite.proves and len(checksums) > 1:
            raise BenchError(
                f"cannot count the runs of round {turn.round}: the checksums of"
                f" {', '.join(step.name for step in steps)} differ: {', '.join(sorted(checksums))}."
                " What to do: please report this as a defect of Gristmill."
            )
        for step in steps:
            if step.makes:
                _remove(step.makes)

    def _step(self, turn: Turn, step: Step, device: dict[str, float] | None) -> Measured:
        if step.makes:
            _remove(step.makes)
        bring_about(self.asked.cache, step.reads)
        began, load = datetime.now(UTC), os.getloadavg()[0]
        cpu, energy = cpu_times(), read_energy()
        ended = launch(_command(step, turn.config))
        joules = joules_between(energy, read_energy())
        report = _report_of(step, ended)
        return Measured(
            round=turn.round,
            config=turn.config,
            step=step.name,
            warm_up=turn.warm_up,
            began=began.isoformat(timespec="milliseconds"),
            wall_s=ended.wall_s,
            user_s=ended.user_s,
            sys_s=ended.sys_s,
            peak_bytes=ended.peak_bytes,
            own_cpu_s=ended.own_cpu_s,
            load={"before": load, **_others(cpu, cpu_times(), ended)},
            device=device,
            joules=joules,
            report={name: report[name] for name in report if name not in _NOT_KEPT},
        )


def _command(step: Step, config: Config) -> list[str]:
    return [config.get("python", sys.executable), "-m", "gristmill", *step.words, "--json"]


def _remove_old(folder: Path) -> None:
    """Remove data of sessions that were killed; who has the lock knows that nobody uses them."""
    for old in folder.glob(f"{_WORKSPACE}*"):
        if re.fullmatch("[0-9a-f]{8}", old.name.removeprefix(_WORKSPACE)) and old.is_dir():
            shutil.rmtree(old, ignore_errors=True)  # what is left is in nobody's way


def _remove(path: str) -> None:
    if _core.is_remote(path):
        _core.remove_whole(path)
    elif Path(path).is_dir():
        shutil.rmtree(path)
    else:
        Path(path).unlink(missing_ok=True)


def _report_of(step: Step, ended: Ended) -> dict[str, Any]:
    if ended.status == 0 or (step.searches and ended.status == _NOTHING_FOUND):
        try:
            return _searched(ended) if step.searches else dict(from_json(ended.stdout))
        except (ValueError, KeyError, IndexError):
            pass
    how = f"exit code {ended.status}" if ended.status >= 0 else f"signal {-ended.status}"
    said = _what_failed(ended.stderr)
    advice = "" if "What to do: " in said else " What to do: run that command alone."
    command = " ".join(map(quote, step.words))
    raise BenchError(
        f"cannot measure {step.name}: `gristmill {command}` ended with {how}: {said}{advice}"
    )


def _what_failed(stderr: str) -> str:
    """The line in which the program says what failed: after it come traceback and advice."""
    lines = stderr.strip().splitlines()
    named = [line for line in lines if line.startswith("gristmill ")]
    return (named or lines or ["it wrote nothing to stderr."])[-1]


def _searched(ended: Ended) -> dict[str, Any]:
    """The summary of `grep` as the report of a job has it."""
    said = from_json(ended.stderr.splitlines()[-1])
    return {"input_bytes": said["bytes"], "parts": said["files"], "records": said["lines"]}


def _others(before: dict[str, float], after: dict[str, float], ended: Ended) -> dict[str, float]:
    """CPU seconds of other programs, and of the host, while a run took its time."""
    if not before or not after:
        return {}
    busy = after["busy_s"] - before["busy_s"] - ended.user_s - ended.sys_s
    return {
        "others_s": round(max(busy, 0.0), 3),
        "steal_s": round(after["steal_s"] - before["steal_s"], 3),
    }


_Both = tuple[str, Mapping[str, Any], Mapping[str, Any], Sequence[str] | None]


def _check_same(folder: Path, *pairs: _Both) -> None:
    """Refuse to add to results that were made in another way; only `repeat` may differ."""
    differ = [
        f"{what}: {name} was {was.get(name)!r}, is {now.get(name)!r}"
        for what, was, now, names in pairs
        for name in (now if names is None else names)
        if name != "repeat" and to_json(was.get(name)) != to_json(now.get(name))
    ]
    if differ:
        raise WrongOptionError(
            f"cannot add to the results in {folder}: they were made in another way"
            f" ({'; '.join(differ)})."
            " What to do: name another directory with -o, or do it as before."
        )


def _line(turn: Turn, run: Measured) -> str:
    where = f" {label(turn.config)}" if turn.config else ""
    kind = "warm-up" if turn.warm_up else f"round {turn.round}"
    return f"{kind}{where}: {run.step} {run.wall_s:.3f} s"
