"""The jobs that are run in every place, as command lines.

    {in}      the inputs, a location of the place
    {files}   the inputs, a path in every place
    {out}     the output, a location of the place
    {gate}    a file that a job waits for, or makes
    python    runs a job of jobs.py
    killed    the same, until all maps but one are done: then comes SIGKILL

A case may have several command lines, one after another; `status` is that of the last one, and the
others must succeed.
"""

from dataclasses import dataclass

__all__ = ["CASES", "CLUSTERED", "Case"]

LITTLE = "--memory 36M --workers 1"
"""So little memory, beside the parts that are uploaded, that 30 MB make runs also in threads."""


@dataclass(frozen=True)
class Case:
    """A job."""

    name: str
    steps: tuple[str, ...]
    status: int
    says: str
    json: bool
    everywhere: bool


def case(
    name: str,
    *steps: str,
    status: int = 0,
    says: str = "",
    json: bool = True,
    everywhere: bool = True,
) -> Case:
    """A case.

    Args:
        name: Its name among the tests.
        steps: Its command lines.
        status: The exit status of the last one.
        says: What its error says, among other things.
        json: Whether it reports; otherwise stdout is what it writes.
        everywhere: Whether it is also run in processes with an object store, both at once, with
            S3, with HDFS, and in a directory that machines share.
    """
    return Case(name, steps, status, says, json, everywhere)


def python(
    name: str, job: str = "", *, status: int = 0, says: str = "", everywhere: bool = False
) -> Case:
    """A job of jobs.py: of the name of the case, or another one with options."""
    command = f"python {job or name.replace('-', '_')} --output {{out}}"
    return case(f"python-{name}", command, status=status, says=says, everywhere=everywhere)


def script(name: str, options: str, *, everywhere: bool = False) -> Case:
    """A job of scripts, which are files of the disk."""
    shipped = "-files {files}/mapper.py,{files}/reducer.py"
    words = f"streaming {shipped} -input {{in}}/text -output {{out}} {options}"
    return case(f"streaming-{name}", words, everywhere=everywhere)


GENERATED = (
    case("teragen", "teragen 3k {out}"),
    case("teragen-files", "teragen 3001 {out} --files 3"),
    case("teragen-skew", "teragen 2k {out} --skew --layout gensort --start 77"),
    case("teragen-ascii", "teragen 2k {out} --layout ascii --files 2"),
    case("teragen-odd", "teragen 1133 {out}"),
    case("teragen-none", "teragen 0 {out} --files 2"),
    case("teragen-overwrite", "teragen 2k {out} --files 3", "teragen 1k {out} --overwrite"),
    case(
        "teragen-exists",
        "teragen 10 {out}",
        "teragen 10 {out}",
        status=1,
        says="exists",
    ),
)

TERASORTED = (
    case("terasort", "terasort {in}/tera {out}"),
    case("terasort-parts", "terasort {in}/tera {out} --partitions 3"),
    case("terasort-skew", "terasort {in}/skew {out} --partitions 2"),
    case("terasort-tied", "terasort {in}/tied {out} --partitions 3"),
    case("terasort-twice", "terasort {in}/twice {out} --partitions 2"),
    case("terasort-ordered", "terasort {in}/ordered {out} --partitions 2"),
    case("terasort-reversed", "terasort {in}/reversed {out} --partitions 2"),
    case("terasort-one", "terasort {in}/one {out}"),
    case("terasort-more-parts-than-records", "terasort {in}/one {out} --partitions 3"),
    case("terasort-empty", "terasort {in}/empty {out} --partitions 2"),
    case("terasort-several", "terasort {in}/skew {in}/tied {in}/one {out} --partitions 2"),
    case("terasort-spilling", f"terasort {{in}}/large {{out}} --partitions 3 {LITTLE}"),
    case(
        "terasort-compressed-runs",
        f"terasort {{in}}/large {{out}} --partitions 3 {LITTLE} --compress-runs lz4",
    ),
    case("terasort-in-memory", "terasort {in}/large {out} --partitions 2 --memory 400M"),
    case(
        "terasort-overwrite",
        "terasort {in}/skew {out} --partitions 3",
        "terasort {in}/tera {out} --partitions 2 --overwrite",
    ),
    case("terasort-of-text", "terasort {in}/lines {out}", status=1, says="100"),
    case("terasort-missing", "terasort {in}/nowhere {out}", status=1, says="no such file"),
    case("teravalidate", "teravalidate {in}/ordered --against {in}/tera"),
    case(
        "teravalidate-sorted",
        "terasort {in}/skew {out} --partitions 3",
        "teravalidate {out} --against {in}/skew",
    ),
    case("teravalidate-disorder", "teravalidate {in}/tera", status=1, says="larger key"),
    case(
        "teravalidate-others",
        "teravalidate {in}/ordered --against {in}/skew",
        status=1,
        says="checksum",
    ),
)

