"""What the options and properties of a job say about its input and output formats."""

import re
from typing import Any

from gristmill.streaming import classes
from gristmill.streaming.parse import Arguments, WrongCommandError

__all__ = ["Formats", "Settings"]

_LONG = 1 << 63
_SEQUENCE_SPLIT_BYTES = 100 << 10
"""Least bytes of a split of sequence files: Hadoop's SequenceFile.SYNC_INTERVAL."""


class Settings:
    """The properties of a command line, typed."""

    def __init__(self, arguments: Arguments) -> None:
        self.arguments = arguments

    def get(self, name: str, default: str | None = None) -> str | None:
        """Return a property as it was set, with what its placeholders stand for."""
        value = self.arguments.properties.get(name)
        return default if value is None else self.arguments.substituted(value)

    def text(self, name: str, default: str) -> str:
        """Return a property, or what it is by default."""
        value = self.get(name)
        return default if value is None else value

    def number(self, name: str, default: int) -> int:
        """Return a whole number, which may end with K, M, G or T, or begin with 0x."""
        text = self.get(name)
        if text is None:
            return default
        found = re.fullmatch(
            r"\s*(?:(-?0x[0-9a-f]+)|([+-]?\d+)([kmgt]?))\s*", text, re.IGNORECASE | re.ASCII
        )
        if found is None:
            raise WrongCommandError(f"{self.written(name)}={text} is not a whole number")
        hexadecimal, decimal, unit = found.groups(default="")
        number = (
            int(hexadecimal, 16)
            if hexadecimal
            else int(decimal) << {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}[unit.lower()]
        )
        if not -_LONG <= number < _LONG:
            raise WrongCommandError(f"{self.written(name)}={text} is beyond 64 bits")
        return number

    def flag(self, name: str, *, default: bool) -> bool:
        """Return whether a property is `true`; what is neither true nor false is the default."""
        text = (self.get(name) or "").strip().lower()
        return {"true": True, "false": False}.get(text, default)

    def written(self, name: str) -> str:
        """Return a property as the user named it."""
        return f"-D {self.arguments.written.get(name, name)}"


