"""The properties that mean something here, with the names they had before: one table.

A property that is not in it is accepted, handed to the scripts as a variable, and reported as
without effect. `default` is what scripts see where the job does not set it ("" is none).
"""

from difflib import get_close_matches

from gristmill.streaming.failure_properties import FAILURE_PROPERTIES
from gristmill.streaming.property import NOTED, REFUSED, Property

__all__ = ["PROPERTIES", "Property", "instead_of", "names_of", "present_name"]


PROPERTIES = (
    Property(
        "mapreduce.job.name",
        ("mapred.job.name",),
        "",
        "The job's name in reports.",
        "case:environment",
    ),
    Property(
        "mapreduce.job.reduces",
        ("mapred.reduce.tasks",),
        "1",
        "How many parts are reduced.",
        "case:reduces",
    ),
    Property(
        "mapreduce.job.maps",
        ("mapred.map.tasks",),
        "2",
        "How many splits are hoped for: a split has at most that share of the input.",
        "case:maps",
    ),
    Property(
        "mapreduce.input.fileinputformat.split.minsize",
        ("mapred.min.split.size",),
        "0",
        "Least bytes of a split.",
        "case:split-min",
    ),
    Property(
        "mapreduce.input.fileinputformat.split.maxsize",
        ("mapred.max.split.size",),
        "",
        "Most bytes of a split of CombineTextInputFormat; other formats of Streaming do not look "
        "at it.",
        "case:combine-max",
    ),
    Property(
        "dfs.blocksize",
        ("dfs.block.size",),
        "134217728",
        "Most bytes of a split (K, M, G may follow); in HDFS the output has such blocks.",
        "test_splits.py::test_blocks_bound_splits",
    ),
    Property(
        "dfs.replication",
        (),
        "",
        "How many copies HDFS keeps of each block of an output there.",
        "test_parse.py::test_blocks_of_an_output_in_hdfs",
    ),
    Property(
        "mapreduce.input.lineinputformat.linespermap",
        ("mapred.line.input.format.linespermap",),
        "1",
        "Lines of a split of NLineInputFormat.",
        "case:nline",
    ),
    Property(
        "mapreduce.input.fileinputformat.input.dir.recursive",
        ("mapred.input.dir.recursive",),
        "false",
        "Reads directories in directories.",
        "case:recursive",
    ),
    Property(
        "mapreduce.input.fileinputformat.input.dir.nonrecursive.ignore.subdirs",
        (),
        "false",
        "Passes over directories in directories, which are an error otherwise.",
        "case:ignore-subdirs",
    ),
    Property(
        "textinputformat.record.delimiter",
        (),
        "",
        "What ends a record of text input.",
        "case:delimiter",
    ),
    Property(
        "mapreduce.input.keyvaluelinerecordreader.key.value.separator",
        ("key.value.separator.in.input.line",),
        "",
        "Between key and value in KeyValueTextInputFormat: its first byte.",
        "case:kv-separator",
    ),
    Property(
        "mapreduce.output.textoutputformat.separator",
        ("mapred.textoutputformat.separator",),
        "",
        "Between key and value in text output.",
        "case:out-separator",
    ),
    Property(
        "mapreduce.output.fileoutputformat.compress",
        ("mapred.output.compress",),
        "false",
        "Compresses the output.",
        "case:compress-gzip",
    ),
    Property(
        "mapreduce.output.fileoutputformat.compress.codec",
        ("mapred.output.compression.codec",),
        "org.apache.hadoop.io.compress.DefaultCodec",
        "With which codec: GzipCodec, BZip2Codec, DefaultCodec, "
        "DeflateCodec, SnappyCodec, Lz4Codec or ZStandardCodec.",
        "case:compress-bzip2",
    ),
    Property(
        "mapreduce.output.fileoutputformat.compress.type",
        ("mapred.output.compression.type",),
        "RECORD",
        "What of a sequence file is compressed at once: NONE, RECORD or BLOCK.",
        "case:sequence-block",
    ),
    *FAILURE_PROPERTIES,
    Property(
        "mapreduce.input.linerecordreader.line.maxlength",
        ("mapred.linerecordreader.maxlength",),
        "",
        "Lines of this many bytes or more, line end included, are skipped. If such a line crosses "
        "the end of its split, the part after it counts as a line of its own, if it is short "
        "enough. Hadoop does the same.",
        "case:longest-line",
    ),
    Property(
        "mapreduce.map.output.key.field.separator",
        ("map.output.key.field.separator",),
        "",
        "Between the fields of a key, to comparator and partitioner.",
        "case:partition-field",
    ),
    Property(
        "mapreduce.partition.keypartitioner.options",
        ("mapred.text.key.partitioner.options",),
        "",
        "The fields that KeyFieldBasedPartitioner looks at, such as -k1,2.",
        "case:partition-field",
    ),
    Property(
        "num.key.fields.for.partition",
        (),
        "",
        "The same: so many first fields.",
        "case:partition-first",
    ),
    Property(
        "mapreduce.partition.keycomparator.options",
        ("mapred.text.key.comparator.options",),
        "",
        "The fields and orders of KeyFieldBasedComparator, such as -k2,2nr.",
        "case:compare-numeric",
    ),
    Property(
        "mapreduce.job.output.key.comparator.class",
        ("mapred.output.key.comparator.class",),
        "",
        "KeyFieldBasedComparator, or the order of the key's class.",
        "case:compare-numeric",
    ),
    Property(
        "mapreduce.job.output.group.comparator.class",
        ("mapred.output.value.groupfn.class",),
        "",
        "Without effect, as in Hadoop Streaming: whole keys tell groups apart, and scripts see "
        "all pairs.",
        "case:grouping",
        effect=False,
    ),
    Property(
        "mapred.partitioner.class",
        ("mapreduce.job.partitioner.class",),
        "",
        "As -partitioner.",
        "case:partitioner-property",
    ),
    Property(
        "mapreduce.partition.binarypartitioner.left.offset",
        (),
        "0",
        "The first byte that BinaryPartitioner looks at.",
        "case:binary-partitioner",
    ),
    Property(
        "mapreduce.partition.binarypartitioner.right.offset",
        (),
        "-1",
        "The last one.",
        "case:binary-partitioner",
    ),
    Property(
        "mapreduce.totalorderpartitioner.path",
        ("total.order.partitioner.path",),
        "_partition.lst",
        "The sequence file with TotalOrderPartitioner's cut points.",
        "case:total-order",
    ),
    Property(
        "mapreduce.fieldsel.data.field.separator",
        ("mapred.data.field.separator",),
        "",
        "Between the fields of FieldSelectionMapReduce.",
        "case:field-selection",
    ),
    Property(
        "mapreduce.fieldsel.map.output.key.value.fields.spec",
        ("map.output.key.value.fields.spec",),
        "0-:",
        "What its map selects, such as 6,5,1-3:0-.",
        "case:field-selection",
    ),
    Property(
        "mapreduce.fieldsel.reduce.output.key.value.fields.spec",
        ("reduce.output.key.value.fields.spec",),
        "0-:",
        "What its reduce selects.",
        "case:field-selection-reduce",
    ),
    Property(
        "stream.map.input.field.separator",
        (),
        "",
        "Between key and value of the mapper's input.",
        "case:map-input-separator",
    ),
    Property(
        "stream.map.output.field.separator",
        (),
        "",
        "Between the fields of the mapper's output.",
        "case:key-fields",
    ),
    Property(
        "stream.num.map.output.key.fields",
        (),
        "",
        "How many of them are the key.",
        "case:key-fields",
    ),
    Property(
        "stream.reduce.input.field.separator",
        (),
        "",
        "Between key and value of the reducer's input.",
        "case:reduce-separators",
    ),
    Property(
        "stream.reduce.output.field.separator",
        (),
        "",
        "Between the fields of the reducer's output.",
        "case:reduce-separators",
    ),
    Property(
        "stream.num.reduce.output.key.fields",
        ("stream.num.reduce.output.fields",),
        "",
        "How many of them are the key.",
        "case:reduce-separators",
    ),
    Property(
        "stream.map.input.ignoreKey",
        (),
        "",
        "Whether the mapper gets values alone; by default only of text input.",
        "case:with-offsets",
    ),
    Property("stream.map.input", (), "text", "As -io, for the mapper's input.", "case:io-mixed"),
    Property("stream.map.output", (), "text", "As -io, for its output.", "case:io-mixed"),
    Property(
        "stream.reduce.input", (), "text", "As -io, for the reducer's input.", "case:io-mixed"
    ),
    Property("stream.reduce.output", (), "text", "As -io, for its output.", "case:io-mixed"),
    Property(
        "stream.non.zero.exit.is.failure",
        (),
        "",
        "Whether an exit code other than 0 is a failure (true).",
        "case:exit-ignored",
    ),
    Property(
        "stream.stderr.reporter.prefix",
        (),
        "",
        "The beginning of lines that report something (reporter:).",
        "case:reporter-prefix",
    ),
    Property(
        "stream.jobconf.truncate.limit",
        (),
        "",
        "Most characters of a property's value as a variable; -1: any number.",
        "case:truncate",
    ),
    Property(
        "aggregate.max.num.unique.values",
        (),
        "",
        "Most values that a UniqValueCount counts.",
        "case:aggregate-unique",
    ),
    Property(
        "stream.recordreader.class",
        (),
        "",
        "As -inputreader.",
        "test_parse.py::test_properties_of_the_record_reader",
    ),
    Property(
        "stream.recordreader.begin",
        (),
        "",
        "The first mark of StreamXmlRecordReader.",
        "test_parse.py::test_properties_of_the_record_reader",
    ),
    Property(
        "stream.recordreader.end",
        (),
        "",
        "Its last mark.",
        "test_parse.py::test_properties_of_the_record_reader",
    ),
    Property(
        "stream.recordreader.slowmatch",
        (),
        "",
        "`true` is refused: marks are text, not patterns.",
        REFUSED,
    ),
    Property(
        "stream.io.identifier.resolver.class", (), "", "Refused: there is no Java here.", REFUSED
    ),
    Property(
        "mapreduce.input.pathFilter.class",
        ("mapred.input.pathFilter.class",),
        "",
        "Refused, likewise.",
        REFUSED,
    ),
    Property("fs.defaultFS", ("fs.default.name",), "file:///", "As -fs.", REFUSED),
    Property(
        "mapreduce.job.reduce.slowstart.completedmaps",
        ("mapred.reduce.slowstart.completed.maps",),
        "0.05",
        "Without effect: reduces begin when all maps are done.",
        NOTED,
        effect=False,
    ),
    Property(
        "mapreduce.map.output.compress",
        ("mapred.compress.map.output",),
        "false",
        "Compresses the runs between map and reduce; --compress-runs counts before it.",
        "test_parse.py::test_compression_of_runs",
    ),
    Property(
        "mapreduce.map.output.compress.codec",
        ("mapred.map.output.compression.codec",),
        "org.apache.hadoop.io.compress.DefaultCodec",
        "With which codec: Lz4Codec and SnappyCodec are lz4 here, ZStandardCodec, DefaultCodec, "
        "DeflateCodec, GzipCodec and BZip2Codec are zstd.",
        "test_parse.py::test_compression_of_runs",
    ),
    Property(
        "mapreduce.task.io.sort.mb",
        ("io.sort.mb",),
        "100",
        "Without effect: see --memory.",
        NOTED,
        effect=False,
    ),
    Property(
        "mapreduce.map.memory.mb",
        ("mapred.job.map.memory.mb",),
        "",
        "Without effect: scripts have the memory that they take.",
        NOTED,
        effect=False,
    ),
    Property(
        "mapreduce.reduce.memory.mb",
        ("mapred.job.reduce.memory.mb",),
        "",
        "Without effect, likewise.",
        NOTED,
        effect=False,
    ),
    Property(
        "stream.joindelay.milli",
        (),
        "",
        "Without effect: output is read to its end.",
        NOTED,
        effect=False,
    ),
)

