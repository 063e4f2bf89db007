"""The properties that say what becomes of a task that fails: a part of the table."""

from gristmill.streaming.property import Property

__all__ = ["FAILURE_PROPERTIES"]

FAILURE_PROPERTIES = (
    Property(
        "mapreduce.map.maxattempts",
        ("mapred.map.max.attempts",),
        "4",
        "Tries of a map task.",
        "test_failures.py::test_attempts_and_exit_codes",
    ),
    Property(
        "mapreduce.reduce.maxattempts",
        ("mapred.reduce.max.attempts",),
        "4",
        "Tries of a reduce task.",
        "test_failures.py::test_attempts_and_exit_codes",
    ),
    Property(
        "mapreduce.map.speculative",
        ("mapred.map.tasks.speculative.execution",),
        "true",
        "Begin a second attempt at a slow map task on another node of a cluster; the first to end "
        "counts. `false` is for scripts that have effects besides their output.",
        "test_parse.py::test_second_attempts",
    ),
    Property(
        "mapreduce.reduce.speculative",
        ("mapred.reduce.tasks.speculative.execution",),
        "true",
        "The same of a reduce task.",
        "test_parse.py::test_second_attempts",
    ),
    Property(
        "mapreduce.task.timeout",
        ("mapred.task.timeout",),
        "600000",
        "Milliseconds after which a script that "
        "reads, writes and says nothing is killed; 0: never.",
        "test_failures.py::test_a_script_that_hangs",
    ),
    Property(
        "mapreduce.map.skip.maxrecords",
        ("mapred.skip.map.max.skip.records",),
        "0",
        "More than 0: the attempt after mapreduce.task.skip.start.attempts searches by halves for "
        "the records at which the mapper fails. Around each bad record it leaves out at most this "
        "many records, counted as MAP_SKIPPED_RECORDS. The whole search is one attempt. (Hadoop "
        "took an attempt for each step. Its MapReduce on YARN has no skip mode.) The search ends "
        "without success when the script has failed 100 times for each of "
        "mapreduce.map.maxattempts. It is shorter if the script reports what it has processed, "
        "with `reporter:counter:SkippingTaskCounters,MapProcessedRecords,1`.",
        "test_skip.py::test_bad_records_are_left_out",
    ),
    Property(
        "mapreduce.reduce.skip.maxgroups",
        ("mapred.skip.reduce.max.skip.groups",),
        "0",
        "The same of the reducer: whole groups are left out, counted as REDUCE_SKIPPED_GROUPS and "
        "their pairs as REDUCE_SKIPPED_RECORDS; it reports `ReduceProcessedGroups`.",
        "test_skip.py::test_bad_groups_are_left_out",
    ),
    Property(
        "mapreduce.task.skip.start.attempts",
        ("mapred.skip.attempts.to.start.skipping",),
        "2",
        "The search for bad records begins after this many failed attempts. It never begins if a "
        "task has no more attempts than this.",
        "test_skip.py::test_skip_mode_begins_after_so_many_attempts",
    ),
    Property(
        "mapreduce.job.skip.outdir",
        ("mapred.skip.out.dir",),
        "",
        "Where records that are left out are kept, as they were read, in a sequence file for each "
        "attempt: `_logs/skip` in the output by default, as in Hadoop; `none`: nowhere.",
        "test_skip.py::test_what_is_left_out_is_kept",
    ),
    Property(
        "mapreduce.job.skiprecords",
        ("mapred.skip.on",),
        "false",
        "Says to scripts whether their attempt leaves records out; to set it has no effect.",
        "test_skip.py::test_bad_records_are_left_out",
    ),
    Property(
        "mapreduce.map.skip.proc-count.auto-incr",
        ("mapred.skip.map.auto.incr.proc.count",),
        "true",
        "Without effect, as in Hadoop Streaming: only a script knows what it has processed.",
        "test_skip.py::test_only_scripts_count",
        effect=False,
    ),
    Property(
        "mapreduce.reduce.skip.proc-count.auto-incr",
        ("mapred.skip.reduce.auto.incr.proc.count",),
        "true",
        "Without effect, likewise.",
        "test_skip.py::test_only_scripts_count",
        effect=False,
    ),
    Property(
        "mapreduce.map.failures.maxpercent",
        ("mapred.max.map.failures.percent",),
        "0",
        "So many percent of the map tasks may fail for good: the job is done without their splits, "
        "with a warning that names them and the first one's error, and counted as "
        "NUM_FAILED_MAPS (in Hadoop that counts attempts). Only tasks count whose script or "
        "input was at fault: a full disk ends the job. Hadoop's local runner does not look at it.",
        "test_max_failed_percent.py::test_so_many_maps_may_fail",
    ),
    Property(
        "mapreduce.reduce.failures.maxpercent",
        ("mapred.max.reduce.failures.percent",),
        "0",
        "As mapreduce.map.failures.maxpercent, of the reduce tasks: their parts are not there, "
        "and they are counted as NUM_FAILED_REDUCES.",
        "test_max_failed_percent.py::test_so_many_reduces_may_fail",
    ),
    Property(
        "mapreduce.map.debug.script",
        ("mapred.map.task.debug.script",),
        "",
        "As -mapdebug. Hadoop's MapReduce on YARN takes it and runs nothing.",
        "test_debug_scripts.py::test_what_a_debug_script_says_is_in_the_report",
    ),
    Property(
        "mapreduce.reduce.debug.script",
        ("mapred.reduce.task.debug.script",),
        "",
        "As -reducedebug.",
        "test_debug_scripts.py::test_what_a_debug_script_says_is_in_the_report",
    ),
)