class Formats(Settings):
    """The formats of a job, in the engine's terms."""

    def input_format(self) -> tuple[str, dict[str, Any]]:
        """Return the input format's name, and how the engine is to split and read."""
        given = self.arguments.first("inputformat")
        reader = self.arguments.first("inputreader")
        if reader is not None:
            name, *settings = reader.split(",")
            self.arguments.set("stream.recordreader.class", name)
            for setting in settings:
                key, _, value = setting.partition("=")
                self.arguments.set(f"stream.recordreader.{key}", value)
        reader_class = self.get("stream.recordreader.class")
        name = classes.short_name(given) if given else ""
        if not given:
            name = "TextInputFormat" if reader is None else "StreamInputFormat"
        elif reader is not None and name in ("KeyValueTextInputFormat", "SequenceFileInputFormat"):
            name = "StreamInputFormat"  # so Hadoop: a reader overrides these two
        if name not in classes.INPUT_FORMATS:
            known = ", ".join(classes.INPUT_FORMATS)
            raise WrongCommandError(f"-inputformat {given} is not supported; supported are {known}")
        least = _SEQUENCE_SPLIT_BYTES if name.startswith("SequenceFile") else 1
        request: dict[str, Any] = {
            "format": self.file_format(name, reader_class),
            "maps": max(self.number("mapreduce.job.maps", 2), 1),
            "min_bytes": max(
                self.number("mapreduce.input.fileinputformat.split.minsize", 1), least
            ),
            "block_bytes": max(self.number("dfs.blocksize", 128 << 20), 1),
        }
        if name == "NLineInputFormat":
            request["lines"] = max(self.number("mapreduce.input.lineinputformat.linespermap", 1), 1)
        if name == "CombineTextInputFormat":
            request["combine"] = max(
                self.number("mapreduce.input.fileinputformat.split.maxsize", 0), 0
            )
        return name, request

    def file_format(self, name: str, reader_class: str | None) -> Any:  # noqa: ANN401 - JSON
        """Return how the engine reads the files of a format."""
        if (
            name == "StreamInputFormat"
            and reader_class is not None
            and "LineRecordReader" not in reader_class
        ):
            return self.xml(reader_class)
        longest = self.longest_line()
        match name:
            case "KeyValueTextInputFormat" | "StreamInputFormat":
                separator = self.text(
                    "mapreduce.input.keyvaluelinerecordreader.key.value.separator", "\t"
                )
                byte = ord((separator or "\t")[0]) & 0xFF  # as Java cuts a character to a byte
                return {"key_value": {"separator": byte, "delimiter": None} | longest}
            case "SequenceFileInputFormat":
                return {"sequence": {"view": "values"}}
            case "SequenceFileAsTextInputFormat":
                return {"sequence": {"view": "text"}}
            case "SequenceFileAsBinaryInputFormat":
                return {"sequence": {"view": "binary"}}
            case "AutoInputFormat":
                return {"auto": longest}
            case "WholeFileInputFormat":
                return "whole"
            case "TextInputFormat" | "CombineTextInputFormat":
                delimiter = self.get("textinputformat.record.delimiter") or None
                return {"text": {"delimiter": delimiter} | longest}
            case _:
                return {"text": {"delimiter": None} | longest}

    def longest_line(self) -> dict[str, int]:
        """Return from which length on lines are passed over, if the job says so."""
        name = "mapreduce.input.linerecordreader.line.maxlength"
        return {} if self.get(name) is None else {"longest": max(self.number(name, 0), 0)}

    def xml(self, reader: str) -> Any:  # noqa: ANN401 - JSON
        """Return how the engine reads what is between two marks."""
        if classes.short_name(reader) not in ("StreamXmlRecord", "StreamXmlRecordReader"):
            raise WrongCommandError(
                f"-inputreader {reader} is not supported; StreamXmlRecord,begin=MARK,end=MARK is"
            )
        if self.flag("stream.recordreader.slowmatch", default=False):
            raise WrongCommandError(
                "slowmatch=true is not supported: marks are text here, not patterns"
            )
        marks = {name: self.get(f"stream.recordreader.{name}") for name in ("begin", "end")}
        for name, mark in marks.items():
            if not mark:
                raise WrongCommandError(f"-inputreader {reader} needs {name}=MARK")
        return {"xml": marks}

    def compressed_runs(self) -> tuple[str, str]:
        """Return how runs are to be compressed, and what to say of it; nothing where not at all."""
        if not self.flag("mapreduce.map.output.compress", default=False):
            return "", ""
        name = "mapreduce.map.output.compress.codec"
        given = self.text(name, "DefaultCodec")
        codec = classes.short_name(given)
        ours = classes.RUN_CODECS.get(codec)
        if ours is None:
            known = ", ".join(classes.RUN_CODECS)
            raise WrongCommandError(
                f"{self.written(name)}={given} is not supported; supported are {known}"
            )
        if classes.CODECS[codec] == ours:
            return ours, ""
        asked = "the default, DefaultCodec" if self.get(name) is None else f"{given}"
        remark = (
            f"runs between map and reduce are compressed with {ours} here, not with {asked}; "
            "--compress-runs names another"
        )
        return ours, remark

    def output_format(self) -> dict[str, Any]:
        """Return how the engine writes parts."""
        given = self.arguments.first("outputformat") or "TextOutputFormat"
        name = classes.short_name(given)
        if name not in classes.OUTPUT_FORMATS:
            known = ", ".join(classes.OUTPUT_FORMATS)
            raise WrongCommandError(
                f"-outputformat {given} is not supported; supported are {known}"
            )
        codec, kind = (
            None,
            self.text("mapreduce.output.fileoutputformat.compress.type", "RECORD").upper(),
        )
        if self.flag("mapreduce.output.fileoutputformat.compress", default=False):
            codec_class = self.text(
                "mapreduce.output.fileoutputformat.compress.codec", "DefaultCodec"
            )
            codec = classes.CODECS.get(classes.short_name(codec_class))
            if codec is None:
                raise WrongCommandError(
                    f"{self.written('mapreduce.output.fileoutputformat.compress.codec')}"
                    f"={codec_class} is not supported;"
                    f" supported are {', '.join(classes.CODECS)}"
                )
            if kind not in ("NONE", "RECORD", "BLOCK"):
                raise WrongCommandError(f"a compression type is NONE, RECORD or BLOCK, not {kind}")
        formats = {
            "TextOutputFormat": "text",
            "SequenceFileOutputFormat": "sequence",
            "SequenceFileAsBinaryOutputFormat": "binary",
            "NullOutputFormat": "null",
        }
        if kind == "NONE" and name != "TextOutputFormat":
            codec = None
        return {
            "format": formats[name],
            "separator": self.text("mapreduce.output.textoutputformat.separator", "\t"),
            "codec": codec,
            "blocks": kind == "BLOCK",
            "lazy": self.arguments.has("lazyOutput"),
        }
