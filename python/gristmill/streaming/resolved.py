"""What a command line means: Hadoop's rules (StreamJob.setJobConf) turned into the engine's terms.

Whatever cannot be honoured is refused here, by name. Paths are not looked at yet, but for files to
ship: `inputs.expand` and the engine do that when the job begins.
"""

import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from gristmill.mapreduce.exception_notes import program
from gristmill.mapreduce.kinds import is_dict
from gristmill.names import quote
from gristmill.streaming import classes, first_line
from gristmill.streaming.failure_policy import FailurePolicy
from gristmill.streaming.formats import Formats
from gristmill.streaming.inputs import local_path, location, stored
from gristmill.streaming.parse import (
    Arguments,
    MisspeltError,
    WrongCommandError,
    split_command,
    split_commas,
)
from gristmill.streaming.properties import PROPERTIES, instead_of
from gristmill.streaming.shipped import copied_here
from gristmill.units import show_count

__all__ = ["ResolvedJob", "resolve"]

_REPORTER = "reporter:"
_FOR_SHELLS = ("|", "||", "&&", ";", "<", ">", ">>", "2>&1", "&")
_FIELD_DIGITS = 6
_PROTOCOLS = ("text", "rawbytes", "typedbytes", "keyonlytext")
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
    """What the engine's `task::streaming::Definition` reads."""
    request: dict[str, Any]
    """What the engine's `plan::streaming::SplitRequest` reads, without the files."""
    attempts: int
    max_failed_percent: dict[str, int]
    """How many percent of the tasks may fail, as the engine's `MapReduceSpec` reads it."""
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