_PRESENT = {old: known.name for known in PROPERTIES for old in known.old}
_NAMES = {known.name: (known.name, *known.old) for known in PROPERTIES}


def present_name(name: str) -> str:
    """Return the name that a property has today.

    Example:
        >>> present_name("mapred.reduce.tasks"), present_name("my.own")
        ('mapreduce.job.reduces', 'my.own')
    """
    return _PRESENT.get(name, name)


def names_of(name: str) -> tuple[str, ...]:
    """Return all names of a property, the present one first."""
    return _NAMES.get(name, (name,))


_SHIPPED_WITH = {
    "mapreduce.job.cache.files": "-files",
    "mapred.cache.files": "-files",
    "mapreduce.job.cache.archives": "-archives",
    "mapred.cache.archives": "-archives",
}
"""What Hadoop's own options set, and old jobs set themselves."""

_CLOSE = 0.9
"""One or two letters of a name are wrong; different names that Hadoop has are further apart."""


def instead_of(name: str) -> str | None:
    """Return what to use instead of a property that is not in the table, if that is clear.

    Example:
        >>> instead_of("mapreduce.job.reducers"), instead_of("mapred.reduce.task")
        ('did you mean mapreduce.job.reduces?', 'did you mean mapreduce.job.reduces?')
        >>> instead_of("mapred.cache.files"), instead_of("mapreduce.job.queuename")
        ('use -files', None)
    """
    if name in _SHIPPED_WITH:
        return f"use {_SHIPPED_WITH[name]}"
    close = get_close_matches(name, [*_NAMES, *_PRESENT], n=1, cutoff=_CLOSE)
    return f"did you mean {present_name(close[0])}?" if close else None
