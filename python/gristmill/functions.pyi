# Made by `make format` from the engine's table of commands; not to be edited.
from collections.abc import Iterable, Mapping
from typing import Literal

from gristmill.mapreduce.submit.job import Job
from gristmill.names import StrPath
from gristmill.report import JobReport

__all__ = ["cp", "group", "join", "matchcount", "resume", "sample", "shuf", "sort", "split_by", "teragen", "terasort", "teravalidate", "top_records", "unique", "wordcount"]

def sort(
    inputs: StrPath | Job | Iterable[StrPath | Job] | None = ...,
    *,
    output: StrPath | None = ...,
    format: str | None = ...,
    reverse: bool = ...,
    unique: bool = ...,
    stable: bool = ...,
    key: str | Iterable[str] | None = ...,
    field_separator: str | None = ...,
    csv: bool = ...,
    tsv: bool = ...,
    no_header: bool = ...,
    skip_bad: int | None = ...,
    ragged: Literal["error", "pad", "drop"] = ...,
    comment: str | None = ...,
    numeric_sort: bool = ...,
    general_numeric_sort: bool = ...,
    human_numeric_sort: bool = ...,
    version_sort: bool = ...,
    month_sort: bool = ...,
    ignore_case: bool = ...,
    dictionary_order: bool = ...,
    ignore_nonprinting: bool = ...,
    ignore_leading_blanks: bool = ...,
    sort: str | None = ...,
    zero_terminated: bool = ...,
    merge: bool = ...,
    parts: int | None = ...,
    compress: Literal["none", "gzip", "zstd", "bzip2", "xz", "lz4"] = ...,
    check: bool = ...,
    memory: int | str | None = ...,
    workers: int | None = ...,
    runner: Literal["threads", "processes"] = ...,
    on: Literal["local", "ray"] = ...,
    nodes: int | None = ...,
    collect: bool = ...,
    spill_dir: StrPath | Iterable[StrPath] | None = ...,
    compress_runs: Literal["none", "lz4", "zstd"] = ...,
    shuffle: Literal["auto", "immediate", "two-level", "iterative"] = ...,
    rounds: str | None = ...,
    store_option: Mapping[str, str] | Iterable[str] | None = ...,
    overwrite: bool = ...,
    no_sync: bool = ...,
    replication: int | None = ...,
    block_size: int | str | None = ...,
    history: bool = ...,
) -> JobReport:
    r"""Sort lines as LC_ALL=C sort does, tables by their columns, or records; files of any size.

    An input may be a `gm.Job`, which runs first. Without an `output` it writes its records as a
    table for this command alone.

    Args:
        inputs: Files, or directories whose files are read; tables of Parquet, if their names end in
            .parquet; - is standard input, which is also read without INPUT. By default standard
            input.
        output: The file to write; Parquet, if its name ends in .parquet. If it exists, the finished
            output replaces it in one step, also if it is an input. With --parts: a new directory.
            By default standard output.
        format: What a record is: lines, fixed:LEN or fixed:LEN:KEYLEN (bytes). By default lines.
        reverse: Larger keys first.
        unique: Write only the first of records with equal keys.
        stable: Keep records with equal keys in input order; without it, all their bytes decide.
        key: A key, as F[.C][OPTS][,F[.C][OPTS]]: from field F, character C, to the end of the line
            or of the second field. OPTS are letters of the options -b, -d, -f, -g, -h, -i, -M, -n,
            -r and -V, for this key alone. Repeatable: a later key decides if the earlier ones are
            equal. With --csv or --tsv, columns with commas between them, by name or number:
            price:num:desc,name. If a column is named 3, 3 is that column, else the third; #3 is
            always the third. By default the whole line.
        field_separator: The byte between fields; \t is a tab, \0 is NUL. By default a field begins
            at the first blank after a byte that is not a blank.
        csv: The input is a table with commas, quotes and a header, which stays first; equal rows
            keep their order. Keys (-k) are columns. Add :desc, :num, :nocase, :version, :human,
            :month, :asc or :text to a column.
        tsv: The same with tabs. With another separator: --csv -t ';'.
        no_header: The table has no header: its first row is sorted like all others, and columns
            have numbers, from 1 on.
        skip_bad: How many rows of a table may be left out because their number of fields is not
            that of the header, or of the first row without a header. By default none.
        ragged: What becomes of a row with more or fewer fields than the header, or than the first
            row without a header. error: the job ends. pad: empty cells are added to a short one; a
            long one is an error. drop: it is left out, as --skip-bad does it, but without a limit.
            By default error.
        comment: Lines of a table that begin with this, such as # or //, are comments, and are left
            out. By default none.
        numeric_sort: Compare numbers: -1.5, 2, 10.
        general_numeric_sort: Compare numbers as C reads them: 1e3, 0x10, inf.
        human_numeric_sort: Compare numbers with units: 2K, 1G.
        version_sort: Compare names with versions in them: a-1.9, a-1.10.
        month_sort: Compare names of months: JAN, Feb, dec.
        ignore_case: Take a to z as A to Z.
        dictionary_order: Compare letters, digits and blanks only.
        ignore_nonprinting: Compare printable ASCII characters only.
        ignore_leading_blanks: Skip blanks at the beginning of keys.
        sort: The order of keys, as a word: general-numeric, human-numeric, month, numeric or
            version. The same as -g, -h, -M, -n or -V. By default byte order.
        zero_terminated: Lines end with NUL, in the input and in the output.
        merge: Accepted, as in GNU sort; the inputs are sorted again.
        parts: Write the output as N files, part-r-00000 and so on, in a directory. Concatenated in
            this order, they are the output. By default one file.
        compress: How the output is compressed, each part for itself. Compressed input is read
            without an option. By default none.
        check: Sort nothing: exit with 0 if the input is in order, with 1 if it is not.
        memory: Most memory that the job may use, such as 512M, 8G or 1GiB. By default 60 % of what
            is available.
        workers: How many tasks run at once. The output does not depend on it. By default one for
            each core.
        runner: Where tasks run: in threads of this process, or in worker processes. The output does
            not depend on it. By default threads.
        on: Where the job runs: on this machine, or on a Ray cluster (the one of RAY_ADDRESS, or of
            this machine). On the command line also http://HOST:8265, the address of a Ray
            dashboard: Gristmill submits the command to that cluster. The output does not depend on
            it. By default local.
        nodes: On how many nodes of a cluster the job may run. The output does not depend on it. By
            default all of them.
        collect: Write the output of a job on a cluster on the machine where it was started. Then
            the nodes need not see the output directory.
        spill_dir: A directory for sorted runs, which are written when the input is larger than
            memory. Repeatable: Gristmill uses the first with enough room. By default beside the
            output; the current directory if that is not on a disk of this machine, or TMPDIR if
            nothing can be made there; on a cluster, the temporary directory of each node.
        compress_runs: How sorted runs on disk are compressed: lz4 takes little CPU time, zstd makes
            them smaller. Spares space for runs, and time where their disk is slow. The output does
            not depend on it. By default none.
        shuffle: How sorted runs come to the last merge: immediate (all partitions at once), two-
            level (first a slice for each node) or iterative (few slices, again and again). The
            output does not depend on it. By default auto, the one that costs least.
        rounds: Into how many slices each round of an iterative shuffle cuts, such as 4,5,4; the
            last number stands for the last merge, which makes the parts. To study shuffles: see the
            page of shuffles. By default three even ones, where the shuffle is iterative.
        store_option: How S3 is reached; repeatable: endpoint, region, profile, addressing_style
            (path or virtual), connect_timeout and request_timeout (seconds),
            max_concurrent_requests. By default as the environment and ~/.aws say.
        overwrite: Replace the output directory if it exists. On a local disk this is one step;
            elsewhere readers may see no output, or a part of it, for a moment. An output that is
            one file is always replaced.
        no_sync: Do not wait until the output is durable. Faster; a power failure can lose it.
        replication: How many copies HDFS keeps of each block of the output. By default as Hadoop is
            configured.
        block_size: How long the output's blocks are in HDFS, such as 128MiB: a multiple of 512
            bytes. By default as Hadoop is configured.
        history: Keep the job's history also if it takes less than a second.

    Returns:
        The job's report.

    Raises:
        ValueError: An option makes no sense, or the input is not what the job needs.
        FileNotFoundError: An input does not exist.
        FileExistsError: The output exists.
        MemoryError: `memory` is too small.
        OSError: An input cannot be read, or the output cannot be written.

    Example:
        >>> import tempfile, gristmill
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "words")
        ...     _ = path.write_text("pear\nfig\napple\nfig\n")
        ...     report = gristmill.sort(path, output=path, unique=True)
        ...     path.read_text().split(), report.records, report.duplicate_keys
        (['apple', 'fig', 'pear'], 3, 1)
    """

def teragen(
    rows: int | str,
    output: StrPath,
    *,
    layout: Literal["hadoop", "gensort", "ascii"] = ...,
    skew: bool = ...,
    start: int | str | None = ...,
    files: int | None = ...,
    memory: int | str | None = ...,
    workers: int | None = ...,
    runner: Literal["threads", "processes"] = ...,
    on: Literal["local", "ray"] = ...,
    nodes: int | None = ...,
    collect: bool = ...,
    split_size: int | str | None = ...,
    store_option: Mapping[str, str] | Iterable[str] | None = ...,
    overwrite: bool = ...,
    no_sync: bool = ...,
    replication: int | None = ...,
    block_size: int | str | None = ...,
    history: bool = ...,
) -> JobReport:
    r"""Make records of the sort benchmark: 100 bytes each, the first ten the key.

    Args:
        rows: How many records; k, m, b, t stand for 10^3, 10^6, 10^9, 10^12.
        output: The directory to make.
        layout: Bytes after the key: as Hadoop's TeraGen, as gensort 1.5 (incompressible), or as
            gensort -a (text). By default hadoop.
        skew: Let keys share prefixes, as gensort -s does.
        start: The number of the first record. By default 0.
        files: How many part files. By default one for each 256 MB.
        memory: Most memory that the job may use, such as 512M, 8G or 1GiB. By default 60 % of what
            is available.
        workers: How many tasks run at once. The output does not depend on it. By default one for
            each core.
        runner: Where tasks run: in threads of this process, or in worker processes. The output does
            not depend on it. By default threads.
        on: Where the job runs: on this machine, or on a Ray cluster (the one of RAY_ADDRESS, or of
            this machine). On the command line also http://HOST:8265, the address of a Ray
            dashboard: Gristmill submits the command to that cluster. The output does not depend on
            it. By default local.
        nodes: On how many nodes of a cluster the job may run. The output does not depend on it. By
            default all of them.
        collect: Write the output of a job on a cluster on the machine where it was started. Then
            the nodes need not see the output directory.
        split_size: How many bytes one task handles, such as 64M. Try several sizes to find the
            fastest for a store. The output does not depend on it. By default chosen from the size
            of the input.
        store_option: How S3 is reached; repeatable: endpoint, region, profile, addressing_style
            (path or virtual), connect_timeout and request_timeout (seconds),
            max_concurrent_requests. By default as the environment and ~/.aws say.
        overwrite: Replace the output directory if it exists. On a local disk this is one step;
            elsewhere readers may see no output, or a part of it, for a moment. An output that is
            one file is always replaced.
        no_sync: Do not wait until the output is durable. Faster; a power failure can lose it.
        replication: How many copies HDFS keeps of each block of the output. By default as Hadoop is
            configured.
        block_size: How long the output's blocks are in HDFS, such as 128MiB: a multiple of 512
            bytes. By default as Hadoop is configured.
        history: Keep the job's history also if it takes less than a second.

    Returns:
        The job's report.

    Raises:
        ValueError: An option makes no sense, or the input is not what the job needs.
        FileNotFoundError: An input does not exist.
        FileExistsError: The output exists.
        MemoryError: `memory` is too small.
        OSError: An input cannot be read, or the output cannot be written.

    Example:
        >>> import tempfile, gristmill
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     report = gristmill.teragen("1k", f"{folder}/data")
        >>> report.records, report.checksum
        (1000, '1f9ffe645ec')
    """

