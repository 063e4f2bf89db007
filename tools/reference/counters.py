"""counters.md: what a job counts, by Hadoop's names where Hadoop has them."""

import re

from reference import TOP
from reference.markdown import code, document, plain, table

__all__ = ["COUNTERS", "in_source", "page"]

COUNTERS = {
    "Records and bytes": {
        "MAP_INPUT_RECORDS": "Records that maps read.",
        "MAP_OUTPUT_RECORDS": "Records or pairs that maps gave, before a combiner.",
        "MAP_OUTPUT_BYTES": "Their bytes; in a sort by runs, what was spilled.",
        "MAP_OUTPUT_MATERIALIZED_BYTES": "The same as it lies on disk: compressed, with headers.",
        "COMBINE_INPUT_RECORDS": "Values that went into the combiner.",
        "COMBINE_OUTPUT_RECORDS": "Values that came out of it.",
        "REDUCE_INPUT_GROUPS": "Different keys.",
        "REDUCE_INPUT_RECORDS": "Records or pairs that reduces read.",
        "REDUCE_OUTPUT_RECORDS": "Records that reduces wrote.",
        "REGROUPED_RECORDS": "Records that were put in the order of the input at the end.",
        "REDUCE_SHUFFLE_BYTES": "Bytes that reduces read, before compression.",
        "SKIPPED_RECORDS": "`sort` of a table: rows that were left out.",
        "MAP_SKIPPED_RECORDS": "Records of the input that were left out, as the job allows.",
        "REDUCE_SKIPPED_GROUPS": "Keys that were left out.",
        "REDUCE_SKIPPED_RECORDS": "Their pairs.",
        "CHECKSUM": "`teragen`: the sum of the records' CRC-32s, in 64 bits, as Hadoop counts it.",
    },
    "Runs": {
        "SPILLED_RECORDS": "Records written to runs on disk.",
        "SPILLED_RUNS": "Runs written.",
        "MERGE_PASSES": "Passes that merged runs to runs, before the last merge.",
        "SAMPLED_KEYS": "Keys that were sampled, to cut the key space into ranges.",
    },
    "Files and stores": {
        "FILE_BYTES_READ": "Bytes read from files, those of sorted runs included.",
        "FILE_BYTES_WRITTEN": "Bytes written to files, likewise.",
        "DEVICE_BYTES_READ": "Bytes that devices read: not those of the page cache.",
        "STORE_IO_REQUEST": (
            "Requests to stores, of all processes of the job. In HDFS: calls to the name node, and"
            " a read of each block."
        ),
        "STORE_IO_RETRY": "Those of them that were sent again.",
        "STORE_IO_THROTTLED": "Requests that the store refused because it had too many (503, 429).",
    },
    "Copies": {
        "COPY": "`cp`: files that were copied, or would be.",
        "SKIP": "Files that were there already, with the same bytes.",
        "FAIL": "Files that could not be copied, or listed.",
        "BYTESCOPIED": "Bytes of files that were copied.",
        "BYTESSKIPPED": "Bytes of files that were there already.",
        "DIR_COPY": "Directories that were made, or were there already.",
        "REPLACED_FILES": "Those of the copied files that took the place of others.",
        "COPIED_LINKS": "Symbolic links that were made, or were there already.",
        "SKIPPED_LINKS": "Symbolic links that were left out.",
        "DELETED_FILES": "Names that `--delete` removed; a directory counts once.",
        "CUT_FILES": "Long files that several tasks copied.",
        "COPIED_PIECES": "Pieces of them that were copied.",
        "KEPT_PIECES": "Pieces that were there: the job was resumed, and had copied them before.",
        "STORE_COPIES": "Those of the copied files that their store copied by itself.",
        "STORE_COPIED_BYTES": "Their bytes: these did not come to this machine.",
        "STORE_COPIES_UNPROVED": "Those of them whose bytes the store did not compare.",
        "COPY_STREAMS": (
            "Files that a process copied at once as its last task ended, as many as it found to be"
            " best until then."
        ),
    },
    "Tasks": {
        "TOTAL_LAUNCHED_MAPS": "Attempts at map tasks; a task that is tried again counts again.",
        "TOTAL_LAUNCHED_REDUCES": "Attempts at reduce tasks.",
        "LAUNCHED_MAPS": "Map tasks of a job with scripts or user code; each counts once.",
        "LAUNCHED_REDUCES": "Its reduce tasks.",
        "FAILED_TASK_ATTEMPTS": "Attempts that failed.",
        "KILLED_TASK_ATTEMPTS": (
            "Attempts that were stopped, as the job ended or another attempt was first, or whose"
            " worker was lost."
        ),
        "SPECULATIVE_TASK_ATTEMPTS": "Second attempts that were begun beside slow ones.",
        "NUM_FAILED_MAPS": (
            "Map tasks that failed for good: the job failed with them, or was allowed to continue."
        ),
        "NUM_FAILED_REDUCES": "Reduce tasks, likewise.",
        "KEPT_TASKS": "Tasks that a resumed job did not do again.",
        "CPU_MILLISECONDS": "CPU time, user and system, of all processes of the job.",
    },
    "Clusters": {
        "DATA_LOCAL_MAPS": "Attempts at maps on a node that holds their input, in HDFS.",
        "SHUFFLED_MAPS": "Segments of runs that tasks read; each task counts those that it reads.",
        "FAILED_SHUFFLE": "Times that a task began again because it could not read a run.",
        "SHUFFLE_BYTES_SAME_NODE": "Bytes of segments read from runs of the same node.",
        "SHUFFLE_BYTES_OTHER_NODES": "Bytes read from runs of other nodes.",
        "SHUFFLE_BYTES_RECEIVED": "Those of them that came over the network.",
        "LOST_AGENTS": "Agents that were lost.",
        "LOST_TASK_ATTEMPTS": (
            "Attempts that were lost because their agent was, or because a run could not be read."
        ),
        "LOST_TASK_ATTEMPT_BYTES": "Bytes that these had worked on.",
        "LOST_TASK_OUTPUTS": "Tasks that were done again because what they had made was lost.",
    },
}
"""Every counter of the engine, by what it is about."""

_INTRODUCTION = """\
`counters` in the [JSON](json.md) of a job has these, and `gristmill jobs show` prints them. A
counter that does not apply is left out. Counters of your own functions
(`context.count(group, name)`) and of scripts (`reporter:counter:`) are in `user_counters`."""

_NO_COUNTERS = re.compile(
    r"AWS_|AZURE_|CARGO_|FULL_OBJECT|GOOGLE_|GRISTMILL_|STORAGE_EMULATOR_|RAY_|SSL_CERT|HADOOP_|KRB5_"
)


def page() -> str:
    """Return the page."""
    parts = [_INTRODUCTION]
    for title, counters in COUNTERS.items():
        rows = [[code(name), plain(text)] for name, text in counters.items()]
        parts += [f"## {title}", table(["counter", "what it counts"], rows)]
    return document("Counters", *parts)


def in_source() -> set[str]:
    """Return the counters that the engine names."""
    found: set[str] = set()
    for path in (TOP / "crates").glob("*/src/**/*.rs"):
        source = path.read_text(encoding="utf-8").partition("#[cfg(test)]")[0]
        found |= set(re.findall(r'"([A-Z]{3,}(?:_[A-Z]+)+)"', source))
        found |= set(re.findall(r'\.count\(\s*"([A-Z_]+)"', source))
    return {name for name in found if not _NO_COUNTERS.match(name)}
