"""The classes of Hadoop that are known here, by the last part of their names.

Hadoop wants most of them with their packages; here the last part will do, and a package is not
looked at unless it says that the class is somebody else's.
"""

import re

__all__ = [
    "CODECS",
    "INPUT_FORMATS",
    "MAPPERS",
    "OUTPUT_FORMATS",
    "PARTITIONERS",
    "REDUCERS",
    "RUN_CODECS",
    "STEPS",
    "SUMS",
    "is_hadoops",
    "looks_like_one",
    "short_name",
]

INPUT_FORMATS = {
    "TextInputFormat": "lines; keys are their offsets, which scripts do not see",
    "KeyValueTextInputFormat": "lines of a key, a TAB and a value",
    "NLineInputFormat": "lines, N for each task, with their offsets as keys",
    "CombineTextInputFormat": "lines of many small files in one task, with their offsets as keys",
    "SequenceFileInputFormat": "sequence files; values are Text, BytesWritable, "
    "TypedBytesWritable, "
    "LongWritable, IntWritable or NullWritable",
    "SequenceFileAsTextInputFormat": "sequence files, keys and values as their text",
    "SequenceFileAsBinaryInputFormat": "sequence files, keys and values as the bytes they are "
    "stored as",
    "AutoInputFormat": "sequence files and text, told apart by how they begin",
    "StreamInputFormat": "what -inputreader says; without it, as KeyValueTextInputFormat",
    "WholeFileInputFormat": "whole files: the name is the key, all bytes are the value (not "
    "Hadoop's own)",
}

OUTPUT_FORMATS = {
    "TextOutputFormat": "lines of key, TAB, value",
    "SequenceFileOutputFormat": "sequence files",
    "SequenceFileAsBinaryOutputFormat": "sequence files of the bytes that -io rawbytes gives",
    "NullOutputFormat": "nothing",
}

PARTITIONERS = {
    "HashPartitioner": "by a hash of the key, as Hadoop computes it",
    "KeyFieldBasedPartitioner": "by a hash of some fields of the key",
    "BinaryPartitioner": "by a hash of some bytes of the key",
    "TotalOrderPartitioner": "by ranges of keys from a partition file",
}

_FIELDS = "puts keys and values together from numbered fields"

MAPPERS = {
    "IdentityMapper": "passes records through",
    "InverseMapper": "exchanges key and value",
    "FieldSelectionMapReduce": _FIELDS,
}

REDUCERS = {
    "IdentityReducer": "passes pairs through",
    "FieldSelectionMapReduce": _FIELDS,
    "ValueAggregatorReducer": "as `aggregate`",
    "ValueAggregatorCombiner": "as `aggregate`",
}

STEPS = MAPPERS | REDUCERS

SUMS = ("LongSumReducer", "IntSumReducer")
"""Reducers of Hadoop's examples that add numbers up: `aggregate` does it here."""

CODECS = {
    "DefaultCodec": "deflate",
    "DeflateCodec": "deflate",
    "GzipCodec": "gzip",
    "BZip2Codec": "bzip2",
    "SnappyCodec": "snappy",
    "Lz4Codec": "lz4",
    "ZStandardCodec": "zstd",
}


RUN_CODECS = {
    "DefaultCodec": "zstd",
    "DeflateCodec": "zstd",
    "GzipCodec": "zstd",
    "BZip2Codec": "zstd",
    "SnappyCodec": "lz4",
    "Lz4Codec": "lz4",
    "ZStandardCodec": "zstd",
}
"""What compresses runs here where a job wants the map's output compressed: as fast, or as small."""


def short_name(name: str) -> str:
    """Return the last part of a class name.

    Example:
        >>> short_name("org.apache.hadoop.mapred.TextInputFormat")
        'TextInputFormat'
    """
    return name.rsplit(".", 1)[-1]


def is_hadoops(name: str) -> bool:
    """Whether a command is the name of one of Hadoop's classes."""
    return name.startswith("org.apache.hadoop.") and " " not in name


def looks_like_one(command: str) -> bool:
    """Whether a command is one word that is written as the name of a Java class is.

    Example:
        >>> looks_like_one("com.acme.MyReducer"), looks_like_one("LongSumReducer")
        (True, True)
        >>> looks_like_one("my.reducer.py"), looks_like_one("/bin/com.acme.Tool")
        (False, False)
    """
    return command in SUMS or re.fullmatch(r"([a-z_]\w*\.)+[A-Z]\w*", command) is not None