class _Resolver(Formats, FailurePolicy):
    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self.remarks = list(arguments.remarks)
        self.shipped = dict[str, str]()
        self.links = set[str]()

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
        if not output.startswith("hdfs://"):
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

    def partitions(self) -> int:
        given = self.arguments.first("numReduceTasks")
        if given is not None:
            self.arguments.set("mapreduce.job.reduces", given)
        partitions = self.number("mapreduce.job.reduces", 1)
        if not 0 <= partitions < 1 << 31:
            raise WrongCommandError(f"a job cannot have {partitions} reduces")
        return 0 if self.arguments.first("reducer") == "NONE" else partitions

    # --- what is done to records ---

    def steps(self, input_format: str, partitions: int) -> dict[str, Any]:
        io = self.arguments.first("io")
        if io is not None:
            for name in ("map.input", "map.output", "reduce.input", "reduce.output"):
                self.arguments.set(f"stream.{name}", io)
        mapper, reducer = self.arguments.first("mapper"), self.arguments.first("reducer")
        is_text = input_format == "TextInputFormat"
        map_step = self.step(mapper, "-mapper", is_text=is_text, is_map=True)
        combine: Any = None
        combiner = self.arguments.first("combiner")
        if combiner is not None:
            combine = self.step(combiner, "-combiner", is_text=is_text, is_map=False)
        reduce_step: Any = "identity"
        if partitions > 0 and reducer is not None:
            if reducer.lower() == "aggregate":
                reduce_step = combine = "aggregate"
            else:
                reduce_step = self.step(reducer, "-reducer", is_text=is_text, is_map=False)
        map_in, map_out = self.protocol("map.input"), self.protocol("map.output")
        ignore = map_in == "text" and self.flag("stream.map.input.ignoreKey", default=is_text)
        if map_step == "identity" and partitions > 0 and reduce_step != "identity" and is_text:
            raise WrongCommandError(
                "without -mapper, keys are the lines' offsets, which a reducer cannot take "
                "(Hadoop fails at it"
                " too): use -mapper cat, or -inputformat KeyValueTextInputFormat"
            )
        return {
            "map": map_step,
            "map_streams": {
                "input": map_in,
                "input_separator": self.text("stream.map.input.field.separator", "\t"),
                "ignore_key": ignore,
                "output": map_out,
                "output_separator": self.text("stream.map.output.field.separator", "\t"),
                "key_fields": max(self.number("stream.num.map.output.key.fields", 1), 1),
            },
            "combine": combine if partitions > 0 else None,
            "reduce": reduce_step,
            "reduce_streams": {
                "input": self.protocol("reduce.input"),
                "input_separator": self.text("stream.reduce.input.field.separator", "\t"),
                "output": self.protocol("reduce.output"),
                "output_separator": self.text("stream.reduce.output.field.separator", "\t"),
                "key_fields": max(self.number("stream.num.reduce.output.key.fields", 1), 1),
            },
        }

    def protocol(self, stream: str) -> str:
        name = self.text(f"stream.{stream}", "text").lower()
        if name not in _PROTOCOLS:
            raise WrongCommandError(
                f"-io {name} is not supported; supported are {', '.join(_PROTOCOLS)}"
            )
        return name

    def step(self, command: str | None, option: str, *, is_text: bool, is_map: bool) -> Any:  # noqa: ANN401
        if command is None:
            return "identity"
        if classes.is_hadoops(command):
            return self.known_step(command, option, is_text=is_text, is_map=is_map)
        words = split_command(self.unqualified(command))
        if not words:
            raise WrongCommandError(f"{option} is an empty command")
        if classes.looks_like_one(command) and not self.is_program(command):
            raise _unsupported_class(option, command)
        for_shell = _meant_for_shell(command)
        if for_shell:
            self.remarks.append(
                f"{option} {command}: commands run without a shell, so {for_shell} is an"
                f" argument; if a shell is meant, use sh -c '...'"
            )
        return {"script": words}

    def is_program(self, word: str) -> bool:
        return word in self.links or Path(word).exists() or shutil.which(word) is not None

    def known_step(self, command: str, option: str, *, is_text: bool, is_map: bool) -> Any:  # noqa: ANN401
        side = "map" if is_map else "reduce"
        match classes.short_name(command):
            case "IdentityMapper" | "IdentityReducer":
                return "identity"
            case "InverseMapper" if is_map:
                return "inverse"
            case "ValueAggregatorReducer" | "ValueAggregatorCombiner" if not is_map:
                return "aggregate"
            case "FieldSelectionMapReduce":
                return {
                    "select": {
                        "spec": self.field_spec(side),
                        "separator": self.text("mapreduce.fieldsel.data.field.separator", "\t"),
                        "ignore_key": is_map and is_text,
                    }
                }
            case _:
                raise _unsupported_class(option, command)

    def field_spec(self, side: str) -> str:
        name = f"mapreduce.fieldsel.{side}.output.key.value.fields.spec"
        spec = self.text(name, "0-:")
        # Each number stands for a field of every record's key or value.
        if any(len(number) > _FIELD_DIGITS for number in re.findall("[0-9]+", spec)):
            raise WrongCommandError(
                f"{self.written(name)}={spec}: no record has so many fields; for all that there "
                "are, write N-"
            )
        return spec

    def unqualified(self, command: str) -> str:
        """A program that is shipped with -file is found by its name in the working directory."""
        program, space, rest = command.partition(" ")
        shipped = self.shipped.get(os.path.realpath(program))
        return command if shipped is None else f"{shipped}{space}{rest}"

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
        if skipping is not None and skipping["after"] >= self.attempts():
            self.remarks.append(
                f"no record is left out: that begins after {skipping['after']} attempts that "
                f"failed, and a task has {self.attempts()}; see mapreduce.map.maxattempts"
            )
        self.without_other_side()
        if self.arguments.has("debug"):
            self.remarks.append("-debug has no effect here: there is no jar to keep")

    def without_other_side(self) -> None:
        """Say of a number of attempts that is not the larger one that it does not count."""
        names = {f"mapreduce.{side}.maxattempts" for side in ("map", "reduce")}
        given = [name for name in sorted(names) if self.get(name) is not None]
        if len(given) == 1 and self.number(given[0], 4) < self.attempts():
            (other,) = names - set(given)
            self.remarks.append(
                f"{self.written(given[0])} has no effect alone: a task has {self.attempts()} "
                f"attempts, the larger one of it and {other}; set both"
            )

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


def _unsupported_class(option: str, name: str) -> WrongCommandError:
    there = classes.MAPPERS if option == "-mapper" else classes.REDUCERS
    instead = f"the classes supported are {', '.join(there)}"
    if classes.short_name(name) in classes.SUMS:
        instead = (
            "use -reducer aggregate, with a mapper that writes LongValueSum:KEY, a TAB and the "
            "number"
        )
    return WrongCommandError(f"{option} {name} is not supported: it is a Java class; {instead}")


def _meant_for_shell(command: str) -> str | None:
    """The first word that only a shell understands, outside of quotes."""
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "_", command)
    return next((word for word in bare.split(" ") if word in _FOR_SHELLS), None)


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
