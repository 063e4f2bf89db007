"""The options of Hadoop Streaming, each once: parsing, help and docs/streaming.md follow.

Those that all jobs have come from the engine's table.

`values` says how many words belong to an option: 0, 1, or many (-1: all up to the next option).
"""

from dataclasses import dataclass
from typing import Literal

from gristmill import options
from gristmill.options import HISTORY, user_code

__all__ = ["GENERIC", "OPTIONS", "OWN", "STREAMING", "Option", "option_named"]

Honoured = Literal["yes", "no effect", "refused", "partly"]


@dataclass(frozen=True, slots=True)
class Option:
    """An option, as a user writes it."""

    name: str
    values: int
    metavar: str
    what: str
    """What it does here."""
    honoured: Honoured
    test: str
    """The test that shows it: a file in tests/streaming and a name, or a case of cases.py."""

    @property
    def shown(self) -> str:
        """The option and its value, as in help."""
        dashes = "--" if self in OWN else "-"
        return f"{dashes}{self.name} {self.metavar}".rstrip()


GENERIC = (
    Option(
        "D", 1, "NAME=VALUE", "Sets a property; see the list of properties.", "yes", "case:reduces"
    ),
    Option(
        "conf",
        1,
        "FILE",
        "Sets the properties of a Hadoop configuration file.",
        "yes",
        "test_parse.py::test_a_configuration_file_sets_properties",
    ),
    Option(
        "fs",
        1,
        "URI",
        "Where paths without a scheme are: `local` or `file:///`. Others are refused.",
        "partly",
        "test_parse.py::test_what_cannot_be_honoured_is_refused_by_name",
    ),
    Option(
        "jt",
        1,
        "ADDRESS",
        "`local`: the job runs here; others are refused.",
        "partly",
        "test_parse.py::test_what_cannot_be_honoured_is_refused_by_name",
    ),
    Option(
        "files",
        1,
        "FILE,...",
        "Puts files into the tasks' working directory; `FILE#name` gives another name.",
        "yes",
        "case:files",
    ),
    Option(
        "archives",
        1,
        "FILE,...",
        "Unpacks .zip, .jar, .tar, .tar.gz and .tgz into directories in the tasks' "
        "working directory. A directory has the name of its archive; `FILE#name` gives another "
        "name.",
        "yes",
        "case:archives",
    ),
    Option(
        "libjars",
        1,
        "JAR,...",
        "Refused: there is no Java here.",
        "refused",
        "test_parse.py::test_what_cannot_be_honoured_is_refused_by_name",
    ),
)

STREAMING = (
    Option(
        "input",
        -1,
        "PATH...",
        "Files, directories, globs or comma lists; repeatable. Of a directory, the files whose "
        "names begin with `_` or `.` are left out.",
        "yes",
        "case:inputs",
    ),
    Option("output", 1, "DIR", "The directory to make.", "yes", "case:wordcount"),
    Option(
        "mapper",
        1,
        "CMD",
        "The mapper: a command, run without a shell, or the name of a supported class. "
        "Without one, records go through unchanged.",
        "yes",
        "case:wordcount",
    ),
    Option("combiner", 1, "CMD", "Combines the pairs of a spill.", "yes", "case:combiner"),
    Option(
        "reducer",
        1,
        "CMD",
        "The reducer: a command, `NONE`, `aggregate`, or the name of a supported class. "
        "Without one, pairs go through unchanged.",
        "yes",
        "case:wordcount",
    ),
    Option(
        "file", -1, "FILE...", "Puts files into the tasks' working directory.", "yes", "case:file"
    ),
    Option(
        "inputformat",
        1,
        "CLASS",
        "How input is read; see the list of classes.",
        "yes",
        "case:kv-input",
    ),
    Option(
        "outputformat",
        1,
        "CLASS",
        "How output is written; see the list of classes.",
        "yes",
        "case:sequence-out",
    ),
    Option(
        "partitioner",
        1,
        "CLASS",
        "How keys are partitioned; see the list of classes.",
        "yes",
        "case:partition-field",
    ),
    Option(
        "numReduceTasks",
        1,
        "N",
        "How many reduce tasks there are; 0 for a job without reduces.",
        "yes",
        "case:reduces",
    ),
    Option(
        "inputreader",
        1,
        "SPEC",
        "`StreamXmlRecord,begin=MARK,end=MARK` (or StreamXmlRecordReader): what is "
        "between two marks.",
        "yes",
        "case:xml",
    ),
    Option(
        "cmdenv",
        1,
        "NAME=VALUE",
        "Sets an environment variable of the scripts; repeatable.",
        "yes",
        "case:environment",
    ),
    Option(
        "io",
        1,
        "KIND",
        "`text`, `rawbytes`, `typedbytes` or `keyonlytext`: how scripts are fed and read.",
        "yes",
        "case:rawbytes",
    ),
    Option("lazyOutput", 0, "", "Makes a part file only if it has records.", "yes", "case:lazy"),
    Option(
        "background",
        0,
        "",
        "Starts the job and does not wait for it.",
        "yes",
        "test_command.py::test_a_job_in_the_background_ends_by_itself",
    ),
    Option(
        "verbose",
        0,
        "",
        "First prints how each option was understood, as `--explain` does.",
        "yes",
        "test_command.py::test_verbose_says_what_was_understood",
    ),
    Option("info", 0, "", "Shows help.", "yes", "test_command.py::test_help_is_hadoops_and_ours"),
    Option("help", 0, "", "Shows help.", "yes", "test_command.py::test_help_is_hadoops_and_ours"),
    Option(
        "debug",
        0,
        "",
        "Accepted: there is no jar to keep.",
        "no effect",
        "test_parse.py::test_what_has_no_effect_is_noted",
    ),
    Option(
        "mapdebug",
        1,
        "CMD",
        "A command that runs after a failed attempt at a map, in its working directory. Its "
        "arguments are four files: stdout (empty: the mapper's is records), stderr (the last "
        "lines), syslog (the error), and the job's configuration. Its output is in the report of "
        "the failure. It does not run in a search for bad records.",
        "yes",
        "test_debug_scripts.py::test_what_a_debug_script_says_is_in_the_report",
    ),
    Option(
        "reducedebug",
        1,
        "CMD",
        "As -mapdebug, for a reduce.",
        "yes",
        "test_debug_scripts.py::test_what_a_debug_script_says_is_in_the_report",
    ),
    Option("jobconf", 1, "NAME=VALUE", "As -D (Hadoop advises against it).", "yes", "case:jobconf"),
    Option(
        "cacheFile",
        -1,
        "URI...",
        "As -files (Hadoop advises against it).",
        "yes",
        "test_shipped.py::test_files_and_archives_become_links",
    ),
    Option(
        "cacheArchive",
        -1,
        "URI...",
        "As -archives (Hadoop advises against it).",
        "yes",
        "test_shipped.py::test_files_and_archives_become_links",
    ),
    Option(
        "dfs",
        1,
        "URI",
        "As -fs (Hadoop advises against it).",
        "partly",
        "test_parse.py::test_what_cannot_be_honoured_is_refused_by_name",
    ),
    Option(
        "additionalconfspec",
        1,
        "FILE",
        "As -conf (Hadoop advises against it).",
        "yes",
        "test_parse.py::test_a_configuration_file_sets_properties",
    ),
)