def terasort(
    inputs: StrPath | Iterable[StrPath],
    output: StrPath,
    *,
    partitions: int | None = ...,
    memory: int | str | None = ...,
    workers: int | None = ...,
    runner: Literal["threads", "processes"] = ...,
    on: Literal["local", "ray"] = ...,
    nodes: int | None = ...,
    collect: bool = ...,
    spill_dir: StrPath | Iterable[StrPath] | None = ...,
    compress_runs: Literal["none", "lz4", "zstd"] = ...,
    shuffle: Literal["auto", "immediate", "two-level", "iterative"] = ...,
    rounds: str | None = ...,
    split_size: int | str | None = ...,
    store_option: Mapping[str, str] | Iterable[str] | None = ...,
    overwrite: bool = ...,
    no_sync: bool = ...,
    replication: int | None = ...,
    block_size: int | str | None = ...,
    history: bool = ...,
) -> JobReport:
    r"""Sort 100-byte records by their first ten bytes, and prove the result.

    Args:
        inputs: Files, or directories whose files are read (not those whose names begin with _ or
            .).
        output: The directory to make.
        partitions: How many part files the output is cut into, each with a range of the keys. By
            default one for each 256 MB.
        memory: Most memory that the job may use, such as 512M, 8G or 1GiB. By default 60 % of what
            is available.
        workers: How many tasks run at once. The output does not depend on it. By default one for
            each core.
        runner: Where tasks run: in threads of this process, or in worker processes. The output does
            not depend on it. By default threads.
        on: Where the job runs: on this machine, or on a Ray cluster (the one of RAY_ADDRESS, or of
            this machine). On the command line also http://HOST:8265, the address of a Ray
            dashboard: Gristmill submits the command to that cluster. The output does not depend on
            it. By default local.
        nodes: On how many nodes of a cluster the job may run. The output does not depend on it. By
            default all of them.
        collect: Write the output of a job on a cluster on the machine where it was started. Then
            the nodes need not see the output directory.
        spill_dir: A directory for sorted runs, which are written when the input is larger than
            memory. Repeatable: Gristmill uses the first with enough room. By default beside the
            output; the current directory if that is not on a disk of this machine, or TMPDIR if
            nothing can be made there; on a cluster, the temporary directory of each node.
        compress_runs: How sorted runs on disk are compressed: lz4 takes little CPU time, zstd makes
            them smaller. Spares space for runs, and time where their disk is slow. The output does
            not depend on it. By default none.
        shuffle: How sorted runs come to the last merge: immediate (all partitions at once), two-
            level (first a slice for each node) or iterative (few slices, again and again). The
            output does not depend on it. By default auto, the one that costs least.
        rounds: Into how many slices each round of an iterative shuffle cuts, such as 4,5,4; the
            last number stands for the last merge, which makes the parts. To study shuffles: see the
            page of shuffles. By default three even ones, where the shuffle is iterative.
        split_size: How many bytes one task handles, such as 64M. Try several sizes to find the
            fastest for a store. The output does not depend on it. By default chosen from the size
            of the input.
        store_option: How S3 is reached; repeatable: endpoint, region, profile, addressing_style
            (path or virtual), connect_timeout and request_timeout (seconds),
            max_concurrent_requests. By default as the environment and ~/.aws say.
        overwrite: Replace the output directory if it exists. On a local disk this is one step;
            elsewhere readers may see no output, or a part of it, for a moment. An output that is
            one file is always replaced.
        no_sync: Do not wait until the output is durable. Faster; a power failure can lose it.
        replication: How many copies HDFS keeps of each block of the output. By default as Hadoop is
            configured.
        block_size: How long the output's blocks are in HDFS, such as 128MiB: a multiple of 512
            bytes. By default as Hadoop is configured.
        history: Keep the job's history also if it takes less than a second.

    Returns:
        The job's report.

    Raises:
        ValueError: An option makes no sense, or the input is not what the job needs.
        FileNotFoundError: An input does not exist.
        FileExistsError: The output exists.
        MemoryError: `memory` is too small.
        OSError: An input cannot be read, or the output cannot be written.

    Example:
        >>> import tempfile, gristmill
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = gristmill.teragen("1k", f"{folder}/data")
        ...     report = gristmill.terasort(f"{folder}/data", f"{folder}/sorted", memory="100M")
        >>> report.duplicate_keys, report.checksum == made.checksum
        (0, True)
    """

def teravalidate(
    input: StrPath,
    *,
    against: StrPath | None = ...,
    memory: int | str | None = ...,
    workers: int | None = ...,
    runner: Literal["threads", "processes"] = ...,
    on: Literal["local", "ray"] = ...,
    nodes: int | None = ...,
    split_size: int | str | None = ...,
    store_option: Mapping[str, str] | Iterable[str] | None = ...,
    history: bool = ...,
) -> JobReport:
    r"""Check that the files of a directory are in order, and sum the checksums of their records.

    With --json, the field `report` has the lines that Hadoop's TeraValidate writes. If the check
    fails, the exit code is 1; in Python it raises ValueError, and `gm.report_of(error)` gives the
    report.

    Args:
        input: The directory to check.
        against: Check that the records are those of this file or directory, or have this checksum
            in hexadecimal. By default nothing.
        memory: Most memory that the job may use, such as 512M, 8G or 1GiB. By default 60 % of what
            is available.
        workers: How many tasks run at once. The output does not depend on it. By default one for
            each core.
        runner: Where tasks run: in threads of this process, or in worker processes. The output does
            not depend on it. By default threads.
        on: Where the job runs: on this machine, or on a Ray cluster (the one of RAY_ADDRESS, or of
            this machine). On the command line also http://HOST:8265, the address of a Ray
            dashboard: Gristmill submits the command to that cluster. The output does not depend on
            it. By default local.
        nodes: On how many nodes of a cluster the job may run. The output does not depend on it. By
            default all of them.
        split_size: How many bytes one task handles, such as 64M. Try several sizes to find the
            fastest for a store. The output does not depend on it. By default chosen from the size
            of the input.
        store_option: How S3 is reached; repeatable: endpoint, region, profile, addressing_style
            (path or virtual), connect_timeout and request_timeout (seconds),
            max_concurrent_requests. By default as the environment and ~/.aws say.
        history: Keep the job's history also if it takes less than a second.

    Returns:
        The job's report.

    Raises:
        ValueError: An option makes no sense, or the input is not what the job needs.
        FileNotFoundError: An input does not exist.
        FileExistsError: The output exists.
        MemoryError: `memory` is too small.
        OSError: An input cannot be read, or the output cannot be written.

    Example:
        >>> import tempfile, gristmill
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = gristmill.teragen("1k", f"{folder}/data")
        ...     try:
        ...         gristmill.teravalidate(f"{folder}/data")
        ...     except ValueError as error:
        ...         gristmill.report_of(error).misorders
        483
    """

