"""The table of the comparison: jobs that Hadoop and Gristmill both run, word for word.

`{in}` stands for the folder of inputs, `{out}` for the job's output, which is named if nothing
else is, `{hadoop}` for the folder of the outputs of Hadoop's own jobs. Scripts (`./name.py`) are
shipped. MAPRED, LIB and IO are packages of Hadoop's; COUNT is a mapper and a reducer.
"""

from .case import job
from .formats import FORMATS

__all__ = ["CASES"]

CASES = (
    # The plain ones: how records go through, and where they land.
    job("wordcount", "-input {in}/words.txt COUNT"),
    job("reduces", "-D mapreduce.job.reduces=3 -input {in}/words.txt COUNT"),
    job(
        "old-names",
        "-D mapred.reduce.tasks=2 -D mapred.map.tasks=5 -input {in}/words.txt COUNT",
    ),
    job("numReduceTasks", "-input {in}/words.txt COUNT -numReduceTasks 4"),
    job("jobconf", "-input {in}/words.txt COUNT -jobconf mapred.reduce.tasks=2"),
    job(
        "inputs",
        "-input {in}/words.txt {in}/tree/a.txt -input {in}/tree/b*,{in}/tree/{c,d}.txt COUNT",
    ),
    job(
        "globs",
        "-input {in}/{tree/a.txt,fl*/{b*,*b.txt,a.txt}} file://{in}/word?.txt "
        "-inputformat LIB.CombineTextInputFormat -mapper cat -numReduceTasks 0",
    ),
    job("directory", "-input {in}/flat COUNT"),
    job(
        "recursive",
        "-D mapreduce.input.fileinputformat.input.dir.recursive=true -input {in}/tree COUNT",
    ),
    job(
        "ignore-subdirs",
        "-D mapreduce.input.fileinputformat.input.dir.nonrecursive.ignore.subdirs=true "
        "-input {in}/tree COUNT",
    ),
    job(
        "combiner",
        "-D mapreduce.job.reduces=2 -input {in}/words.txt COUNT -combiner ./count.py",
    ),
    job("none", "-input {in}/words.txt -mapper cat -reducer NONE"),
    job("zero", "-input {in}/words.txt -mapper 'tr a-z A-Z' -numReduceTasks 0"),
    job(
        "maps",
        "-D mapreduce.job.maps=7 -input {in}/words.txt {in}/flat -mapper cat -numReduceTasks 0",
    ),
    job(
        "split-min",
        "-D mapreduce.input.fileinputformat.split.minsize=1500 -D mapreduce.job.maps=9 "
        "-input {in}/words.txt -mapper cat -numReduceTasks 0",
    ),
    job("identity-reducer", "-input {in}/unique.txt -mapper cat"),
    job("identity-both", "-input {in}/words.txt -numReduceTasks 0"),
    job(
        "identity-classes",
        "-D mapred.output.key.class=IO.Text -input {in}/unique.txt -inputformat "
        "MAPRED.KeyValueTextInputFormat -mapper LIB.IdentityMapper -reducer "
        "LIB.IdentityReducer",
    ),
    job(
        "inverse",
        "-input {in}/unique.txt -inputformat MAPRED.KeyValueTextInputFormat -mapper "
        "LIB.InverseMapper -numReduceTasks 0",
    ),
    job(
        "quoting",
        "-input {in}/fields.txt -mapper 'awk -F: '\"'\"'{print $2 \"x y\"}'\"'\"' \"-\"' "
        "-numReduceTasks 0",
    ),
    # What an option says that is given twice, and what stands for a property.
    job(
        "options-twice",
        "-input {in}/few.txt -mapper cat -mapper rev -reducer cat -reducer rev -numReduceTasks 2 "
        "-numReduceTasks 3",
    ),
    job(
        "placeholders",
        "-D my.file=few -D a.long.property=a${my.file}-${nope}-${my.file} -D "
        "my.own-property=${env.NOT_SET_HERE:-x}${file.separator}${mapreduce.job.name} -D "
        "mapreduce.job.name=${mapred.map.tasks}${env.NOT_SET_HERE} "
        "-D mapreduce.job.maps=${my.maps} -D my.maps=3 -cmdenv ONE=${my.maps} -cmdenv "
        "TWO=${ONE} -input {in}/${my.file}.txt -mapper ./environment.py -numReduceTasks 0",
    ),
    job(
        "numbers",
        "-D mapreduce.job.reduces=0x3 -D mapreduce.job.maps=+4 -input {in}/few.txt -mapper cat "
        "-reducer cat",
    ),
    # Lines and what ends them.
    job("line-ends", "-input {in}/ends.txt -mapper cat -numReduceTasks 0"),
    job("no-newline", "-input {in}/no-newline.txt -mapper 'printf a\\tb' -numReduceTasks 0"),
    job("bytes", "-input {in}/bytes.bin -mapper cat -reducer cat", unordered=True),
    job("empty", "-input {in}/empty.txt COUNT"),
    job(
        "delimiter",
        "-D textinputformat.record.delimiter=|| -D mapreduce.job.maps=3 -input "
        "{in}/delimited.txt -mapper ./length.py -numReduceTasks 0",
    ),
    # Lines that are too long: also at the borders of splits, where their ends are lines.
    job(
        "longest-line",
        "-D mapreduce.input.linerecordreader.line.maxlength=60 -D mapreduce.job.maps=9 "
        "-D stream.map.input.ignoreKey=false -input {in}/long.txt -mapper cat -numReduceTasks 0",
    ),
    job(
        "longest-line-short",
        "-D mapreduce.input.linerecordreader.line.maxlength=7 -D mapreduce.job.maps=23 "
        "-D stream.map.input.ignoreKey=false -input {in}/long.txt {in}/words.txt -mapper cat "
        "-numReduceTasks 0",
    ),
    job(
        "longest-line-large",
        "-D mapred.linerecordreader.maxlength=3000 -D mapreduce.job.maps=40 "
        "-input {in}/long.txt -mapper cat -numReduceTasks 0",
    ),
    job(
        "longest-line-zero",
        "-D mapreduce.input.linerecordreader.line.maxlength=0 -input {in}/words.txt -mapper cat "
        "-numReduceTasks 0",
    ),
    job(
        "longest-line-ends",
        "-D mapreduce.input.linerecordreader.line.maxlength=5 -input {in}/ends.txt -mapper cat "
        "-numReduceTasks 0",
    ),
    job(
        "longest-line-key-value",
        "-D mapreduce.input.linerecordreader.line.maxlength=25 -D mapreduce.job.maps=4 "
        "-input {in}/fields.txt -inputformat KeyValueTextInputFormat -mapper cat "
        "-numReduceTasks 0",
    ),
    job(
        "longest-line-nline",
        "-D mapreduce.input.linerecordreader.line.maxlength=30 "
        "-D mapreduce.input.lineinputformat.linespermap=40 -input {in}/words.txt "
        "-inputformat LIB.NLineInputFormat -mapper cat -numReduceTasks 0",
    ),
    job(
        "longest-line-auto",
        "-D mapreduce.input.linerecordreader.line.maxlength=30 -input {in}/words.txt "
        "-inputformat org.apache.hadoop.streaming.AutoInputFormat -mapper cat -numReduceTasks 0",
    ),
    job(
        "longest-line-gzip",
        "-D mapreduce.input.linerecordreader.line.maxlength=30 -input {in}/words.txt.gz "
        "-mapper cat -numReduceTasks 0",
    ),
    job(
        "longest-line-delimiter",
        "-D mapreduce.input.linerecordreader.line.maxlength=30 "
        "-D textinputformat.record.delimiter=|| -D mapreduce.job.maps=3 -input "
        "{in}/delimited.txt -mapper ./length.py -numReduceTasks 0",
    ),
    job(
        "gzip-cut-nline",
        "-input {in}/few.txt {in}/cut.gz -inputformat LIB.NLineInputFormat -mapper cat "
        "-D mapreduce.input.lineinputformat.linespermap=40 -numReduceTasks 0",
    ),
    job("gzip-input", "-input {in}/words.txt.gz COUNT"),
    job(
        "with-offsets",
        "-D stream.map.input.ignoreKey=false -input {in}/words.txt -mapper cat -numReduceTasks 0",
    ),
    job(
        "kv-input",
        "-input {in}/unique.txt -inputformat KeyValueTextInputFormat -mapper ./swap.py "
        "-reducer cat",
        unordered=True,
    ),
    job(
        "kv-separator-beyond-ascii",
        "-D mapreduce.input.keyvaluelinerecordreader.key.value.separator=é -input "
        "{in}/unicode.txt -inputformat KeyValueTextInputFormat -mapper cat -numReduceTasks 0",
    ),
    job(
        "kv-separator",
        "-D mapreduce.input.keyvaluelinerecordreader.key.value.separator=: -input "
        "{in}/fields.txt -inputformat KeyValueTextInputFormat -mapper cat "
        "-numReduceTasks 0",
    ),
    job(
        "nline",
        "-D mapreduce.input.lineinputformat.linespermap=40 -input {in}/words.txt "
        "-inputformat LIB.NLineInputFormat -mapper cat -numReduceTasks 0",
    ),
    job(
        "combine-files",
        "-input {in}/flat -inputformat LIB.CombineTextInputFormat -mapper cat -reducer cat",
        unordered=True,
    ),
    job(
        "combine-max",
        "-D mapreduce.input.fileinputformat.split.maxsize=700 -input {in}/flat "
        "-inputformat LIB.CombineTextInputFormat -mapper 'wc -l' -reducer ./sum.py",
    ),
    job(
        "xml",
        "-inputreader StreamXmlRecordReader,begin=<page>,end=</page> -input "
        "{in}/pages.xml -mapper ./length.py -numReduceTasks 0",
    ),
    # Separators and fields on both sides.
    job(
        "key-fields",
        "-D stream.map.output.field.separator=: -D stream.num.map.output.key.fields=2 "
        "-input {in}/fields.txt -mapper cat -reducer cat",
    ),
    job(
        "map-input-separator",
        "-D stream.map.input.field.separator=; -input {in}/unique.txt -inputformat "
        "KeyValueTextInputFormat -mapper cat -numReduceTasks 0",
    ),
    job(
        "separators-of-nothing",
        "-D stream.map.output.field.separator= -D stream.reduce.input.field.separator= -D "
        "mapreduce.output.textoutputformat.separator= -input {in}/unique.txt -mapper cat "
        "-reducer cat",
    ),
    job(
        "reduce-separators",
        "-D stream.reduce.input.field.separator=# -D "
        "stream.reduce.output.field.separator=. -D "
        "stream.num.reduce.output.key.fields=2 -input {in}/unique.txt -mapper cat "
        "-reducer 'sed s/$/.x.y/'",
    ),
    job(
        "out-separator",
        "-D mapreduce.output.textoutputformat.separator==> -input {in}/unique.txt "
        "-mapper cat -reducer cat",
    ),
    # Order and partitions by fields.
    job(
        "compare-numeric",
        "-D mapreduce.job.output.key.comparator.class=LIB.KeyFieldBasedComparator -D "
        "'mapreduce.partition.keycomparator.options=-k2,2n -k1,1 -k3,3' -D "
        "stream.num.map.output.key.fields=3 -input {in}/fields.txt -mapper cat -reducer"
        " cat",
    ),
    job(
        "compare-reverse",
        "-D mapreduce.job.output.key.comparator.class=LIB.KeyFieldBasedComparator -D "
        "'mapreduce.partition.keycomparator.options=-k2,2nr -k3,3r -k1' -D "
        "stream.num.map.output.key.fields=3 -input {in}/fields.txt -mapper cat -reducer"
        " cat",
    ),
    job(
        "compare-bytes",
        "-D mapreduce.job.output.key.comparator.class=LIB.KeyFieldBasedComparator -D "
        "'mapreduce.partition.keycomparator.options=-k1.2,1.4 -k3n -k2' -D "
        "stream.num.map.output.key.fields=3 -input {in}/fields.txt -mapper cat -reducer"
        " cat",
    ),
    job(
        "compare-all-reversed",
        "-D mapreduce.job.output.key.comparator.class=LIB.KeyFieldBasedComparator -D "
        "mapreduce.partition.keycomparator.options=-r -D "
        "stream.num.map.output.key.fields=3 -input {in}/fields.txt -mapper cat -reducer"
        " cat",
    ),
    job(
        "partition-field",
        "-D mapreduce.job.output.key.comparator.class=LIB.KeyFieldBasedComparator -D "
        "'mapreduce.partition.keycomparator.options=-k1,1 -k2,2n -k3,3' -D "
        "stream.num.map.output.key.fields=3 -D "
        "mapreduce.partition.keypartitioner.options=-k1,1 -D "
        "mapred.partitioner.class=LIB.KeyFieldBasedPartitioner -D "
        "mapreduce.job.reduces=4 -input {in}/fields.txt -mapper cat -reducer cat",
    ),
    job(
        "partition-colon",
        "-D mapreduce.map.output.key.field.separator=: -D "
        "'mapreduce.partition.keypartitioner.options=-k2.1,2.1 -k3' -D "
        "mapreduce.job.reduces=3 -input {in}/fields.txt -mapper 'cut -f1' -reducer cat "
        "-partitioner LIB.KeyFieldBasedPartitioner",
        unordered=True,
    ),
    job(
        "partition-first",
        "-D num.key.fields.for.partition=1 -D stream.num.map.output.key.fields=3 -D "
        "mapreduce.job.reduces=3 -input {in}/fields.txt -mapper cat -reducer cat "
        "-partitioner LIB.KeyFieldBasedPartitioner",
    ),
    job(
        "partitioner-property",
        "-D mapred.partitioner.class=LIB.KeyFieldBasedPartitioner -D "
        "mapreduce.job.reduces=3 -input {in}/unicode.txt -mapper cat -reducer cat",
    ),
    job(
        "partition-raw",
        "-io rawbytes -D mapreduce.partition.keypartitioner.options=-k1.3,1.9 -D "
        "mapreduce.job.reduces=3 -input {in}/unique.txt -mapper ./raw_keys.py -reducer cat "
        "-partitioner LIB.KeyFieldBasedPartitioner",
    ),
    job(
        "partition-typed",
        "-io typedbytes -D mapreduce.job.reduces=3 -input {in}/unique.txt -mapper cat "
        "-reducer cat -partitioner LIB.KeyFieldBasedPartitioner",
    ),
    job(
        "binary-partitioner",
        "-D mapreduce.partition.binarypartitioner.left.offset=1 -D "
        "mapreduce.partition.binarypartitioner.right.offset=-2 -D "
        "mapreduce.job.reduces=3 -io rawbytes -input {in}/unique.txt -mapper "
        "./raw_keys.py -reducer cat -partitioner LIB.BinaryPartitioner",
    ),
    job(
        "grouping",
        "-D mapreduce.job.output.group.comparator.class=LIB.KeyFieldBasedComparator -D "
        "mapreduce.partition.keycomparator.options=-k1,1 -D "
        "stream.num.map.output.key.fields=3 -input {in}/fields.txt -mapper cat -reducer"
        " cat",
    ),
    job(
        "field-selection",
        "-D mapreduce.fieldsel.data.field.separator=: -D "
        "mapreduce.fieldsel.map.output.key.value.fields.spec=1,0:1- -input "
        "{in}/fields.txt -mapper LIB.FieldSelectionMapReduce -numReduceTasks 0 -D "
        "mapred.output.key.class=IO.Text",
    ),
    job(
        "field-selection-beyond-ascii",
        "-D mapreduce.fieldsel.data.field.separator=é -D "
        "mapreduce.fieldsel.map.output.key.value.fields.spec=1,0:0- -input {in}/unicode.txt "
        "-mapper LIB.FieldSelectionMapReduce -numReduceTasks 0 -D mapred.output.key.class=IO.Text",
    ),
    job(
        "field-selection-reduce",
        "-D mapreduce.fieldsel.reduce.output.key.value.fields.spec=1:0 -D "
        "mapred.output.key.class=IO.Text -input {in}/unique.txt -mapper cat -reducer "
        "LIB.FieldSelectionMapReduce",
    ),
    # Aggregates.
    job(
        "aggregate",
        "-input {in}/words.txt -mapper ./aggregate.py -reducer aggregate -D "
        "mapred.output.key.class=IO.Text",
    ),
    job(
        "aggregate-unique",
        "-D mapreduce.job.reduces=2 -input {in}/words.txt -mapper ./aggregate_unique.py"
        " -reducer aggregate -D mapred.output.key.class=IO.Text",
    ),
    # Other protocols and file formats.
    *FORMATS,
    # What scripts say and see.
    job("counters", "-input {in}/words.txt -mapper ./report.py -reducer cat", unordered=True),
    job(
        "counters-overflow",
        "-D mapreduce.job.maps=4 -input {in}/few.txt -mapper ./report_big.py -numReduceTasks 0",
    ),
    job(
        "reporter-prefix",
        "-D stream.stderr.reporter.prefix=say: -input {in}/few.txt -mapper "
        "./report_say.py -numReduceTasks 0",
    ),
    job(
        "environment",
        "-D 'my.own-property=a b' -D 'mapreduce.job.name=a job' -cmdenv ONE=1 -cmdenv "
        "TWO=2=2 -input {in}/few.txt -mapper ./environment.py -numReduceTasks 0",
    ),
    job(
        "environment-reduce",
        "-D mapreduce.job.reduces=2 -input {in}/few.txt -mapper cat -reducer "
        "./environment_reduce.py",
    ),
    job(
        "truncate",
        "-D 'mapreduce.job.name=a long name' -D stream.jobconf.truncate.limit=5 -D "
        "a.long.property=123456789 -input {in}/few.txt -mapper ./environment.py "
        "-numReduceTasks 0",
    ),
    job(
        "file",
        "-file {in}/data.txt -input {in}/few.txt -mapper 'cat data.txt -' -numReduceTasks 0",
    ),
    job(
        "files",
        "-files {in}/data.txt#other.txt,{in}/more.txt -input {in}/few.txt -mapper 'cat "
        "other.txt more.txt -' -numReduceTasks 0",
    ),
    job(
        "archives",
        "-archives {in}/packed.zip#dict,{in}/packed.tgz -input {in}/few.txt -mapper "
        "'cat dict/inner/word packed.tgz/inner/word -' -numReduceTasks 0",
    ),
    # How jobs end.
    job(
        "exit-ignored",
        "-D stream.non.zero.exit.is.failure=false -input {in}/few.txt -mapper "
        "./exit3.py -numReduceTasks 0",
    ),
    job(
        "exit-3",
        "-D mapreduce.map.maxattempts=1 -input {in}/few.txt -mapper ./exit3.py -numReduceTasks 0",
        code=1,
        counters=False,
    ),
    job(
        "reducer-exit-3",
        "-D mapreduce.reduce.maxattempts=1 -D mapreduce.map.maxattempts=1 -input "
        "{in}/few.txt -mapper cat -reducer ./exit3.py",
        code=1,
        counters=False,
    ),
    job(
        "no-program",
        "-D mapreduce.map.maxattempts=1 -input {in}/few.txt -mapper "
        "no-such-program-here -numReduceTasks 0",
        code=1,
        counters=False,
    ),
    job("no-input", "-input {in}/not-there -mapper cat", code=5, counters=False),
    job("hidden", "-input {in}/flat/_hidden -mapper cat", code=5, counters=False),
    job("hidden-in-glob", "-input {in}/fl*/.hidden -mapper cat", code=5, counters=False),
    job("no-match", "-input {in}/not-*-there -mapper cat", code=5, counters=False),
    job(
        "output-exists",
        "-input {in}/few.txt -mapper cat -output {in}/flat",
        code=5,
        counters=False,
    ),
    job("ignores-input", "-input {in}/words.txt -mapper ./ignore.py -reducer cat"),
    job("closes-early", "-input {in}/words.txt -mapper 'head -n 1' -numReduceTasks 0"),
    job("floods-stderr", "-input {in}/few.txt -mapper ./flood.py -numReduceTasks 0"),
    job("forks", "-input {in}/few.txt -mapper ./forks.py -numReduceTasks 0", unordered=True),
    job(
        "empty-reduce",
        "-D mapreduce.job.reduces=3 -input {in}/one.txt -mapper cat -reducer ./always.py",
    ),
)
