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

<!-- Made by `python -m gristmill.streaming.page`; a test checks that it is up to date. -->

`gristmill streaming` takes the command line of `hadoop jar hadoop-streaming.jar` and runs the
same scripts, on all cores of one machine, with nothing installed. Records fall into the same part
files, in the same order, as with Hadoop 3.4.2: the tests run the same jobs through Hadoop's own
jar and compare bytes, counters and exit codes.

    gristmill streaming -files mapper.py,reducer.py -input logs -output counts \\
        -mapper mapper.py -reducer reducer.py -numReduceTasks 4

Exit codes: 0 done, 1 failed, 5 the output exists or the input does not, as Hadoop's; 2 for an
option that is not known or cannot be honoured (Hadoop: 1), which is named.

Jobs of mrjob run with `gristmill hadoop` where its Hadoop runner calls `hadoop`. It asks for a
jar of that name, which may be empty:

    touch hadoop-streaming.jar
    python job.py -r hadoop --hadoop-bin "gristmill hadoop" \\
        --hadoop-streaming-jar hadoop-streaming.jar input.txt

What is different:

- Equal keys come in the order of the input. Hadoop gives them in no particular order.
- A mapper that stops reading, and ends with exit code 0, has succeeded, however much input was
  left. In Hadoop that depends on buffers: with much input left it fails with "Broken pipe".
- A task that fails is tried again, and when that does not help, the report names file, offset,
  number of records and the script's last lines, with a command that runs that split alone,
  from any folder (`--only-split`); of a reducer, or where there is a combiner, `gristmill retry
  JOB` runs the task again, with what it was given.
- `gristmill resume last` resumes a job that was killed, from the tasks that are proved done, in
  the environment it was begun in; if an input or a shipped file changed, it is refused.
- Numbers in keys are ordered as KeyFieldBasedComparator orders them wherever it agrees with
  itself; two keys that lack a field are equal here.
- Separators of FieldSelectionMapReduce stand for themselves. In Hadoop they are regular
  expressions, where `.` and `|` mean something else.
- A compressed file is one split: of NLineInputFormat too, which loses lines of it in Hadoop, and of
  bzip2 too, which Hadoop cuts. StreamXmlRecordReader reads what it holds, where Hadoop looks for
  the marks in its compressed bytes.
- Separators may be any characters. Hadoop fails at control characters such as `\\x01`: it cannot
  write them down in its `job.xml`.
- `-files` may be given more than once. Of any other option that is, the first counts, as in Hadoop.
- `stream.num.reduce.output.fields`, as Hadoop's manual has it, has the effect that the manual
  says. In Hadoop itself only `stream.num.reduce.output.key.fields` has.
- `${name}` in a property stands for another one, as in Hadoop; of Hadoop's own defaults and of what
  differs from task to task there is none to be had, and such a `${name}` stays as it is.
- Numbers with a fraction (DoubleValueSum) are printed with the fewest digits that tell them
  apart, as Java does from version 19 on.
- Scripts see as variables the properties that were set, those in the table below that have a
  default, and the task's own (`mapreduce_task_id`, `mapreduce_task_attempt_id`,
  `mapreduce_task_partition`, `mapreduce_task_ismap`, `mapreduce_task_output_dir`,
  `mapreduce_job_id`, `mapreduce_map_input_file`, `..._start`, `..._length`, and their old names),
  not the hundreds of Hadoop's own defaults.
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
    lines += ["", "Properties and classes: see docs/streaming.md."]
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
        "Set with `-D name=value`. A property that is not here is handed to the scripts,",
        "and has no other effect; the command says so.",
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