def wordcount(
    inputs: StrPath | Iterable[StrPath],
    output: StrPath,
    *,
    parts: int | None = ...,
    ignore_case: bool = ...,
    fold_case: bool = ...,
    tokens: str | None = ...,
    top: int | None = ...,
    min: int | None = ...,
    memory: int | str | None = ...,
    workers: int | None = ...,
    runner: Literal["threads", "processes"] = ...,
    on: Literal["local", "ray"] = ...,
    nodes: int | None = ...,
    collect: bool = ...,
    spill_dir: StrPath | Iterable[StrPath] | None = ...,
    compress_runs: Literal["none", "lz4", "zstd"] = ...,
    shuffle: Literal["auto", "immediate", "two-level", "iterative"] = ...,
    rounds: str | None = ...,
    store_option: Mapping[str, str] | Iterable[str] | None = ...,
    overwrite: bool = ...,
    no_sync: bool = ...,
    replication: int | None = ...,
    block_size: int | str | None = ...,
    history: bool = ...,
) -> JobReport:
    r"""Count how often each word occurs: lines of word, tab, count, in byte order in each part.

    Words stand between spaces, tabs, LF, CR and FF, as in Hadoop's example.

    Args:
        inputs: Files, or directories whose files are read (not those whose names begin with _ or
            .); compressed ones, too; - is standard input.
        output: The directory to make.
        parts: How many part files. The hash of a word decides its part, as in Hadoop. By default
            one for each 256 MB of input.
        ignore_case: Count The and the as one word, the. Only ASCII letters have a case here.
        fold_case: The same for all letters that have a lower case in Unicode: ÉTÉ and été are one
            word.
        tokens: A regular expression: its matches in a line are the words, such as [a-z]+. By
            default what stands between spaces, tabs, LF, CR and FF.
        top: Only the N words that occur most often, the most frequent first, in one part. By
            default all of them, in byte order.
        min: Leave out words that occur fewer than N times. By default 1.
        memory: Most memory that the job may use, such as 512M, 8G or 1GiB. By default 60 % of what
            is available.
        workers: How many tasks run at once. The output does not depend on it. By default one for
            each core.
        runner: Where tasks run: in threads of this process, or in worker processes. The output does
            not depend on it. By default threads.
        on: Where the job runs: on this machine, or on a Ray cluster (the one of RAY_ADDRESS, or of
            this machine). On the command line also http://HOST:8265, the address of a Ray
            dashboard: Gristmill submits the command to that cluster. The output does not depend on
            it. By default local.
        nodes: On how many nodes of a cluster the job may run. The output does not depend on it. By
            default all of them.
        collect: Write the output of a job on a cluster on the machine where it was started. Then
            the nodes need not see the output directory.
        spill_dir: A directory for sorted runs, which are written when the input is larger than
            memory. Repeatable: Gristmill uses the first with enough room. By default beside the
            output; the current directory if that is not on a disk of this machine, or TMPDIR if
            nothing can be made there; on a cluster, the temporary directory of each node.
        compress_runs: How sorted runs on disk are compressed: lz4 takes little CPU time, zstd makes
            them smaller. Spares space for runs, and time where their disk is slow. The output does
            not depend on it. By default none.
        shuffle: How sorted runs come to the last merge: immediate (all partitions at once), two-
            level (first a slice for each node) or iterative (few slices, again and again). The
            output does not depend on it. By default auto, the one that costs least.
        rounds: Into how many slices each round of an iterative shuffle cuts, such as 4,5,4; the
            last number stands for the last merge, which makes the parts. To study shuffles: see the
            page of shuffles. By default three even ones, where the shuffle is iterative.
        store_option: How S3 is reached; repeatable: endpoint, region, profile, addressing_style
            (path or virtual), connect_timeout and request_timeout (seconds),
            max_concurrent_requests. By default as the environment and ~/.aws say.
        overwrite: Replace the output directory if it exists. On a local disk this is one step;
            elsewhere readers may see no output, or a part of it, for a moment. An output that is
            one file is always replaced.
        no_sync: Do not wait until the output is durable. Faster; a power failure can lose it.
        replication: How many copies HDFS keeps of each block of the output. By default as Hadoop is
            configured.
        block_size: How long the output's blocks are in HDFS, such as 128MiB: a multiple of 512
            bytes. By default as Hadoop is configured.
        history: Keep the job's history also if it takes less than a second.

    Returns:
        The job's report.

    Raises:
        ValueError: An option makes no sense, or the input is not what the job needs.
        FileNotFoundError: An input does not exist.
        FileExistsError: The output exists.
        MemoryError: `memory` is too small.
        OSError: An input cannot be read, or the output cannot be written.

    Example:
        >>> import tempfile, gristmill
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "text").write_text("to be or\nnot to be")
        ...     report = gristmill.wordcount(f"{folder}/text", f"{folder}/counts")
        ...     print(Path(folder, "counts/part-r-00000").read_text().replace("\t", " "), end="")
        be 2
        not 1
        or 1
        to 2
    """

def matchcount(
    pattern: str,
    inputs: StrPath | Iterable[StrPath],
    output: StrPath,
    *,
    fixed_strings: bool = ...,
    ignore_case: bool = ...,
    word_regexp: bool = ...,
    line_regexp: bool = ...,
    top: int | None = ...,
    min: int | None = ...,
    memory: int | str | None = ...,
    workers: int | None = ...,
    runner: Literal["threads", "processes"] = ...,
    on: Literal["local", "ray"] = ...,
    nodes: int | None = ...,
    collect: bool = ...,
    spill_dir: StrPath | Iterable[StrPath] | None = ...,
    compress_runs: Literal["none", "lz4", "zstd"] = ...,
    shuffle: Literal["auto", "immediate", "two-level", "iterative"] = ...,
    rounds: str | None = ...,
    store_option: Mapping[str, str] | Iterable[str] | None = ...,
    overwrite: bool = ...,
    no_sync: bool = ...,
    replication: int | None = ...,
    block_size: int | str | None = ...,
    history: bool = ...,
) -> JobReport:
    r"""Count how often each match of a pattern occurs: lines of count, tab, match, largest first.

    The same as `grep --counts PATTERN IN... -o OUT`. One part, as by Hadoop's example grep.

    Args:
        pattern: A regular expression, as of `gristmill grep`.
        inputs: Files, or directories whose files are read (not those whose names begin with _ or
            .); compressed ones, too; - is standard input.
        output: The directory to make.
        fixed_strings: The pattern is text, not a regular expression.
        ignore_case: Upper and lower case are the same; each match is counted as it stands.
        word_regexp: A match must be a whole word.
        line_regexp: A match must be a whole line.
        top: Only the N matches that occur most often. By default all of them.
        min: Leave out matches that occur fewer than N times. By default 1.
        memory: Most memory that the job may use, such as 512M, 8G or 1GiB. By default 60 % of what
            is available.
        workers: How many tasks run at once. The output does not depend on it. By default one for
            each core.
        runner: Where tasks run: in threads of this process, or in worker processes. The output does
            not depend on it. By default threads.
        on: Where the job runs: on this machine, or on a Ray cluster (the one of RAY_ADDRESS, or of
            this machine). On the command line also http://HOST:8265, the address of a Ray
            dashboard: Gristmill submits the command to that cluster. The output does not depend on
            it. By default local.
        nodes: On how many nodes of a cluster the job may run. The output does not depend on it. By
            default all of them.
        collect: Write the output of a job on a cluster on the machine where it was started. Then
            the nodes need not see the output directory.
        spill_dir: A directory for sorted runs, which are written when the input is larger than
            memory. Repeatable: Gristmill uses the first with enough room. By default beside the
            output; the current directory if that is not on a disk of this machine, or TMPDIR if
            nothing can be made there; on a cluster, the temporary directory of each node.
        compress_runs: How sorted runs on disk are compressed: lz4 takes little CPU time, zstd makes
            them smaller. Spares space for runs, and time where their disk is slow. The output does
            not depend on it. By default none.
        shuffle: How sorted runs come to the last merge: immediate (all partitions at once), two-
            level (first a slice for each node) or iterative (few slices, again and again). The
            output does not depend on it. By default auto, the one that costs least.
        rounds: Into how many slices each round of an iterative shuffle cuts, such as 4,5,4; the
            last number stands for the last merge, which makes the parts. To study shuffles: see the
            page of shuffles. By default three even ones, where the shuffle is iterative.
        store_option: How S3 is reached; repeatable: endpoint, region, profile, addressing_style
            (path or virtual), connect_timeout and request_timeout (seconds),
            max_concurrent_requests. By default as the environment and ~/.aws say.
        overwrite: Replace the output directory if it exists. On a local disk this is one step;
            elsewhere readers may see no output, or a part of it, for a moment. An output that is
            one file is always replaced.
        no_sync: Do not wait until the output is durable. Faster; a power failure can lose it.
        replication: How many copies HDFS keeps of each block of the output. By default as Hadoop is
            configured.
        block_size: How long the output's blocks are in HDFS, such as 128MiB: a multiple of 512
            bytes. By default as Hadoop is configured.
        history: Keep the job's history also if it takes less than a second.

    Returns:
        The job's report.

    Raises:
        ValueError: An option makes no sense, or the input is not what the job needs.
        FileNotFoundError: An input does not exist.
        FileExistsError: The output exists.
        MemoryError: `memory` is too small.
        OSError: An input cannot be read, or the output cannot be written.

    Example:
        >>> import tempfile, gristmill
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "text").write_text("to be or\nnot to be")
        ...     report = gristmill.matchcount("[a-z]o", f"{folder}/text", f"{folder}/counts")
        ...     print(Path(folder, "counts/part-r-00000").read_text().replace("\t", " "), end="")
        2 to
        1 no
    """