_METAVARS = {
    "bytes": "SIZE",
    "count": "N",
    "path_list": "DIR",
    "pairs": "KEY=VALUE",
}

_MORE = {"memory": " The memory of the scripts is not part of it."}
"""What is so for scripts alone."""

_SHOWN_BY = {
    "overwrite": "test_command.py::test_an_output_is_replaced_only_when_asked",
    "runner": "test_command.py::test_worker_processes_give_the_same_output",
    "on": "../places/test_places.py::test_a_job_is_the_same_in_all_places",
    "nodes": "../cli/test_cluster_sharing.py::test_nodes_and_memory_bound_a_job",
    "compress_runs": "test_command.py::test_compressed_runs_give_the_same_output",
    "no_sync": "test_command.py::test_json_is_the_report",
    "replication": "test_parse.py::test_blocks_of_an_output_in_hdfs",
    "block_size": "test_parse.py::test_blocks_of_an_output_in_hdfs",
    "history": "test_command.py::test_json_is_the_report",
}


def _of_table(option: options.Option) -> Option:
    """An option of all jobs."""
    is_flag = option.kind == "flag"
    what = option.help if is_flag else f"{option.help.rstrip('.')}. By default {option.default}."
    return Option(
        option.dashed,
        0 if is_flag else 1,
        "|".join(option.choices) or _METAVARS.get(option.kind, "" if is_flag else "VALUE"),
        what + _MORE.get(option.name, ""),
        "yes",
        _SHOWN_BY.get(option.name, "test_command.py::test_little_memory_gives_the_same_output"),
    )


OWN = (
    Option(
        "explain",
        0,
        "",
        "Prints how each option was understood, on a cluster also its workers and memory, and"
        " runs nothing.",
        "yes",
        "test_command.py::test_explain_says_what_each_option_means",
    ),
    Option(
        "only-split",
        1,
        "N",
        "Runs the mapper on split N alone, with the same environment variables as in the job. "
        "Its output goes to OUTPUT-split-N.",
        "yes",
        "test_failures.py::test_one_split_runs_again_alone",
    ),
    *map(_of_table, (*user_code(), HISTORY)),
    Option(
        "json",
        0,
        "",
        "Prints the job's report as one JSON object.",
        "yes",
        "test_command.py::test_json_is_the_report",
    ),
)

OPTIONS = GENERIC + STREAMING + OWN

_BY_NAME = {option.name: option for option in OPTIONS}


def option_named(word: str) -> Option | None:
    """Return the option that a word of the command line is, such as `-input`.

    Example:
        >>> option_named("-input").metavar, option_named("-k2,2")
        ('PATH...', None)
    """
    if not word.startswith("-"):
        return None
    return _BY_NAME.get(word[2:] if word.startswith("--") else word[1:])
