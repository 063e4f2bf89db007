"""What a command line means: Hadoop's rules (StreamJob.setJobConf) turned into the engine's terms.

Whatever cannot be honoured is refused here, by name. Paths are not looked at yet, but for files to
ship: `inputs.expand` and the engine do that when the job begins.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from gristmill import _core
from gristmill.mapreduce.kinds import is_dict
from gristmill.mapreduce.results.exception_notes import program
from gristmill.names import quote
from gristmill.streaming import classes, first_line
from gristmill.streaming.failure_policy import FailurePolicy
from gristmill.streaming.formats import Formats
from gristmill.streaming.inputs import local_path, location, stored
from gristmill.streaming.parse import (
    Arguments,
    MisspeltError,
    WrongCommandError,
    split_commas,
)
from gristmill.streaming.properties import PROPERTIES, instead_of
from gristmill.streaming.shipped import copied_here
from gristmill.streaming.steps import Steps
from gristmill.units import show_count

__all__ = ["ResolvedJob", "resolve"]

_REPORTER = "reporter:"
_KNOWN = {known.name: known for known in PROPERTIES}
_REFUSED = (
    "stream.io.identifier.resolver.class",
    "mapreduce.input.pathFilter.class",
)


@dataclass
class ResolvedJob:
    """A job, as it was understood."""

    arguments: Arguments
    inputs: list[str]
    output: str
    partitions: int
    definition: dict[str, Any]
    """What the engine's `StreamingDefinition` reads."""
    request: dict[str, Any]
    """What the engine's `plan::streaming::SplitRequest` reads, without the files."""
    attempts: tuple[int, int]
    """Of a map, and of a reduce."""
    max_failed_percent: dict[str, int]
    """How many percent of the tasks may fail, as the engine's `MapReduceSpec` reads it."""
    speculative: dict[str, bool]
    """Whether slow tasks may have a second attempt, likewise."""
    name: str
    recursive: bool
    ignore_folders: bool
    remarks: list[str] = field(default_factory=list[str])
    blocks: dict[str, int] = field(default_factory=dict[str, int])
    """How HDFS is to keep the output: options of the job that properties give."""
    compress_runs: str = ""
    """How runs are compressed, where properties say so: another such option."""


def resolve(arguments: Arguments) -> ResolvedJob:
    """Say what a command line means.

    Raises:
        WrongCommandError: An option or property cannot be honoured, or is missing.
    """
    return _Resolver(arguments).resolve()