def unique(
    inputs: StrPath | Job | Iterable[StrPath | Job] | None = ...,
    *,
    key: str | Iterable[str] | None = ...,
    jsonl: bool = ...,
    keep: str | None = ...,
    count: bool = ...,
    repeated: bool = ...,
    once: bool = ...,
    numeric_sort: bool = ...,
    general_numeric_sort: bool = ...,
    ignore_case: bool = ...,
    ignore_leading_blanks: bool = ...,
    sorted: bool = ...,
    parts: int | None = ...,
    output: StrPath | None = ...,
    csv: bool = ...,
    tsv: bool = ...,
    no_header: bool = ...,
    skip_bad: int | None = ...,
    ragged: Literal["error", "pad", "drop"] = ...,
    comment: str | None = ...,
    field_separator: str | None = ...,
    zero_terminated: bool = ...,
    memory: int | str | None = ...,
    workers: int | None = ...,
    runner: Literal["threads", "processes"] = ...,
    on: Literal["local", "ray"] = ...,
    nodes: int | None = ...,
    collect: bool = ...,
    spill_dir: StrPath | Iterable[StrPath] | None = ...,
    compress_runs: Literal["none", "lz4", "zstd"] = ...,
    shuffle: Literal["auto", "immediate", "two-level", "iterative"] = ...,
    rounds: str | None = ...,
    store_option: Mapping[str, str] | Iterable[str] | None = ...,
    overwrite: bool = ...,
    no_sync: bool = ...,
    replication: int | None = ...,
    block_size: int | str | None = ...,
    history: bool = ...,
) -> JobReport:
    r"""Keep one of each line, or one record of each key; count them, or keep those that occur once or again.

    As `awk '!seen[$0]++'` does, or `sort | uniq`, with all cores and data bigger than memory. What
    is kept is in the order of the input; with sorted, in the order of the keys.

    An input may be a `gm.Job`, which runs first. Without an `output` it writes its records as a
    table for this command alone.

    Args:
        inputs: Files, or directories whose files are read (not those whose names begin with _ or
            .); compressed ones, too, and tables of Parquet, if their names end in .parquet; - is
            standard input, which is also read without INPUT. By default standard input.
        key: Keep one record of each key. With --csv or --tsv, columns with commas between them, by
            name or number: id,city; add :nocase or :num to compare letters of both cases, or
            numbers, as equal. For lines F[.C][OPTS][,F[.C][OPTS]], as GNU sort has it. Repeatable.
            By default the whole line; of a table, all columns.
        jsonl: Each line is a JSON object, and columns are paths into it: user.id. A value that is
            null or not there is empty. Lines are written as they stood.
        keep: Which record of a key: the first, or the last in the order of the input. By default
            first.
        count: Write how often each occurs: in front of a line, as uniq -c does; of a table, in a
            last column, count.
        repeated: Only what occurs more than once.
        once: Only what occurs once.
        numeric_sort: Keys are equal if they are equal numbers: 1, 1.0, 01.
        general_numeric_sort: The same for numbers as C reads them: 1e3, 0x10, inf.
        ignore_case: Take a to z as A to Z.
        ignore_leading_blanks: Skip blanks at the beginning of keys.
        sorted: Put the output in the order of the keys; one task writes it. Without it, it is in
            the order of the input, for which all that is kept is written to disk and read once
            more.
        parts: Write the output as N files, part-r-00000 and so on, in a directory, each of about as
            many bytes of the input. One behind the other they are the same, however many they are.
            By default one file.
        output: The file to write; Parquet, if its name ends in .parquet. If it exists, the finished
            output replaces it in one step, also if it is an input. With --parts, where the command
            has it: a new directory. By default standard output.
        csv: The input is a table with commas, quotes and a header; so is the output.
        tsv: The same with tabs. With another separator: --csv -t ';'.
        no_header: The table has no header: columns have numbers, from 1 on.
        skip_bad: How many rows of a table may be left out because their number of fields is not
            that of the header, or of the first row without a header. By default none.
        ragged: What becomes of a row with more or fewer fields than the header, or than the first
            row without a header. error: the job ends. pad: empty cells are added to a short one; a
            long one is an error. drop: it is left out, as --skip-bad does it, but without a limit.
            By default error.
        comment: Lines of a table that begin with this, such as # or //, are comments, and are left
            out. By default none.
        field_separator: The byte between fields; \t is a tab, \0 is NUL. By default blanks; of a
            table the comma, or with --tsv the tab.
        zero_terminated: Lines end with NUL, in the input and in the output.
        memory: Most memory that the job may use, such as 512M, 8G or 1GiB. By default 60 % of what
            is available.
        workers: How many tasks run at once. The output does not depend on it. By default one for
            each core.
        runner: Where tasks run: in threads of this process, or in worker processes. The output does
            not depend on it. By default threads.
        on: Where the job runs: on this machine, or on a Ray cluster (the one of RAY_ADDRESS, or of
            this machine). On the command line also http://HOST:8265, the address of a Ray
            dashboard: Gristmill submits the command to that cluster. The output does not depend on
            it. By default local.
        nodes: On how many nodes of a cluster the job may run. The output does not depend on it. By
            default all of them.
        collect: Write the output of a job on a cluster on the machine where it was started. Then
            the nodes need not see the output directory.
        spill_dir: A directory for sorted runs, which are written when the input is larger than
            memory. Repeatable: Gristmill uses the first with enough room. By default beside the
            output; the current directory if that is not on a disk of this machine, or TMPDIR if
            nothing can be made there; on a cluster, the temporary directory of each node.
        compress_runs: How sorted runs on disk are compressed: lz4 takes little CPU time, zstd makes
            them smaller. Spares space for runs, and time where their disk is slow. The output does
            not depend on it. By default none.
        shuffle: How sorted runs come to the last merge: immediate (all partitions at once), two-
            level (first a slice for each node) or iterative (few slices, again and again). The
            output does not depend on it. By default auto, the one that costs least.
        rounds: Into how many slices each round of an iterative shuffle cuts, such as 4,5,4; the
            last number stands for the last merge, which makes the parts. To study shuffles: see the
            page of shuffles. By default three even ones, where the shuffle is iterative.
        store_option: How S3 is reached; repeatable: endpoint, region, profile, addressing_style
            (path or virtual), connect_timeout and request_timeout (seconds),
            max_concurrent_requests. By default as the environment and ~/.aws say.
        overwrite: Replace the output directory if it exists. On a local disk this is one step;
            elsewhere readers may see no output, or a part of it, for a moment. An output that is
            one file is always replaced.
        no_sync: Do not wait until the output is durable. Faster; a power failure can lose it.
        replication: How many copies HDFS keeps of each block of the output. By default as Hadoop is
            configured.
        block_size: How long the output's blocks are in HDFS, such as 128MiB: a multiple of 512
            bytes. By default as Hadoop is configured.
        history: Keep the job's history also if it takes less than a second.

    Returns:
        The job's report.

    Raises:
        ValueError: An option makes no sense, or the input is not what the job needs.
        FileNotFoundError: An input does not exist.
        FileExistsError: The output exists.
        MemoryError: `memory` is too small.
        OSError: An input cannot be read, or the output cannot be written.

    Example:
        >>> import tempfile, gristmill
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "text").write_text("b\na\nb\n")
        ...     report = gristmill.unique(f"{folder}/text", output=f"{folder}/lines")
        ...     print(Path(folder, "lines").read_text(), end="")
        b
        a
    """

def group(
    inputs: StrPath | Job | Iterable[StrPath | Job] | None = ...,
    *,
    by: str | Iterable[str] | None = ...,
    count: bool = ...,
    sum: str | Iterable[str] | None = ...,
    mean: str | Iterable[str] | None = ...,
    min: str | Iterable[str] | None = ...,
    max: str | Iterable[str] | None = ...,
    median: str | Iterable[str] | None = ...,
    percentile: str | Iterable[str] | None = ...,
    distinct: str | Iterable[str] | None = ...,
    first: str | Iterable[str] | None = ...,
    last: str | Iterable[str] | None = ...,
    jsonl: bool = ...,
    sorted: bool = ...,
    parts: int | None = ...,
    output: StrPath | None = ...,
    csv: bool = ...,
    tsv: bool = ...,
    no_header: bool = ...,
    skip_bad: int | None = ...,
    ragged: Literal["error", "pad", "drop"] = ...,
    comment: str | None = ...,
    field_separator: str | None = ...,
    zero_terminated: bool = ...,
    memory: int | str | None = ...,
    workers: int | None = ...,
    runner: Literal["threads", "processes"] = ...,
    on: Literal["local", "ray"] = ...,
    nodes: int | None = ...,
    collect: bool = ...,
    spill_dir: StrPath | Iterable[StrPath] | None = ...,
    compress_runs: Literal["none", "lz4", "zstd"] = ...,
    shuffle: Literal["auto", "immediate", "two-level", "iterative"] = ...,
    rounds: str | None = ...,
    store_option: Mapping[str, str] | Iterable[str] | None = ...,
    overwrite: bool = ...,
    no_sync: bool = ...,
    replication: int | None = ...,
    block_size: int | str | None = ...,
    history: bool = ...,
) -> JobReport:
    r"""Group rows of tables, or lines with fields, by columns: counts, sums, means, percentiles and other figures.

    A row of each group: its key, then the figures, in the order of this help.

    An input may be a `gm.Job`, which runs first. Without an `output` it writes its records as a
    table for this command alone.

    Args:
        inputs: Files, or directories whose files are read (not those whose names begin with _ or
            .); compressed ones, too, and tables of Parquet, if their names end in .parquet; - is
            standard input, which is also read without INPUT. By default standard input.
        by: The columns whose values make a group, with commas between them: by name, or by number
            from 1 on. Repeatable. By default all rows are one group.
        count: How many rows a group has.
        sum: Columns to add up, exactly, decimals too. By default none.
        mean: Columns to take the mean of: their exact sum by how many there are, to 17 digits or as
            many as the sum has. By default none.
        min: Columns to take the least value of, as it is written. Text compares by its bytes, and
            is below all numbers. By default none.
        max: Columns to take the greatest value of, compared in the same way. By default none.
        median: Columns to take the median of, the lower one of two. By default none.
        percentile: P:COLUMN, such as 95:latency: the least value that P percent of the values do
            not exceed. Repeatable. By default none.
        distinct: Columns whose different values are counted. By default none.
        first: Columns to take the first value of, in the order of the input. By default none.
        last: Columns to take the last value of. By default none.
        jsonl: Each line is a JSON object, and columns are paths into it: user.id. A value that is
            null or not there is empty. Rows of the output are objects, too.
        sorted: Put the whole output in the order of the keys; one task writes it. Without it, only
            each part is in order, and there is a part for each 256 MB of input.
        parts: Write the output as N files, part-r-00000 and so on, in a directory. The hash of a
            key decides its part. By default one file.
        output: The file to write; Parquet, if its name ends in .parquet. If it exists, the finished
            output replaces it in one step, also if it is an input. With --parts, where the command
            has it: a new directory. By default standard output.
        csv: The input is a table with commas, quotes and a header; so is the output.
        tsv: The same with tabs. With another separator: --csv -t ';'.
        no_header: The table has no header: columns have numbers, from 1 on.
        skip_bad: How many rows of a table may be left out because their number of fields is not
            that of the header, or of the first row without a header. By default none.
        ragged: What becomes of a row with more or fewer fields than the header, or than the first
            row without a header. error: the job ends. pad: empty cells are added to a short one; a
            long one is an error. drop: it is left out, as --skip-bad does it, but without a limit.
            By default error.
        comment: Lines of a table that begin with this, such as # or //, are comments, and are left
            out. By default none.
        field_separator: The byte between fields; \t is a tab, \0 is NUL. By default blanks; of a
            table the comma, or with --tsv the tab.
        zero_terminated: Lines end with NUL, in the input and in the output.
        memory: Most memory that the job may use, such as 512M, 8G or 1GiB. By default 60 % of what
            is available.
        workers: How many tasks run at once. The output does not depend on it. By default one for
            each core.
        runner: Where tasks run: in threads of this process, or in worker processes. The output does
            not depend on it. By default threads.
        on: Where the job runs: on this machine, or on a Ray cluster (the one of RAY_ADDRESS, or of
            this machine). On the command line also http://HOST:8265, the address of a Ray
            dashboard: Gristmill submits the command to that cluster. The output does not depend on
            it. By default local.
        nodes: On how many nodes of a cluster the job may run. The output does not depend on it. By
            default all of them.
        collect: Write the output of a job on a cluster on the machine where it was started. Then
            the nodes need not see the output directory.
        spill_dir: A directory for sorted runs, which are written when the input is larger than
            memory. Repeatable: Gristmill uses the first with enough room. By default beside the
            output; the current directory if that is not on a disk of this machine, or TMPDIR if
            nothing can be made there; on a cluster, the temporary directory of each node.
        compress_runs: How sorted runs on disk are compressed: lz4 takes little CPU time, zstd makes
            them smaller. Spares space for runs, and time where their disk is slow. The output does
            not depend on it. By default none.
        shuffle: How sorted runs come to the last merge: immediate (all partitions at once), two-
            level (first a slice for each node) or iterative (few slices, again and again). The
            output does not depend on it. By default auto, the one that costs least.
        rounds: Into how many slices each round of an iterative shuffle cuts, such as 4,5,4; the
            last number stands for the last merge, which makes the parts. To study shuffles: see the
            page of shuffles. By default three even ones, where the shuffle is iterative.
        store_option: How S3 is reached; repeatable: endpoint, region, profile, addressing_style
            (path or virtual), connect_timeout and request_timeout (seconds),
            max_concurrent_requests. By default as the environment and ~/.aws say.
        overwrite: Replace the output directory if it exists. On a local disk this is one step;
            elsewhere readers may see no output, or a part of it, for a moment. An output that is
            one file is always replaced.
        no_sync: Do not wait until the output is durable. Faster; a power failure can lose it.
        replication: How many copies HDFS keeps of each block of the output. By default as Hadoop is
            configured.
        block_size: How long the output's blocks are in HDFS, such as 128MiB: a multiple of 512
            bytes. By default as Hadoop is configured.
        history: Keep the job's history also if it takes less than a second.

    Returns:
        The job's report.

    Raises:
        ValueError: An option makes no sense, or the input is not what the job needs.
        FileNotFoundError: An input does not exist.
        FileExistsError: The output exists.
        MemoryError: `memory` is too small.
        OSError: An input cannot be read, or the output cannot be written.

    Example:
        >>> import tempfile, gristmill
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "table").write_text("city,price\nRome,2\nBern,0.5\nRome,3\n")
        ...     report = gristmill.group(
        ...         f"{folder}/table", output=f"{folder}/out", csv=True, by=["city"], sum=["price"]
        ...     )
        ...     print(Path(folder, "out").read_text(), end="")
        city,price_sum
        Bern,0.5
        Rome,5
    """

