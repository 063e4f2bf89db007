"""Help, and docs/streaming.md: both made of the tables, so that neither can say what is not so."""

import textwrap

from gristmill.streaming import classes
from gristmill.streaming.options import GENERIC, OPTIONS, OWN, STREAMING, Option
from gristmill.streaming.properties import PROPERTIES

__all__ = ["help_text", "page"]

_EXAMPLE = """\
Example:
  gristmill streaming -files mapper.py,reducer.py -input logs -output counts \\
      -mapper mapper.py -reducer reducer.py -numReduceTasks 4"""

_INTRODUCTION = """\
# For those who come from Hadoop Streaming

<!-- Made by `make format` (`python -m gristmill.streaming.page`). Do not edit. -->

`gristmill streaming` takes the command line of `hadoop jar hadoop-streaming.jar` and runs the
same scripts. It uses all cores of one machine, or a Ray cluster with `--on ray`. It needs neither
Hadoop nor Java. Records fall into the same part files, in the same order, as with Hadoop 3.4.2:
the tests run the same jobs through Hadoop's own jar and compare bytes, counters and exit codes.

    gristmill streaming -files mapper.py,reducer.py -input logs -output counts \\
        -mapper mapper.py -reducer reducer.py -numReduceTasks 4

Exit codes are Hadoop's: 0 done, 1 failed, 5 the output exists or the input does not. For an option
that is not known or not supported, the exit code is 2 (Hadoop: 1), and the error names it.

For mrjob, use `gristmill hadoop` instead of `hadoop`. Its Hadoop runner asks for a jar of that
name, which may be empty:

    touch hadoop-streaming.jar
    python job.py -r hadoop --hadoop-bin "gristmill hadoop" \\
        --hadoop-streaming-jar hadoop-streaming.jar input.txt

What is different:

- Equal keys come in the order of the input. Hadoop gives them in no particular order.
- A mapper that stops reading and ends with exit code 0 has succeeded, however much input is left.
  In Hadoop that depends on buffers: with much input left it fails with "Broken pipe".
- A task that fails is tried again. If that does not help, the report names file, offset, number of
  records and the last lines of the script. It ends with a command that runs that split alone, from
  any directory (`--only-split`). For a reducer, or with a combiner, `gristmill retry ID` runs the
  task again with the same input. Both are for looking: when the script is mended, run the whole job
  again. To find the record that a script fails at, see
  [when a job fails](guide/when-it-fails.md#the-failing-record-of-a-script).
- A script reports on stderr, as in Hadoop: `reporter:counter:GROUP,NAME,AMOUNT` adds to a counter;
  `reporter:status:TEXT` says that the script is alive, and its text is not shown. Another line
  that begins with `reporter:` is passed over without a word.
- `gristmill resume last` resumes a job that was killed, from the tasks that are proved done, in the
  environment of the job. If an input or a shipped file changed, it is refused.
- Numbers in keys are in the order of KeyFieldBasedComparator, wherever that order is consistent.
  Two keys that lack a field are equal here.
- Separators of FieldSelectionMapReduce stand for themselves. In Hadoop they are regular
  expressions, where `.` and `|` mean something else.
- A compressed file is one split. This holds for NLineInputFormat, which loses lines of such files
  in Hadoop, and for bzip2, which Hadoop cuts. StreamXmlRecordReader decompresses the file; Hadoop
  looks for the marks in its compressed bytes.
- A record delimiter or a mark that overlaps itself is found wherever files are cut. In Hadoop, two
  line feeds within three may be lost at the border of a split, and StreamXmlRecordReader misses a
  mark behind its own first byte, as in `--->`.
- Separators may be any characters. Hadoop fails at control characters such as `\\x01`: it cannot
  write them to its `job.xml`.
- A combiner's output is cut into keys as the reducer's is (`stream.num.reduce.output.key.fields`),
  the mapper's by `stream.num.map.output.key.fields`, as in Hadoop. If the two are not equal, equal
  keys may come apart, and a warning says so.
- `-files`, and each option that the table calls repeatable, may be given more than once. Of another
  option of Hadoop the first one counts, as in Hadoop. Of an option of Gristmill, such as
  `--workers`, and of a property, the last one counts.
- `stream.num.reduce.output.fields` has the effect that Hadoop's manual describes. In Hadoop itself
  only `stream.num.reduce.output.key.fields` has.
- `${name}` in a property stands for another property, as in Hadoop. Hadoop's built-in defaults and
  properties of a single task are not available; such a `${name}` is left as it is.
- Numbers with a fraction (DoubleValueSum) are printed with the fewest digits that tell them
  apart, as Java does from version 19 on.
- Scripts see properties as variables: those that were set, those in the table below that have a
  default, and those of the task (`mapreduce_task_id`, `mapreduce_task_attempt_id`,
  `mapreduce_task_partition`, `mapreduce_task_ismap`, `mapreduce_task_output_dir`,
  `mapreduce_job_id`, `mapreduce_map_input_file`, `..._start`, `..._length`, and their old names).
  They do not see the hundreds of Hadoop's own defaults.
"""


def help_text() -> str:
    """Return what `gristmill streaming -help` prints."""
    lines = ["Usage: gristmill streaming [generic options] [options]", "", _EXAMPLE]
    for title, options in (
        ("Generic options (Hadoop wants them first)", GENERIC),
        ("Options", STREAMING),
        ("Options that Hadoop does not have", OWN),
    ):
        lines += ["", f"{title}:"]
        for option in options:
            lines.append(f"  {option.shown}")
            lines += _wrapped(option.what.replace("`", ""))
    lines += ["", "For the lists of properties and classes: python -m gristmill.streaming.page"]
    return "\n".join(lines)


def _wrapped(text: str) -> list[str]:
    indent = " " * 6
    return textwrap.wrap(text, 80, initial_indent=indent, subsequent_indent=indent)


def page() -> str:
    """Return docs/streaming.md."""
    lines = [_INTRODUCTION, "## Options", "", "| option | what it does here | |", "|---|---|---|"]
    lines += [_row(option) for option in OPTIONS]
    lines += [
        "",
        "## Properties",
        "",
        "Set with `-D name=value`. A property that is not here goes to the scripts and",
        "has no other effect. The command says so.",
        "",
        "| property | names it had | default | what it does here |",
        "|---|---|---|---|",
    ]
    for known in PROPERTIES:
        old = ", ".join(f"`{name}`" for name in known.old)
        default = f"`{known.default}`" if known.default else ""
        lines.append(f"| `{known.name}` | {old} | {default} | {known.what} |")
    for title, table in (
        ("Input formats", classes.INPUT_FORMATS),
        ("Output formats", classes.OUTPUT_FORMATS),
        ("Partitioners", classes.PARTITIONERS),
        ("Mappers and reducers", classes.STEPS),
    ):
        lines += ["", f"## {title}", "", "| class | |", "|---|---|"]
        lines += [f"| `{name}` | {what} |" for name, what in table.items()]
    return "\n".join(lines) + "\n"


def _row(option: Option) -> str:
    shown = option.shown.replace("|", "\\|")
    honoured = {"yes": "", "partly": "in part", "no effect": "no effect", "refused": "refused"}[
        option.honoured
    ]
    return f"| `{shown}` | {option.what} | {honoured} |"


if __name__ == "__main__":
    import sys

    sys.stdout.write(page())
