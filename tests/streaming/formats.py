"""The part of the table of the comparison that is of protocols and file formats (see cases.py)."""

from .case import job

__all__ = ["FORMATS"]

FORMATS = (
    job("rawbytes", "-io rawbytes -input {in}/unique.txt -mapper ./raw_keys.py -reducer cat"),
    job("typedbytes", "-io typedbytes -input {in}/unique.txt -mapper cat -reducer cat"),
    job(
        "io-mixed",
        "-D stream.map.output=typedbytes -D stream.reduce.input=typedbytes -input "
        "{in}/unique.txt -mapper ./typed.py -reducer ./untyped.py",
    ),
    job("key-only", "-io keyonlytext -input {in}/unique.txt -mapper cat -reducer cat"),
    job(
        "compress-gzip",
        "-D mapreduce.output.fileoutputformat.compress=true -input {in}/words.txt COUNT",
        decoded=True,
    ),
    job(
        "compress-bzip2",
        "-D mapred.output.compress=true -D "
        "mapred.output.compression.codec=IO.compress.BZip2Codec -input {in}/words.txt "
        "COUNT",
        decoded=True,
    ),
    job(
        "compress-deflate",
        "-D mapreduce.output.fileoutputformat.compress=true -D "
        "mapreduce.output.fileoutputformat.compress.codec=IO.compress.DefaultCodec "
        "-input {in}/words.txt COUNT",
        decoded=True,
    ),
    job(
        "sequence-out",
        "-input {in}/unique.txt -mapper cat -reducer cat -outputformat "
        "MAPRED.SequenceFileOutputFormat",
        decoded=True,
    ),
    job(
        "sequence-record",
        "-D mapreduce.output.fileoutputformat.compress=true -input {in}/unique.txt "
        "-mapper cat -reducer cat -outputformat MAPRED.SequenceFileOutputFormat",
        decoded=True,
    ),
    job(
        "sequence-block",
        "-D mapreduce.output.fileoutputformat.compress=true -D "
        "mapreduce.output.fileoutputformat.compress.type=BLOCK -input {in}/unique.txt "
        "-mapper cat -reducer cat -outputformat MAPRED.SequenceFileOutputFormat",
        decoded=True,
    ),
    job(
        "sequence-in",
        "-input {hadoop}/sequence-out/part-* -inputformat SequenceFileInputFormat "
        "-mapper cat -reducer cat",
    ),
    job(
        "sequence-in-maps",
        "-D mapreduce.job.maps=5 -input {hadoop}/sequence-out/part-* -inputformat "
        "SequenceFileInputFormat -mapper cat -numReduceTasks 0",
    ),
    job(
        "sequence-in-block",
        "-input {hadoop}/sequence-block/part-* -inputformat "
        "SequenceFileAsTextInputFormat -mapper cat -reducer cat",
    ),
    job(
        "sequence-in-record",
        "-input {hadoop}/sequence-record/part-* -inputformat SequenceFileInputFormat "
        "-mapper cat -reducer cat",
    ),
    job(
        "sequence-binary",
        "-io rawbytes -input {hadoop}/sequence-out/part-* -inputformat "
        "MAPRED.SequenceFileAsBinaryInputFormat -mapper cat -reducer cat",
    ),
    job(
        "sequence-typed",
        "-io typedbytes -input {hadoop}/sequence-out/part-* -inputformat "
        "SequenceFileInputFormat -mapper cat -reducer cat",
    ),
    job(
        "sequence-broken",
        "-input {in}/broken.txt -mapper cat -reducer cat -outputformat "
        "MAPRED.SequenceFileOutputFormat",
        decoded=True,
    ),
    job(
        "sequence-broken-text",
        "-input {hadoop}/sequence-broken/part-* -inputformat SequenceFileAsTextInputFormat "
        "-mapper cat -numReduceTasks 0",
    ),
    job(
        "typed-broken",
        "-io typedbytes -input {in}/broken.txt -mapper cat -numReduceTasks 0",
    ),
    job(
        "partition-broken",
        "-D mapreduce.job.reduces=5 -input {in}/broken.txt -mapper cat -reducer cat "
        "-partitioner LIB.KeyFieldBasedPartitioner",
    ),
    job(
        "field-selection-broken",
        "-D mapreduce.fieldsel.data.field.separator=: -D "
        "mapreduce.fieldsel.map.output.key.value.fields.spec=1:0 -D "
        "mapreduce.fieldsel.reduce.output.key.value.fields.spec=0:1- -input {in}/broken.txt "
        "-mapper LIB.FieldSelectionMapReduce -reducer LIB.FieldSelectionMapReduce -D "
        "mapred.output.key.class=IO.Text",
        unordered=True,
    ),
    job(
        "auto-input",
        "-input {hadoop}/sequence-out/part-* -inputformat AutoInputFormat -mapper cat "
        "-numReduceTasks 0",
    ),
    job(
        "total-order",
        "-D mapreduce.totalorderpartitioner.path={cuts} -D mapreduce.job.reduces=3 "
        "-input {in}/unique.txt -mapper cat -reducer cat -partitioner "
        "LIB.TotalOrderPartitioner",
    ),
    job(
        "lazy",
        "-D mapreduce.job.reduces=5 -input {in}/few.txt -mapper cat -reducer cat -lazyOutput",
    ),
)