def top_records(
    number: int,
    inputs: StrPath | Job | Iterable[StrPath | Job] | None = ...,
    *,
    key: str | Iterable[str] | None = ...,
    by: str | Iterable[str] | None = ...,
    ties: str | None = ...,
    numeric_sort: bool = ...,
    general_numeric_sort: bool = ...,
    human_numeric_sort: bool = ...,
    version_sort: bool = ...,
    month_sort: bool = ...,
    ignore_case: bool = ...,
    ignore_leading_blanks: bool = ...,
    jsonl: bool = ...,
    reverse: bool = ...,
    parts: int | None = ...,
    output: StrPath | None = ...,
    csv: bool = ...,
    tsv: bool = ...,
    no_header: bool = ...,
    skip_bad: int | None = ...,
    ragged: Literal["error", "pad", "drop"] = ...,
    comment: str | None = ...,
    field_separator: str | None = ...,
    zero_terminated: bool = ...,
    memory: int | str | None = ...,
    workers: int | None = ...,
    runner: Literal["threads", "processes"] = ...,
    on: Literal["local", "ray"] = ...,
    nodes: int | None = ...,
    collect: bool = ...,
    spill_dir: StrPath | Iterable[StrPath] | None = ...,
    compress_runs: Literal["none", "lz4", "zstd"] = ...,
    shuffle: Literal["auto", "immediate", "two-level", "iterative"] = ...,
    rounds: str | None = ...,
    store_option: Mapping[str, str] | Iterable[str] | None = ...,
    overwrite: bool = ...,
    no_sync: bool = ...,
    replication: int | None = ...,
    block_size: int | str | None = ...,
    history: bool = ...,
) -> JobReport:
    r"""Keep the N records that a sort would put first, of all or of each group, without sorting the others.

    As `sort -s | head -n N` does. For those with the largest price: --csv --key price:num:desc.

    An input may be a `gm.Job`, which runs first. Without an `output` it writes its records as a
    table for this command alone.

    Args:
        number: How many records, of all or of each group.
        inputs: Files, or directories whose files are read (not those whose names begin with _ or
            .); compressed ones, too, and tables of Parquet, if their names end in .parquet; - is
            standard input, which is also read without INPUT. By default standard input.
        key: A key, as of `gristmill sort`. With --csv or --tsv, columns with commas between them,
            by name or number: price:num:desc,name; for the largest first, :desc; also :nocase,
            :version, :human, :month, :asc and :text. For lines F[.C][OPTS][,F[.C][OPTS]], as GNU
            sort has it. Repeatable: a later key decides if the earlier ones are equal. By default
            the whole line; of a table, all columns in their order.
        by: The columns whose values make a group, with commas between them: by name, or by number
            from 1 on. The first N records of each group are written. Repeatable. By default all
            records are one group.
        ties: Of records whose keys are equal to those of the N-th: first takes no more than N, as
            they come in the input; all takes all of them. By default first.
        numeric_sort: Compare numbers: -1.5, 2, 10.
        general_numeric_sort: Compare numbers as C reads them: 1e3, 0x10, inf.
        human_numeric_sort: Compare numbers with units: 2K, 1G.
        version_sort: Compare names with versions in them: a-1.9, a-1.10.
        month_sort: Compare names of months: JAN, Feb, dec.
        ignore_case: Take a to z as A to Z.
        ignore_leading_blanks: Skip blanks at the beginning of keys.
        jsonl: Each line is a JSON object, and columns are paths into it: user.id. A value that is
            null or not there is empty. Lines are written as they stood.
        reverse: Larger keys first.
        parts: With --by: write the output as N files, part-r-00000 and so on, in a directory. The
            hash of a group's key decides its part. By default one file.
        output: The file to write; Parquet, if its name ends in .parquet. If it exists, the finished
            output replaces it in one step, also if it is an input. With --parts, where the command
            has it: a new directory. By default standard output.
        csv: The input is a table with commas, quotes and a header; so is the output.
        tsv: The same with tabs. With another separator: --csv -t ';'.
        no_header: The table has no header: columns have numbers, from 1 on.
        skip_bad: How many rows of a table may be left out because their number of fields is not
            that of the header, or of the first row without a header. By default none.
        ragged: What becomes of a row with more or fewer fields than the header, or than the first
            row without a header. error: the job ends. pad: empty cells are added to a short one; a
            long one is an error. drop: it is left out, as --skip-bad does it, but without a limit.
            By default error.
        comment: Lines of a table that begin with this, such as # or //, are comments, and are left
            out. By default none.
        field_separator: The byte between fields; \t is a tab, \0 is NUL. By default blanks; of a
            table the comma, or with --tsv the tab.
        zero_terminated: Lines end with NUL, in the input and in the output.
        memory: Most memory that the job may use, such as 512M, 8G or 1GiB. By default 60 % of what
            is available.
        workers: How many tasks run at once. The output does not depend on it. By default one for
            each core.
        runner: Where tasks run: in threads of this process, or in worker processes. The output does
            not depend on it. By default threads.
        on: Where the job runs: on this machine, or on a Ray cluster (the one of RAY_ADDRESS, or of
            this machine). On the command line also http://HOST:8265, the address of a Ray
            dashboard: Gristmill submits the command to that cluster. The output does not depend on
            it. By default local.
        nodes: On how many nodes of a cluster the job may run. The output does not depend on it. By
            default all of them.
        collect: Write the output of a job on a cluster on the machine where it was started. Then
            the nodes need not see the output directory.
        spill_dir: A directory for sorted runs, which are written when the input is larger than
            memory. Repeatable: Gristmill uses the first with enough room. By default beside the
            output; the current directory if that is not on a disk of this machine, or TMPDIR if
            nothing can be made there; on a cluster, the temporary directory of each node.
        compress_runs: How sorted runs on disk are compressed: lz4 takes little CPU time, zstd makes
            them smaller. Spares space for runs, and time where their disk is slow. The output does
            not depend on it. By default none.
        shuffle: How sorted runs come to the last merge: immediate (all partitions at once), two-
            level (first a slice for each node) or iterative (few slices, again and again). The
            output does not depend on it. By default auto, the one that costs least.
        rounds: Into how many slices each round of an iterative shuffle cuts, such as 4,5,4; the
            last number stands for the last merge, which makes the parts. To study shuffles: see the
            page of shuffles. By default three even ones, where the shuffle is iterative.
        store_option: How S3 is reached; repeatable: endpoint, region, profile, addressing_style
            (path or virtual), connect_timeout and request_timeout (seconds),
            max_concurrent_requests. By default as the environment and ~/.aws say.
        overwrite: Replace the output directory if it exists. On a local disk this is one step;
            elsewhere readers may see no output, or a part of it, for a moment. An output that is
            one file is always replaced.
        no_sync: Do not wait until the output is durable. Faster; a power failure can lose it.
        replication: How many copies HDFS keeps of each block of the output. By default as Hadoop is
            configured.
        block_size: How long the output's blocks are in HDFS, such as 128MiB: a multiple of 512
            bytes. By default as Hadoop is configured.
        history: Keep the job's history also if it takes less than a second.

    Returns:
        The job's report.

    Raises:
        ValueError: An option makes no sense, or the input is not what the job needs.
        FileNotFoundError: An input does not exist.
        FileExistsError: The output exists.
        MemoryError: `memory` is too small.
        OSError: An input cannot be read, or the output cannot be written.

    Example:
        >>> import tempfile, gristmill
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "table").write_text("city,price\nRome,2\nBern,0.5\nRome,30\n")
        ...     report = gristmill.top_records(
        ...         2, f"{folder}/table", output=f"{folder}/out", csv=True, key="price:num:desc"
        ...     )
        ...     print(Path(folder, "out").read_text(), end="")
        city,price
        Rome,30
        Rome,2
    """