SORTED = (
    case("sort", "sort {in}/lines -o {out}"),
    case("sort-reverse", "sort -r {in}/lines -o {out}"),
    case("sort-unique", "sort -u {in}/lines -o {out}"),
    case("sort-reverse-unique", "sort -ru {in}/lines {in}/in-order -o {out}"),
    case("sort-stable", "sort -s {in}/tied -o {out} --format fixed:100:10"),
    case("sort-records", "sort {in}/tied -o {out} --format fixed:100:10"),
    case("sort-records-unique", "sort -u {in}/tied -o {out} --format fixed:100:10"),
    case("sort-directory", "sort {in}/text -o {out}"),
    case("sort-nothing", "sort {in}/nothing -o {out}"),
    case("sort-replaces", "sort {in}/lines -o {out}", "sort -r {out} -o {out}"),
    case("sort-spilling", f"sort {{in}}/large -o {{out}} --format fixed:100 {LITTLE}"),
    case("sort-to-stdout", "sort -u {in}/lines", json=False),
    case("sort-check", "sort -c {in}/in-order", json=False),
    case("sort-check-disorder", "sort -c {in}/lines", status=1, says="order", json=False),
    case("sort-keys", "sort -k1,1r -k2,2n {in}/rows.tsv -o {out}"),
    case("sort-keys-unique", "sort -u -t: -k1.2,1.3f {in}/lines {in}/rows.tsv -o {out}"),
    case("sort-keys-spilling", f"sort -k1.3,1.9r {{in}}/large -o {{out}} {LITTLE}"),
    case("sort-table", "sort --csv --key name:desc,id:num {in}/users.csv -o {out}"),
    case("sort-table-packed", "sort --csv --key note,id:num {in}/notes -o {out} --skip-bad 1"),
    case("sort-table-bad", "sort --csv {in}/notes -o {out}", status=1, says="the row has 1 field"),
    case("sort-packed", "sort {in}/packed -o {out}"),
    case("sort-parts", "sort {in}/lines {in}/packed -o {out} --parts 3"),
    case("sort-parts-packed", "sort -u {in}/lines -o {out} --parts 2 --compress zstd"),
    case("sort-to-packed", "sort -k1,1n {in}/lines -o {out} --compress gzip"),
    case("sort-cut-record", "sort {in}/lines -o {out} --format fixed:7", status=1, says="7"),
)

SEARCHED = (
    case("grep", "grep -n -e be -e [0-9]7 {in}/text {in}/lines", json=False),
    case("grep-packed", "grep -c -w be {in}/packed {in}/rows.tsv", json=False),
    case("grep-nothing", "grep -i nowhere {in}/text", status=1, json=False),
    case("grep-missing", "grep be {in}/nowhere", status=2, says="no such file", json=False),
)

COUNTED = (
    case("wordcount", "wordcount {in}/text {out}"),
    case("wordcount-parts", "wordcount {in}/text {out} --parts 3"),
    case("wordcount-packed", "wordcount {in}/packed {out} --parts 2"),
    case("wordcount-top", "wordcount {in}/text {out} --top 5 --min 2 --fold-case --tokens [a-z]+"),
    case("matchcount", "matchcount [a-z]+ {in}/text {out}"),
    case("distinct", "distinct {in}/text -o {out} --count"),
    case("distinct-replaces", "distinct {in}/text -o {out}", "distinct {out} -o {out} --count"),
    case("distinct-once", "distinct {in}/packed -o {out} --once --parts 2"),
    case("distinct-to-stdout", "distinct {in}/packed --repeated", json=False),
    case("distinct-rows", "distinct --csv --key name --keep last {in}/users.csv -o {out}"),
    case("distinct-sorted", "distinct --csv --key name --sorted {in}/users.csv -o {out}"),
    case("distinct-parts", "distinct {in}/text {in}/packed -o {out} --keep last --parts 3"),
    case(  # how much is brought together follows from the memory, which is not the same everywhere
        "distinct-spilling",
        f"distinct {{in}}/large {{in}}/packed -o {{out}} {LITTLE}",
        json=False,
    ),
    case("group", "group --csv --by name --count --max id {in}/users.csv -o {out} --parts 2"),
    case("group-median", "group --csv --sum id --median id {in}/users.csv", json=False),
    case("distinct-padded", "distinct --csv --key name --ragged pad {in}/users.csv -o {out}"),
    case("group-lines", "group --by 1 --count --distinct 2 {in}/text", json=False),
    case("top", "top 3 --csv --key id:num:desc {in}/users.csv -o {out}"),
    case("top-by", "top 1 --by 1 {in}/text -o {out} --parts 2"),
    case("join", "join --csv --by id --how left {in}/users.csv {in}/users.csv -o {out} --parts 2"),
    case("join-lines", "join --by 1 {in}/text {in}/packed -o {out} --how semi"),
    case(
        "join-lines-as-gnu", "join -a1 -i -e- --header --fields auto {in}/text {in}/packed -o {out}"
    ),
    case(
        "join-three",
        "join --csv --by id --how full {in}/users.csv {in}/users.csv {in}/users.csv -o {out}",
    ),
    case("sample", "sample -n 5 {in}/text -o {out}"),
    case("shuf-zero", "shuf -z {in}/zeros -o {out}"),
    case("shuf", "shuf --csv {in}/users.csv -o {out} --parts 2"),
    case("split", "split --by 1 {in}/text {out}"),
    case("split-lines", "split --csv --lines 2 {in}/users.csv {out}"),
    case(
        "split-overwrite",
        "split --csv --by name {in}/users.csv {out}",
        "split --by 1 {in}/text {out} --overwrite",
    ),
    case("wordcount-nothing", "wordcount {in}/nothing {out} --parts 2"),
    case(
        "wordcount-compressed-runs",
        "wordcount {in}/text {out} --parts 2 --compress-runs zstd",
    ),
    case(
        "wordcount-overwrite",
        "wordcount {in}/lines {out} --parts 3",
        "wordcount {in}/text {out} --parts 2 --overwrite",
    ),
)