class _Resolver(Formats, FailurePolicy, Steps):
    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self.remarks = list(arguments.remarks)
        self.shipped = {}
        self.links = set()

    # --- the whole ---

    def resolve(self) -> ResolvedJob:
        arguments = self.arguments
        self.refuse()
        inputs = [arguments.substituted(text) for text in arguments.options.get("input", [])]
        if not inputs:
            raise MisspeltError("-input is missing: it names the files to read")
        output = arguments.first("output")
        if not output:
            raise MisspeltError("-output is missing: it names the directory to make")
        links, archives = self.files()
        self.links = {name for name, _ in links}
        partitions = self.partitions()
        input_format, request = self.input_format()
        definition = self.steps(input_format, partitions)
        definition |= self.order(definition)
        definition |= {
            "format": request["format"],
            "output": self.output_format(),
            "links": links,
            "archives": archives,
            "variables": self.variables(),
            "search": os.environ.get("PATH", "/usr/bin:/bin"),
            "timeout_ms": max(self.number("mapreduce.task.timeout", 600_000), 0),
            "exit_matters": self.flag("stream.non.zero.exit.is.failure", default=True),
            "reporter_prefix": self.text("stream.stderr.reporter.prefix", _REPORTER),
            "most_unique": max(self.number("aggregate.max.num.unique.values", 0), 0),
            "again": self.again(),
            "truncate": self.truncate(),
            "skipping": self.skipping(),
            "debug": self.debug_scripts(),
        }
        compress_runs, remark = self.compressed_runs()
        if remark and not arguments.has("compress-runs"):
            self.remarks.append(remark)
        self.without_effect()
        self.combined_keys(definition)
        self.remarks += first_line.remarks(definition)
        target = location(arguments.substituted(output), "-output").rstrip("/") or "/"
        return ResolvedJob(
            arguments=arguments,
            inputs=inputs,
            output=target,
            partitions=partitions,
            definition=definition,
            request=request,
            attempts=self.attempts(),
            max_failed_percent=self.max_failed_percent(),
            speculative=self.speculative(),
            name=self.text("mapreduce.job.name", ""),
            recursive=self.flag(
                "mapreduce.input.fileinputformat.input.dir.recursive", default=False
            ),
            ignore_folders=self.flag(
                "mapreduce.input.fileinputformat.input.dir.nonrecursive.ignore.subdirs",
                default=False,
            ),
            remarks=self.remarks,
            blocks=self.blocks(target),
            compress_runs=arguments.last("compress-runs") or compress_runs,
        )

    def blocks(self, output: str) -> dict[str, int]:
        if not _core.has_blocks(output):
            return {}
        given = {"replication": "dfs.replication", "block_size": "dfs.blocksize"}
        return {
            option: self.number(name, 0)
            for option, name in given.items()
            if self.get(name) is not None
        }

    def refuse(self) -> None:
        arguments = self.arguments
        if arguments.has("libjars"):
            raise WrongCommandError(
                "-libjars is not supported: there is no Java here to run classes of jars"
            )
        jobtracker = arguments.first("jt")
        if jobtracker not in (None, "local"):
            raise WrongCommandError(
                f"-jt {jobtracker} is not supported: jobs run here, which is `local`"
            )
        system = self.get("fs.defaultFS")
        if system is not None and system not in ("local", "file:///", "file:"):
            raise WrongCommandError(
                f"-fs {system} is not supported: paths without a scheme are files of this "
                "machine; name hdfs://HOST:PORT/PATH in -input and -output"
            )
        for name in _REFUSED:
            if self.get(name) is not None:
                raise WrongCommandError(
                    f"{self.written(name)} is not supported: {_KNOWN[name].what}"
                )

    # --- order and partitions ---

    def order(self, steps: dict[str, Any]) -> dict[str, Any]:
        options = self.text("mapreduce.partition.keycomparator.options", "")
        by_fields = self.comparator("mapreduce.job.output.key.comparator.class")
        self.comparator("mapreduce.job.output.group.comparator.class")  # known, or refused
        if by_fields and steps["map_streams"]["output"] not in ("text", "keyonlytext"):
            raise WrongCommandError(
                "KeyFieldBasedComparator is not supported with keys that are not text: see -io"
            )
        return {
            "comparator": options if by_fields else None,
            "key_separator": self.text("mapreduce.map.output.key.field.separator", "\t"),
            "partitioner": self.partitioner(),
        }

    def comparator(self, name: str) -> bool:
        given = self.get(name)
        if given is None or classes.short_name(given) in ("Comparator", "Text$Comparator"):
            return False
        if classes.short_name(given) != "KeyFieldBasedComparator":
            raise WrongCommandError(
                f"{self.written(name)}={given} is not supported; KeyFieldBasedComparator is "
                f"known here"
            )
        return True

    def partitioner(self) -> Any:  # noqa: ANN401 - JSON
        given = self.arguments.first("partitioner") or self.get("mapred.partitioner.class")
        match classes.short_name(given or "HashPartitioner"):
            case "HashPartitioner":
                return "hash"
            case "KeyFieldBasedPartitioner":
                if self.get("num.key.fields.for.partition") is not None:
                    return {"first_fields": max(self.number("num.key.fields.for.partition", 0), 0)}
                return {"fields": self.text("mapreduce.partition.keypartitioner.options", "")}
            case "BinaryPartitioner":
                side = "mapreduce.partition.binarypartitioner"
                return {
                    "binary": [
                        self.number(f"{side}.left.offset", 0),
                        self.number(f"{side}.right.offset", -1),
                    ]
                }
            case "TotalOrderPartitioner":
                path = self.text("mapreduce.totalorderpartitioner.path", "_partition.lst")
                found = local_path(path, self.written("mapreduce.totalorderpartitioner.path"))
                if not found.is_file():
                    raise WrongCommandError(
                        f"TotalOrderPartitioner: there is no partition file {found}"
                    )
                return {"total": str(found.absolute())}
            case _:
                known = ", ".join(classes.PARTITIONERS)
                raise WrongCommandError(
                    f"-partitioner {given} is not supported; supported are {known}"
                )

    # --- files, variables ---

    def files(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        links, archives = list[tuple[str, str]](), list[tuple[str, str]]()
        options = self.arguments.options
        for value in options.get("file", []):
            path = self.there(value, "-file")
            links.append((path.name, str(path)))
            self.shipped[os.path.realpath(path)] = path.name
        for name in ("files", "cacheFile", "archives", "cacheArchive"):
            found = archives if "rchive" in name else links
            for value in options.get(name, []):
                for item in split_commas(value):
                    text, _, link = item.partition("#")
                    path = self.there(text, f"-{name}")
                    found.append((link or path.name, str(path)))
        _check_names(links, archives)
        return links, archives

    def there(self, text: str, option: str) -> Path:
        remote = stored(text)
        if remote is not None:
            return copied_here(remote, option)
        path = local_path(text, option).absolute()
        if not path.exists():
            raise WrongCommandError(f"{option} {text}: there is no such file")
        if not os.access(path, os.R_OK):
            raise WrongCommandError(f"{option} {text}: the file is not readable")
        return path

    def variables(self) -> list[tuple[str, str]]:
        found = list[tuple[str, str]]()
        for value in self.arguments.options.get("cmdenv", []):
            # As Hadoop: it hands them on in one text, separated by spaces.
            for pair in self.arguments.substituted(value).split(" "):
                name, equals, setting = pair.partition("=")
                if equals and name:
                    found.append((name, setting))
                elif pair:
                    missing = "name before its =" if equals else "= in it"
                    self.remarks.append(f"-cmdenv {pair} sets nothing: there is no {missing}")
        return found

    def truncate(self) -> int | None:
        limit = self.number("stream.jobconf.truncate.limit", -1)
        return limit if limit >= 0 else None

    def without_effect(self) -> None:
        for name in self.arguments.properties:
            known = _KNOWN.get(name)
            instead = instead_of(name) if known is None else None
            if known is None and (
                instead
                or name.startswith(("mapred", "io.", "dfs.", "fs.", "yarn.", "hadoop.", "stream."))
            ):
                more = f": {instead}" if instead else ""
                self.remarks.append(
                    f"{self.written(name)} has no effect here; scripts see it as a variable{more}"
                )
            elif known is not None and not known.effect:
                reason = known.what.removeprefix("Without effect").lstrip(",: ")
                self.remarks.append(f"{self.written(name)} has no effect here: {reason}")
        skipping = self.skipping()
        most = max(self.attempts())
        if skipping is not None and skipping["after"] >= most:
            self.remarks.append(
                f"no record is left out: that begins after {skipping['after']} attempts that "
                f"failed, and a task has {most}; see mapreduce.map.maxattempts"
            )
        if self.arguments.has("debug"):
            self.remarks.append("-debug has no effect here: there is no jar to keep")

    def combined_keys(self, definition: dict[str, Any]) -> None:
        """Say of a combiner that cuts its keys otherwise than the mapper does."""
        steps = [definition[name] for name in ("map", "combine")]
        scripts = [is_dict(step) and "script" in step for step in steps]
        given = definition["map_streams"]["key_fields"]
        made = definition["reduce_streams"]["key_fields"]
        protocols = {definition[f"{side}_streams"]["output"] for side in ("map", "reduce")}
        if all(scripts) and given != made and protocols == {"text"}:
            self.remarks.append(
                f"the combiner's output has keys of {show_count(made, 'field')}, the mapper's of "
                f"{given}, so equal keys may come apart: set -D "
                f"stream.num.reduce.output.key.fields={given}"
            )

    def again(self) -> str:
        """The command that runs a split alone, from whatever folder; the split's number follows."""
        words = [word for word in self.arguments.words if word not in ("-background", "--explain")]
        command = " ".join(map(quote, ["streaming", *words, "--only-split"]))
        return f"cd {quote(str(Path.cwd()))} && {program()} {command}"


def _check_names(links: list[tuple[str, str]], archives: list[tuple[str, str]]) -> None:
    """Refuse names in a task's working directory that stand for two things."""
    advice = "give each a name of its own, as in a/x#x1,b/x#x2"
    taken = dict[str, str]()
    for kind, shipped in (("file ", links), ("archive ", archives)):
        for name, path in shipped:
            if PurePath(name).parts[:1] == ("tmp",):
                raise WrongCommandError(
                    f"{path} cannot be `{name}` in a task's working directory, where tmp is the "
                    "directory of temporary files: give it another name, as in tmp#mine"
                )
            # The same file named twice is one file.
            if taken.setdefault(name, kind + os.path.realpath(path)) != kind + os.path.realpath(
                path
            ):
                raise WrongCommandError(f"`{name}` is the name of two shipped files: {advice}")
    for name in taken:
        above = next((str(one) for one in PurePath(name).parents if str(one) in taken), None)
        if above is not None:
            raise WrongCommandError(f"`{above}` cannot be a file and hold `{name}`: {advice}")