def join(
    left: StrPath | Job,
    right: StrPath | Job,
    others: StrPath | Job | Iterable[StrPath | Job] | None = ...,
    *,
    by: str | Iterable[str] | None = ...,
    how: Literal["inner", "left", "right", "full", "semi", "anti"] = ...,
    empty: str | None = ...,
    unpaired: str | Iterable[str] | None = ...,
    only_unpaired: str | Iterable[str] | None = ...,
    field: int | None = ...,
    left_field: int | None = ...,
    right_field: int | None = ...,
    fields: str | None = ...,
    ignore_case: bool = ...,
    jsonl: bool = ...,
    header: bool = ...,
    sorted: bool = ...,
    parts: int | None = ...,
    output: StrPath | None = ...,
    csv: bool = ...,
    tsv: bool = ...,
    no_header: bool = ...,
    skip_bad: int | None = ...,
    ragged: Literal["error", "pad", "drop"] = ...,
    comment: str | None = ...,
    field_separator: str | None = ...,
    zero_terminated: bool = ...,
    memory: int | str | None = ...,
    workers: int | None = ...,
    runner: Literal["threads", "processes"] = ...,
    on: Literal["local", "ray"] = ...,
    nodes: int | None = ...,
    collect: bool = ...,
    spill_dir: StrPath | Iterable[StrPath] | None = ...,
    compress_runs: Literal["none", "lz4", "zstd"] = ...,
    shuffle: Literal["auto", "immediate", "two-level", "iterative"] = ...,
    rounds: str | None = ...,
    store_option: Mapping[str, str] | Iterable[str] | None = ...,
    overwrite: bool = ...,
    no_sync: bool = ...,
    replication: int | None = ...,
    block_size: int | str | None = ...,
    history: bool = ...,
) -> JobReport:
    r"""Join tables, or lines with fields, by columns; none need be sorted.

    The columns of the output: those of the key, the others of the left, the others of the right. A
    name of the right that is there already gets `_right` behind it. Keys are text: `1` and `1.0`
    differ, and an empty cell equals an empty cell. The output is in the order of the keys; where
    all inputs but the left are small, and `--how` is neither right nor full, in the order of the
    left, without a sort. Lines are joined as GNU join does it, with its letters; -o names the
    output, and --fields what its -o does.

    An input may be a `gm.Job`, which runs first. Without an `output` it writes its records as a
    table for this command alone.

    Args:
        left: A file, or a directory whose files are read (not those whose names begin with _ or .);
            compressed ones, too, and Parquet, if its name ends in .parquet; - is standard input.
        right: The file or directory whose rows are joined to those; - if LEFT is not.
        others: More of them: their rows are joined to what is joined so far. By default none.
        by: The columns that must be equal, with commas between them: id, or LEFT=RIGHT where their
            names differ; by name, or by number from 1 on. Repeatable. By default of lines the first
            field; of tables it must be given.
        how: Which rows are written. inner: pairs of rows with equal keys; left, right, full: also
            the rows of that side, or of both, that have no match; semi: rows of the left that have
            a match; anti: those that have none. By default inner.
        empty: What is written in the cells of a side that has no row; of lines in all fields that
            are empty or missing. By default nothing.
        unpaired: Also write the rows without a match of the left (1) or the right (2). Repeatable.
            By default none.
        only_unpaired: Write the rows without a match of the left (1) or the right (2), and no
            others. Repeatable. By default none.
        field: The field of lines that must be equal, by its number. By default 1.
        left_field: The same, of the left alone. By default as --field says.
        right_field: The same, of the right alone. By default as --field says.
        fields: The fields of the lines that are written, as GNU join's -o: 0 is the key, 1.2 the
            second field of the left. auto: as many of each input as its first line has. By default
            the key, the others of the left, the others of the right.
        ignore_case: Small letters in keys of lines equal large ones, among those of ASCII.
        jsonl: Each line is a JSON object, and columns are paths into it: user.id. A value that is
            null or not there is empty. The members of the rows stand in one object.
        header: The first line of each file of lines is a header. They are joined, and stand first.
        sorted: Put the whole output in the order of the keys; one task writes it. Without it, only
            each part is in order, and there is a part for each 256 MB of input.
        parts: Write the output as N files, part-r-00000 and so on, in a directory. The hash of a
            key decides its part. By default one file.
        output: The file to write; Parquet, if its name ends in .parquet. If it exists, the finished
            output replaces it in one step, also if it is an input. With --parts, where the command
            has it: a new directory. By default standard output.
        csv: The input is a table with commas, quotes and a header; so is the output.
        tsv: The same with tabs. With another separator: --csv -t ';'.
        no_header: The table has no header: columns have numbers, from 1 on.
        skip_bad: How many rows of a table may be left out because their number of fields is not
            that of the header, or of the first row without a header. By default none.
        ragged: What becomes of a row with more or fewer fields than the header, or than the first
            row without a header. error: the job ends. pad: empty cells are added to a short one; a
            long one is an error. drop: it is left out, as --skip-bad does it, but without a limit.
            By default error.
        comment: Lines of a table that begin with this, such as # or //, are comments, and are left
            out. By default none.
        field_separator: The byte between fields; \t is a tab, \0 is NUL. By default blanks; of a
            table the comma, or with --tsv the tab.
        zero_terminated: Lines end with NUL, in the input and in the output.
        memory: Most memory that the job may use, such as 512M, 8G or 1GiB. By default 60 % of what
            is available.
        workers: How many tasks run at once. The output does not depend on it. By default one for
            each core.
        runner: Where tasks run: in threads of this process, or in worker processes. The output does
            not depend on it. By default threads.
        on: Where the job runs: on this machine, or on a Ray cluster (the one of RAY_ADDRESS, or of
            this machine). On the command line also http://HOST:8265, the address of a Ray
            dashboard: Gristmill submits the command to that cluster. The output does not depend on
            it. By default local.
        nodes: On how many nodes of a cluster the job may run. The output does not depend on it. By
            default all of them.
        collect: Write the output of a job on a cluster on the machine where it was started. Then
            the nodes need not see the output directory.
        spill_dir: A directory for sorted runs, which are written when the input is larger than
            memory. Repeatable: Gristmill uses the first with enough room. By default beside the
            output; the current directory if that is not on a disk of this machine, or TMPDIR if
            nothing can be made there; on a cluster, the temporary directory of each node.
        compress_runs: How sorted runs on disk are compressed: lz4 takes little CPU time, zstd makes
            them smaller. Spares space for runs, and time where their disk is slow. The output does
            not depend on it. By default none.
        shuffle: How sorted runs come to the last merge: immediate (all partitions at once), two-
            level (first a slice for each node) or iterative (few slices, again and again). The
            output does not depend on it. By default auto, the one that costs least.
        rounds: Into how many slices each round of an iterative shuffle cuts, such as 4,5,4; the
            last number stands for the last merge, which makes the parts. To study shuffles: see the
            page of shuffles. By default three even ones, where the shuffle is iterative.
        store_option: How S3 is reached; repeatable: endpoint, region, profile, addressing_style
            (path or virtual), connect_timeout and request_timeout (seconds),
            max_concurrent_requests. By default as the environment and ~/.aws say.
        overwrite: Replace the output directory if it exists. On a local disk this is one step;
            elsewhere readers may see no output, or a part of it, for a moment. An output that is
            one file is always replaced.
        no_sync: Do not wait until the output is durable. Faster; a power failure can lose it.
        replication: How many copies HDFS keeps of each block of the output. By default as Hadoop is
            configured.
        block_size: How long the output's blocks are in HDFS, such as 128MiB: a multiple of 512
            bytes. By default as Hadoop is configured.
        history: Keep the job's history also if it takes less than a second.

    Returns:
        The job's report.

    Raises:
        ValueError: An option makes no sense, or the input is not what the job needs.
        FileNotFoundError: An input does not exist.
        FileExistsError: The output exists.
        MemoryError: `memory` is too small.
        OSError: An input cannot be read, or the output cannot be written.

    Example:
        >>> import tempfile, gristmill
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "orders").write_text("city,price\nRome,2\nBern,0.5\nRome,3\n")
        ...     _ = Path(folder, "cities").write_text("name,country\nRome,IT\nOslo,NO\n")
        ...     report = gristmill.join(
        ...         f"{folder}/orders",
        ...         f"{folder}/cities",
        ...         output=f"{folder}/out",
        ...         csv=True,
        ...         by=["city=name"],
        ...         how="left",
        ...     )
        ...     print(Path(folder, "out").read_text(), end="")
        city,price,country
        Rome,2,IT
        Bern,0.5,
        Rome,3,IT
    """

def sample(
    inputs: StrPath | Job | Iterable[StrPath | Job] | None = ...,
    *,
    number: int | None = ...,
    rate: float | str | None = ...,
    by: str | Iterable[str] | None = ...,
    jsonl: bool = ...,
    seed: str | None = ...,
    output: StrPath | None = ...,
    csv: bool = ...,
    tsv: bool = ...,
    no_header: bool = ...,
    skip_bad: int | None = ...,
    ragged: Literal["error", "pad", "drop"] = ...,
    comment: str | None = ...,
    field_separator: str | None = ...,
    zero_terminated: bool = ...,
    memory: int | str | None = ...,
    workers: int | None = ...,
    runner: Literal["threads", "processes"] = ...,
    on: Literal["local", "ray"] = ...,
    nodes: int | None = ...,
    collect: bool = ...,
    spill_dir: StrPath | Iterable[StrPath] | None = ...,
    compress_runs: Literal["none", "lz4", "zstd"] = ...,
    shuffle: Literal["auto", "immediate", "two-level", "iterative"] = ...,
    rounds: str | None = ...,
    store_option: Mapping[str, str] | Iterable[str] | None = ...,
    overwrite: bool = ...,
    no_sync: bool = ...,
    replication: int | None = ...,
    block_size: int | str | None = ...,
    history: bool = ...,
) -> JobReport:
    r"""Draw lines, or rows of tables, by chance: so many, so many of each group, or each with a probability.

    Every record is as likely to be drawn as any other, and none is drawn twice. The output is in
    the order of the input; with by, one group after the other, in the order of their bytes.

    An input may be a `gm.Job`, which runs first. Without an `output` it writes its records as a
    table for this command alone.

    Args:
        inputs: Files, or directories whose files are read (not those whose names begin with _ or
            .); compressed ones, too, and tables of Parquet, if their names end in .parquet; - is
            standard input, which is also read without INPUT. By default standard input.
        number: How many records to draw; all, if there are fewer. They must fit in the memory of a
            worker. By default either this or rate must be given.
        rate: Draw each record with this probability, more than 0 and at most 1, such as 0.01. By
            default either this or number must be given.
        by: Draw so many of each group: of the records with equal values in these columns, with
            commas between them, by name, or by number from 1 on. Repeatable. With a rate it changes
            nothing. By default of all records together.
        jsonl: Each line is a JSON object, and columns are paths into it: user.id. A value that is
            null or not there is empty. Lines are written as they stood.
        seed: Any text: another one draws other records, the same one the same. By default 0.
        output: The file to write; Parquet, if its name ends in .parquet. If it exists, the finished
            output replaces it in one step, also if it is an input. With --parts, where the command
            has it: a new directory. By default standard output.
        csv: The input is a table with commas, quotes and a header; so is the output.
        tsv: The same with tabs. With another separator: --csv -t ';'.
        no_header: The table has no header: columns have numbers, from 1 on.
        skip_bad: How many rows of a table may be left out because their number of fields is not
            that of the header, or of the first row without a header. By default none.
        ragged: What becomes of a row with more or fewer fields than the header, or than the first
            row without a header. error: the job ends. pad: empty cells are added to a short one; a
            long one is an error. drop: it is left out, as --skip-bad does it, but without a limit.
            By default error.
        comment: Lines of a table that begin with this, such as # or //, are comments, and are left
            out. By default none.
        field_separator: The byte between fields; \t is a tab, \0 is NUL. By default blanks; of a
            table the comma, or with --tsv the tab.
        zero_terminated: Lines end with NUL, in the input and in the output.
        memory: Most memory that the job may use, such as 512M, 8G or 1GiB. By default 60 % of what
            is available.
        workers: How many tasks run at once. The output does not depend on it. By default one for
            each core.
        runner: Where tasks run: in threads of this process, or in worker processes. The output does
            not depend on it. By default threads.
        on: Where the job runs: on this machine, or on a Ray cluster (the one of RAY_ADDRESS, or of
            this machine). On the command line also http://HOST:8265, the address of a Ray
            dashboard: Gristmill submits the command to that cluster. The output does not depend on
            it. By default local.
        nodes: On how many nodes of a cluster the job may run. The output does not depend on it. By
            default all of them.
        collect: Write the output of a job on a cluster on the machine where it was started. Then
            the nodes need not see the output directory.
        spill_dir: A directory for sorted runs, which are written when the input is larger than
            memory. Repeatable: Gristmill uses the first with enough room. By default beside the
            output; the current directory if that is not on a disk of this machine, or TMPDIR if
            nothing can be made there; on a cluster, the temporary directory of each node.
        compress_runs: How sorted runs on disk are compressed: lz4 takes little CPU time, zstd makes
            them smaller. Spares space for runs, and time where their disk is slow. The output does
            not depend on it. By default none.
        shuffle: How sorted runs come to the last merge: immediate (all partitions at once), two-
            level (first a slice for each node) or iterative (few slices, again and again). The
            output does not depend on it. By default auto, the one that costs least.
        rounds: Into how many slices each round of an iterative shuffle cuts, such as 4,5,4; the
            last number stands for the last merge, which makes the parts. To study shuffles: see the
            page of shuffles. By default three even ones, where the shuffle is iterative.
        store_option: How S3 is reached; repeatable: endpoint, region, profile, addressing_style
            (path or virtual), connect_timeout and request_timeout (seconds),
            max_concurrent_requests. By default as the environment and ~/.aws say.
        overwrite: Replace the output directory if it exists. On a local disk this is one step;
            elsewhere readers may see no output, or a part of it, for a moment. An output that is
            one file is always replaced.
        no_sync: Do not wait until the output is durable. Faster; a power failure can lose it.
        replication: How many copies HDFS keeps of each block of the output. By default as Hadoop is
            configured.
        block_size: How long the output's blocks are in HDFS, such as 128MiB: a multiple of 512
            bytes. By default as Hadoop is configured.
        history: Keep the job's history also if it takes less than a second.

    Returns:
        The job's report.

    Raises:
        ValueError: An option makes no sense, or the input is not what the job needs.
        FileNotFoundError: An input does not exist.
        FileExistsError: The output exists.
        MemoryError: `memory` is too small.
        OSError: An input cannot be read, or the output cannot be written.

    Example:
        >>> import tempfile, gristmill
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "text").write_text("".join(f"{number}\n" for number in range(1000)))
        ...     report = gristmill.sample(f"{folder}/text", output=f"{folder}/out", number=3)
        ...     len(Path(folder, "out").read_text().split())
        3
    """