PYTHON = (
    python("map-only"),
    python("compressed-runs", "function --compress-runs zstd", everywhere=True),
    python("to-jsonl"),
    python("to-csv"),
    python("to-parquet", everywhere=True),
    python("to-arrow"),
    python("to-zstd"),
    python("without-output"),
    python("function", everywhere=True),
    python("combined", everywhere=True),
    python("batches"),
    *(
        python(name, f"aggregate --set name={name}")
        for name in ("mean", "top", "distinct", "quantiles", "first")
    ),
    python("sorted-values", everywhere=True),
    python("grouped"),
    python("in-ranges"),
    python("in-sampled-ranges", everywhere=True),
    python("by-length"),
    python("join", everywhere=True),
    python("packed", everywhere=True),
    python("fixed"),
    python("delimited"),
    python("tables"),
    python("whole"),
    python("several-lines"),
    python("items"),
    python("chain", everywhere=True),
    python("side-files", "side_files --set files={files}", everywhere=True),
    python("skipped", everywhere=True),
    python("skipped-too-many", "skipped --set most=2", status=1, says="skip_bad allows 2"),
    python("bad-map", status=1, says="ZeroDivisionError: division by zero"),
    python("bad-reduce", status=1, says="ValueError: no question"),
    python("crash", everywhere=True, status=1, says="exited with code 3"),
    python("again", "again --set gate={gate}", everywhere=True),
    case(
        "python-overwrite",
        "python map_only --output {out}",
        "python function --output {out} --overwrite",
    ),
    case("resume", "killed stays --output {out} --set gate={gate}", "resume last"),
)

STREAMED = (
    script("map-only", "-mapper mapper.py -numReduceTasks 0"),
    script("reduce", "-mapper mapper.py -reducer reducer.py -numReduceTasks 3", everywhere=True),
    script(
        "combiner", "-mapper mapper.py -combiner reducer.py -reducer reducer.py -numReduceTasks 2"
    ),
    script(
        "compressed-runs",
        "-mapper cat -reducer cat -numReduceTasks 2 --compress-runs zstd",
    ),
    script("cat", "-mapper cat -reducer cat -D mapreduce.job.maps=4"),
)

COPIED = (
    case("cp", "cp {in}/text/ {out} --verify"),
    case("cp-pieces", "cp {in}/large/ {out} --verify --split-size 4M"),
    case("cp-again", "cp {in}/text/ {out}", "cp {in}/packed/ {out} --update --delete"),
    case("cp-none", "cp {in}/no-such-name {out}", status=1, says="no such file or directory"),
)

CASES = (*GENERATED, *TERASORTED, *SORTED, *SEARCHED, *COUNTED, *PYTHON, *STREAMED, *COPIED)

CLUSTERED = frozenset(
    {
        "teragen-files",
        "teragen-overwrite",
        "terasort-parts",
        "terasort-skew",
        "terasort-empty",
        "terasort-spilling",
        "terasort-compressed-runs",
        "terasort-overwrite",
        "terasort-of-text",
        "teravalidate-sorted",
        "sort",
        "sort-unique",
        "sort-records",
        "sort-spilling",
        "sort-keys",
        "sort-keys-spilling",
        "sort-table",
        "sort-parts",
        "sort-packed",
        "wordcount-parts",
        "wordcount-top",
        "join-lines",
        "matchcount",
        "distinct",
        "distinct-parts",
        "distinct-spilling",
        "wordcount-compressed-runs",
        "python-map-only",
        "python-function",
        "python-combined",
        "python-to-parquet",
        "python-in-sampled-ranges",
        "python-join",
        "python-side-files",
        "python-chain",
        "streaming-reduce",
        "streaming-combiner",
        "cp",
        "cp-pieces",
        "cp-again",
    }
)
"""The cases that also run on a cluster."""
