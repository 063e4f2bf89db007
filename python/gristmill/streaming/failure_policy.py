"""What is done about tasks that fail: tried again, done without, or without some records."""

from typing import Any

from gristmill.streaming.formats import Settings
from gristmill.streaming.inputs import local_path
from gristmill.streaming.parse import WrongCommandError, split_command

__all__ = ["FailurePolicy"]

_RUNS_EACH = 100
"""Failures of a script in the search for bad records, for each attempt that a task has: a bad
record among a million takes 21 runs, of which half fail."""


class FailurePolicy(Settings):
    """How tasks may fail, in the engine's terms."""

    def attempts(self) -> tuple[int, int]:
        """Return how often a map is tried, and how often a reduce."""
        maps, reduces = (
            max(self.number(f"mapreduce.{side}.maxattempts", 4), 1) for side in ("map", "reduce")
        )
        return maps, reduces

    def speculative(self) -> dict[str, bool]:
        """Return whether slow maps, and reduces, may have a second attempt."""
        maps, reduces = (
            self.flag(f"mapreduce.{side}.speculative", default=True) for side in ("map", "reduce")
        )
        return {"speculative": maps, "reduce_speculative": reduces}

    def partitions(self) -> int:
        """Return how many reduces there are."""
        given = self.arguments.first("numReduceTasks")
        if given is not None:
            self.arguments.set("mapreduce.job.reduces", given)
        partitions = self.number("mapreduce.job.reduces", 1)
        if not 0 <= partitions < 1 << 31:
            raise WrongCommandError(f"a job cannot have {partitions} reduces")
        return 0 if self.arguments.first("reducer") == "NONE" else partitions

    def max_failed_percent(self) -> dict[str, int]:
        """Return how many percent of the tasks the job can be done without."""
        names = {side: f"mapreduce.{side}.failures.maxpercent" for side in ("map", "reduce")}
        percents = {side: max(self.number(name, 0), 0) for side, name in names.items()}
        return {f"{side}_failures_percent": percent for side, percent in percents.items()}

    def skipping(self) -> dict[str, Any] | None:
        """Return what `task::streaming::Skipping` reads; nothing where no record is left out."""
        records = max(self.number("mapreduce.map.skip.maxrecords", 0), 0)
        groups = max(self.number("mapreduce.reduce.skip.maxgroups", 0), 0)
        if records == groups == 0:
            return None
        return {
            "after": max(self.number("mapreduce.task.skip.start.attempts", 2), 0),
            "most_records": records,
            "most_groups": groups,
            "runs": _RUNS_EACH * max(self.attempts()),
            "folder": self.skip_folder(),
        }

    def debug_scripts(self) -> dict[str, Any]:
        """Return what `task::streaming::Debugging` reads, but for the properties."""
        found: dict[str, Any] = {"properties": []}
        for side in ("map", "reduce"):
            name = f"mapreduce.{side}.debug.script"
            option = f"{side}debug"
            given = self.arguments.first(option)
            if given is not None:
                self.arguments.set(name, given)
            command = self.get(name)
            words = None if command is None else split_command(command)
            if words == []:
                shown = self.written(name) if given is None else f"-{option}"
                raise WrongCommandError(f"{shown} is an empty command")
            found[side] = words
        return found

    def skip_folder(self) -> str | None:
        """Return where records that are left out are kept: in the output, unless it is absolute."""
        name = "mapreduce.job.skip.outdir"
        match self.get(name):
            case None:
                return "_logs/skip"
            case "none":
                return None
            case folder:
                return str(local_path(folder, self.written(name)).absolute())