def shuf(
    inputs: StrPath | Job | Iterable[StrPath | Job] | None = ...,
    *,
    seed: str | None = ...,
    parts: int | None = ...,
    output: StrPath | None = ...,
    csv: bool = ...,
    tsv: bool = ...,
    no_header: bool = ...,
    skip_bad: int | None = ...,
    ragged: Literal["error", "pad", "drop"] = ...,
    comment: str | None = ...,
    field_separator: str | None = ...,
    zero_terminated: bool = ...,
    memory: int | str | None = ...,
    workers: int | None = ...,
    runner: Literal["threads", "processes"] = ...,
    on: Literal["local", "ray"] = ...,
    nodes: int | None = ...,
    collect: bool = ...,
    spill_dir: StrPath | Iterable[StrPath] | None = ...,
    compress_runs: Literal["none", "lz4", "zstd"] = ...,
    shuffle: Literal["auto", "immediate", "two-level", "iterative"] = ...,
    rounds: str | None = ...,
    store_option: Mapping[str, str] | Iterable[str] | None = ...,
    overwrite: bool = ...,
    no_sync: bool = ...,
    replication: int | None = ...,
    block_size: int | str | None = ...,
    history: bool = ...,
) -> JobReport:
    r"""Put lines, or rows of tables, in a random order.

    As GNU shuf does, with all cores and data bigger than memory. Every order is as likely as any
    other.

    An input may be a `gm.Job`, which runs first. Without an `output` it writes its records as a
    table for this command alone.

    Args:
        inputs: Files, or directories whose files are read (not those whose names begin with _ or
            .); compressed ones, too, and tables of Parquet, if their names end in .parquet; - is
            standard input, which is also read without INPUT. By default standard input.
        seed: Any text: another one gives another order, the same one the same. By default 0.
        parts: Write the output as N files, part-r-00000 and so on, in a directory. One behind the
            other they are the same, however many they are. By default one file.
        output: The file to write; Parquet, if its name ends in .parquet. If it exists, the finished
            output replaces it in one step, also if it is an input. With --parts, where the command
            has it: a new directory. By default standard output.
        csv: The input is a table with commas, quotes and a header; so is the output.
        tsv: The same with tabs. With another separator: --csv -t ';'.
        no_header: The table has no header: columns have numbers, from 1 on.
        skip_bad: How many rows of a table may be left out because their number of fields is not
            that of the header, or of the first row without a header. By default none.
        ragged: What becomes of a row with more or fewer fields than the header, or than the first
            row without a header. error: the job ends. pad: empty cells are added to a short one; a
            long one is an error. drop: it is left out, as --skip-bad does it, but without a limit.
            By default error.
        comment: Lines of a table that begin with this, such as # or //, are comments, and are left
            out. By default none.
        field_separator: The byte between fields; \t is a tab, \0 is NUL. By default blanks; of a
            table the comma, or with --tsv the tab.
        zero_terminated: Lines end with NUL, in the input and in the output.
        memory: Most memory that the job may use, such as 512M, 8G or 1GiB. By default 60 % of what
            is available.
        workers: How many tasks run at once. The output does not depend on it. By default one for
            each core.
        runner: Where tasks run: in threads of this process, or in worker processes. The output does
            not depend on it. By default threads.
        on: Where the job runs: on this machine, or on a Ray cluster (the one of RAY_ADDRESS, or of
            this machine). On the command line also http://HOST:8265, the address of a Ray
            dashboard: Gristmill submits the command to that cluster. The output does not depend on
            it. By default local.
        nodes: On how many nodes of a cluster the job may run. The output does not depend on it. By
            default all of them.
        collect: Write the output of a job on a cluster on the machine where it was started. Then
            the nodes need not see the output directory.
        spill_dir: A directory for sorted runs, which are written when the input is larger than
            memory. Repeatable: Gristmill uses the first with enough room. By default beside the
            output; the current directory if that is not on a disk of this machine, or TMPDIR if
            nothing can be made there; on a cluster, the temporary directory of each node.
        compress_runs: How sorted runs on disk are compressed: lz4 takes little CPU time, zstd makes
            them smaller. Spares space for runs, and time where their disk is slow. The output does
            not depend on it. By default none.
        shuffle: How sorted runs come to the last merge: immediate (all partitions at once), two-
            level (first a slice for each node) or iterative (few slices, again and again). The
            output does not depend on it. By default auto, the one that costs least.
        rounds: Into how many slices each round of an iterative shuffle cuts, such as 4,5,4; the
            last number stands for the last merge, which makes the parts. To study shuffles: see the
            page of shuffles. By default three even ones, where the shuffle is iterative.
        store_option: How S3 is reached; repeatable: endpoint, region, profile, addressing_style
            (path or virtual), connect_timeout and request_timeout (seconds),
            max_concurrent_requests. By default as the environment and ~/.aws say.
        overwrite: Replace the output directory if it exists. On a local disk this is one step;
            elsewhere readers may see no output, or a part of it, for a moment. An output that is
            one file is always replaced.
        no_sync: Do not wait until the output is durable. Faster; a power failure can lose it.
        replication: How many copies HDFS keeps of each block of the output. By default as Hadoop is
            configured.
        block_size: How long the output's blocks are in HDFS, such as 128MiB: a multiple of 512
            bytes. By default as Hadoop is configured.
        history: Keep the job's history also if it takes less than a second.

    Returns:
        The job's report.

    Raises:
        ValueError: An option makes no sense, or the input is not what the job needs.
        FileNotFoundError: An input does not exist.
        FileExistsError: The output exists.
        MemoryError: `memory` is too small.
        OSError: An input cannot be read, or the output cannot be written.

    Example:
        >>> import tempfile, gristmill
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "text").write_text("a\nb\nc\n")
        ...     report = gristmill.shuf(f"{folder}/text", output=f"{folder}/out", seed="4")
        ...     lines = Path(folder, "out").read_text().split()
        >>> sorted(lines)
        ['a', 'b', 'c']
    """

