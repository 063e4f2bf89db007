"""What is done to records: scripts and classes of Hadoop, and how their streams are written.

    -mapper, -combiner, -reducer ──▶ {"script": words}, or what a class of Hadoop does
    -io, stream.*                ──▶ the protocol and the separators of each stream

A command runs without a shell, as in Hadoop; one that seems to mean a shell is remarked on.
"""

import os
import re
import shutil
from pathlib import Path
from typing import Any

from gristmill.streaming import classes
from gristmill.streaming.formats import Settings
from gristmill.streaming.parse import WrongCommandError, split_command

__all__ = ["Steps"]

_FOR_SHELLS = ("|", "||", "&&", ";", "<", ">", ">>", "2>&1", "&")
_FIELD_DIGITS = 6
_PROTOCOLS = ("text", "rawbytes", "typedbytes", "keyonlytext")


class Steps(Settings):
    """The steps of a job, in the engine's terms."""

    remarks: list[str]
    shipped: dict[str, str]
    """Names of files that -file ships, by where they lie."""
    links: set[str]
    """Names in a task's working directory."""

    def steps(self, input_format: str, partitions: int) -> dict[str, Any]:
        """Return what `StreamingDefinition` reads of map, combine and reduce."""
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
        """Return how a stream of a script is written: as text, or as Hadoop names it."""
        name = self.text(f"stream.{stream}", "text").lower()
        if name not in _PROTOCOLS:
            raise WrongCommandError(
                f"-io {name} is not supported; supported are {', '.join(_PROTOCOLS)}"
            )
        return name

    def step(self, command: str | None, option: str, *, is_text: bool, is_map: bool) -> Any:  # noqa: ANN401
        """Return a step: a script, or what a class of Hadoop does."""
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
        """Return whether a word names a program, here or among what is shipped."""
        return word in self.links or Path(word).exists() or shutil.which(word) is not None

    def known_step(self, command: str, option: str, *, is_text: bool, is_map: bool) -> Any:  # noqa: ANN401
        """Return what a class of Hadoop does."""
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
        """Return which fields a class that selects some takes."""
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
        """Return a command whose program, if -file ships it, is found by its name where it runs."""
        program, space, rest = command.partition(" ")
        shipped = self.shipped.get(os.path.realpath(program))
        return command if shipped is None else f"{shipped}{space}{rest}"


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