def split_by(
    inputs: StrPath | Job | Iterable[StrPath | Job],
    output: StrPath,
    *,
    by: str | Iterable[str] | None = ...,
    lines: int | None = ...,
    bytes: int | str | None = ...,
    jsonl: bool = ...,
    suffix: str | None = ...,
    max_files: int | None = ...,
    parts: int | None = ...,
    csv: bool = ...,
    tsv: bool = ...,
    no_header: bool = ...,
    skip_bad: int | None = ...,
    ragged: Literal["error", "pad", "drop"] = ...,
    comment: str | None = ...,
    field_separator: str | None = ...,
    zero_terminated: bool = ...,
    memory: int | str | None = ...,
    workers: int | None = ...,
    runner: Literal["threads", "processes"] = ...,
    on: Literal["local", "ray"] = ...,
    nodes: int | None = ...,
    collect: bool = ...,
    spill_dir: StrPath | Iterable[StrPath] | None = ...,
    compress_runs: Literal["none", "lz4", "zstd"] = ...,
    shuffle: Literal["auto", "immediate", "two-level", "iterative"] = ...,
    rounds: str | None = ...,
    store_option: Mapping[str, str] | Iterable[str] | None = ...,
    overwrite: bool = ...,
    no_sync: bool = ...,
    replication: int | None = ...,
    block_size: int | str | None = ...,
    history: bool = ...,
) -> JobReport:
    r"""Split tables, or lines, into files: one for each value of a column, named after it, or of so many lines or bytes.

    Each file has the header, and its rows in the order of the input.

    An input may be a `gm.Job`, which runs first. Without an `output` it writes its records as a
    table for this command alone.

    Args:
        inputs: Files, or directories whose files are read (not those whose names begin with _ or
            .); compressed ones, too, and tables of Parquet, if their names end in .parquet; - is
            standard input.
        output: The directory to make.
        by: The columns whose values get files, with commas between them: by name, or by number from
            1 on. Repeatable. By default either this, lines or bytes must be given.
        lines: Write files of so many lines, or rows of a table, in the order of the input:
            part-00000 and so on. The last one may have fewer. By default either this, by or bytes
            must be given.
        bytes: Write files of at most so many bytes, such as 64M, of whole lines or rows, with the
            header: as split -C does it, but a longer record is not cut, and has a file of its own.
            By default either this, by or lines must be given.
        jsonl: Each line is a JSON object, and columns are paths into it: user.id. A value that is
            null or not there is empty. Lines are written as they stood.
        suffix: What the name of each file ends with. By default .csv, .tsv, .jsonl or .txt, as the
            records are.
        max_files: Fail if there would be more files, and make none. By default 100000.
        parts: How many tasks write the files of values. The output does not depend on it. By
            default one for each 256 MB of input.
        csv: The input is a table with commas, quotes and a header; so is the output.
        tsv: The same with tabs. With another separator: --csv -t ';'.
        no_header: The table has no header: columns have numbers, from 1 on.
        skip_bad: How many rows of a table may be left out because their number of fields is not
            that of the header, or of the first row without a header. By default none.
        ragged: What becomes of a row with more or fewer fields than the header, or than the first
            row without a header. error: the job ends. pad: empty cells are added to a short one; a
            long one is an error. drop: it is left out, as --skip-bad does it, but without a limit.
            By default error.
        comment: Lines of a table that begin with this, such as # or //, are comments, and are left
            out. By default none.
        field_separator: The byte between fields; \t is a tab, \0 is NUL. By default blanks; of a
            table the comma, or with --tsv the tab.
        zero_terminated: Lines end with NUL, in the input and in the output.
        memory: Most memory that the job may use, such as 512M, 8G or 1GiB. By default 60 % of what
            is available.
        workers: How many tasks run at once. The output does not depend on it. By default one for
            each core.
        runner: Where tasks run: in threads of this process, or in worker processes. The output does
            not depend on it. By default threads.
        on: Where the job runs: on this machine, or on a Ray cluster (the one of RAY_ADDRESS, or of
            this machine). On the command line also http://HOST:8265, the address of a Ray
            dashboard: Gristmill submits the command to that cluster. The output does not depend on
            it. By default local.
        nodes: On how many nodes of a cluster the job may run. The output does not depend on it. By
            default all of them.
        collect: Write the output of a job on a cluster on the machine where it was started. Then
            the nodes need not see the output directory.
        spill_dir: A directory for sorted runs, which are written when the input is larger than
            memory. Repeatable: Gristmill uses the first with enough room. By default beside the
            output; the current directory if that is not on a disk of this machine, or TMPDIR if
            nothing can be made there; on a cluster, the temporary directory of each node.
        compress_runs: How sorted runs on disk are compressed: lz4 takes little CPU time, zstd makes
            them smaller. Spares space for runs, and time where their disk is slow. The output does
            not depend on it. By default none.
        shuffle: How sorted runs come to the last merge: immediate (all partitions at once), two-
            level (first a slice for each node) or iterative (few slices, again and again). The
            output does not depend on it. By default auto, the one that costs least.
        rounds: Into how many slices each round of an iterative shuffle cuts, such as 4,5,4; the
            last number stands for the last merge, which makes the parts. To study shuffles: see the
            page of shuffles. By default three even ones, where the shuffle is iterative.
        store_option: How S3 is reached; repeatable: endpoint, region, profile, addressing_style
            (path or virtual), connect_timeout and request_timeout (seconds),
            max_concurrent_requests. By default as the environment and ~/.aws say.
        overwrite: Replace the output directory if it exists. On a local disk this is one step;
            elsewhere readers may see no output, or a part of it, for a moment. An output that is
            one file is always replaced.
        no_sync: Do not wait until the output is durable. Faster; a power failure can lose it.
        replication: How many copies HDFS keeps of each block of the output. By default as Hadoop is
            configured.
        block_size: How long the output's blocks are in HDFS, such as 128MiB: a multiple of 512
            bytes. By default as Hadoop is configured.
        history: Keep the job's history also if it takes less than a second.

    Returns:
        The job's report.

    Raises:
        ValueError: An option makes no sense, or the input is not what the job needs.
        FileNotFoundError: An input does not exist.
        FileExistsError: The output exists.
        MemoryError: `memory` is too small.
        OSError: An input cannot be read, or the output cannot be written.

    Example:
        >>> import tempfile, gristmill
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "table").write_text("city,price\nRome,2\nBern,0.5\nRome,3\n")
        ...     report = gristmill.split_by(f"{folder}/table", f"{folder}/out", csv=True, by=["city"])
        ...     print(Path(folder, "out/Rome.csv").read_text(), end="")
        city,price
        Rome,2
        Rome,3
    """

def cp(
    inputs: StrPath | Iterable[StrPath],
    output: StrPath,
    *,
    update: bool = ...,
    overwrite: bool = ...,
    delete: bool = ...,
    atomic: bool = ...,
    dry_run: bool = ...,
    filter: str | Iterable[str] | None = ...,
    exclude: str | Iterable[str] | None = ...,
    exclude_regex: str | Iterable[str] | None = ...,
    files_from: StrPath | None = ...,
    links: Literal["follow", "copy", "skip"] = ...,
    preserve: Literal["times", "mode", "times,mode"] = ...,
    verify: bool = ...,
    manifest: StrPath | None = ...,
    bandwidth: int | str | None = ...,
    ignore_failures: bool = ...,
    memory: int | str | None = ...,
    workers: int | None = ...,
    runner: Literal["threads", "processes"] = ...,
    on: Literal["local", "ray"] = ...,
    nodes: int | None = ...,
    split_size: int | str | None = ...,
    store_option: Mapping[str, str] | Iterable[str] | None = ...,
    no_sync: bool = ...,
    history: bool = ...,
) -> JobReport:
    r"""Copy files and directories between places: disks, object stores, HDFS, and from web servers.

    A file that is there already and has the same bytes is left. Each file appears whole, or not at
    all. The job compares the length and the CRC-32 of what it read with those of what was written.
    A killed job is resumed with `gristmill resume`, or by the same command with --update.

    Args:
        inputs: What to copy: files and directories. A directory is copied by its name; with a slash
            at its end, what is in it is.
        output: Where to: a directory; or, for one file, the name of its copy.
        update: Replace a file that is there and has other bytes. Both are read, unless their
            lengths differ or the store knows a checksum.
        overwrite: Replace each file that is there, without a comparison.
        delete: Remove from the target what the source does not have, once all is copied. Needs one
            source, which is a directory.
        atomic: Let the whole copy appear at once, when all of it is there. The target must not
            exist, on a disk, a mount or HDFS.
        dry_run: Say what would be done, a line for each file, and write nothing.
        filter: Copy only files whose names match, such as *.csv; with a slash, the path within the
            source. Repeatable. By default all files.
        exclude: Leave out files and directories whose names match; with a slash, whose paths within
            the source do. Repeatable. By default nothing.
        exclude_regex: Leave out files and directories by a regular expression, such as .*[.]tmp. It
            must match the whole path, which begins with the source. Repeatable. By default nothing.
        files_from: A file with the names to copy, a line each, within the one source directory. By
            default all.
        links: What is done about symbolic links: copy what they lead to, copy them as links, or
            skip them. By default follow.
        preserve: Give files the times or the permissions of the source: times, mode or times,mode.
            Between local places. By default neither.
        verify: Read each file that was written, and compare its CRC.
        manifest: Write a file with the name, the length and the CRC-32 of each file, as lines of
            JSON. By default none.
        bandwidth: Read at most so many bytes a second, such as 50M; each worker has its share. By
            default no limit.
        ignore_failures: Copy the others when a file cannot be copied. The job fails at its end, and
            names the first 20.
        memory: Most memory that the job may use, such as 512M, 8G or 1GiB. By default 60 % of what
            is available.
        workers: How many tasks run at once. The output does not depend on it. By default one for
            each core.
        runner: Where tasks run: in threads of this process, or in worker processes. The output does
            not depend on it. By default threads.
        on: Where the job runs: on this machine, or on a Ray cluster (the one of RAY_ADDRESS, or of
            this machine). On the command line also http://HOST:8265, the address of a Ray
            dashboard: Gristmill submits the command to that cluster. The output does not depend on
            it. By default local.
        nodes: On how many nodes of a cluster the job may run. The output does not depend on it. By
            default all of them.
        split_size: How many bytes one task handles, such as 64M. Try several sizes to find the
            fastest for a store. The output does not depend on it. By default chosen from the size
            of the input.
        store_option: How S3 is reached; repeatable: endpoint, region, profile, addressing_style
            (path or virtual), connect_timeout and request_timeout (seconds),
            max_concurrent_requests. By default as the environment and ~/.aws say.
        no_sync: Do not wait until the output is durable. Faster; a power failure can lose it.
        history: Keep the job's history also if it takes less than a second.

    Returns:
        The job's report.

    Raises:
        ValueError: An option makes no sense, or the input is not what the job needs.
        FileNotFoundError: An input does not exist.
        FileExistsError: The output exists.
        MemoryError: `memory` is too small.
        OSError: An input cannot be read, or the output cannot be written.

    Example:
        >>> import pathlib, tempfile, gristmill
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     top = pathlib.Path(folder)
        ...     for name in ("a", "b"):
        ...         (top / name).write_text("some text\n")
        ...     report = gristmill.cp([top / "a", top / "b"], top / "copies")
        ...     sorted(path.name for path in (top / "copies").iterdir())
        10
        10
        ['a', 'b']
        >>> report.counters["COPY"], report.counters["BYTESCOPIED"]
        (2, 20)
    """

def resume(
    job_id: str,
    *,
    history: bool = ...,
) -> JobReport:
    r"""Resume a job whose process was killed: finished tasks are kept, and the output is the same, byte for byte, as without the interruption.

    Gristmill reads the job from its history in `$GRISTMILL_HOME`. The job runs with its first
    options, in its first directory. If it has user code, it runs the code as it was then. A job of
    a chain is resumed with its chain.

    Args:
        job_id: The job's name, a part of it that no other job has, or last; `gristmill jobs` lists
            them.
        history: Keep the job's history also if it takes less than a second.

    Returns:
        The job's report.

    Raises:
        ValueError: An option makes no sense, or the input is not what the job needs.
        FileNotFoundError: An input does not exist.
        FileExistsError: The output exists.
        MemoryError: `memory` is too small.
        OSError: An input cannot be read, or the output cannot be written.

    Example:
        >>> import os, tempfile, gristmill
        >>> with tempfile.TemporaryDirectory() as home:
        ...     os.environ["GRISTMILL_HOME"] = home
        ...     made = gristmill.teragen("1k", f"{home}/data", history=True)
        ...     try:
        ...         gristmill.resume("last")
        ...     except ValueError as error:
        ...         print(str(error).partition(". ")[0])
        cannot resume a job: no job can be resumed
    """

def stub() -> str: ...
