"""Hadoop's command line taken apart, and what it means, without a job."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.streaming.explain import explained
from gristmill.streaming.parse import WrongCommandError, parse, split_command, told
from gristmill.streaming.resolved import resolve
from gristmill.streaming.variables import environment

from .meaning import PLAIN, meant


def naive_words(command: str) -> list[str]:
    """PipeMapRed.splitArgs, line by line."""
    words, state, start = [], "outside", 0
    for at in range(len(command) + 1):
        last, before, end = at == len(command), state, False
        if not last:
            if command[at] == "'":
                state = {"outside": "single", "single": "outside"}.get(state, state)
                end = state != before
            elif command[at] == '"':
                state = {"outside": "double", "double": "outside"}.get(state, state)
                end = state != before
            elif command[at] == " " and state == "outside":
                end = True
        if last or end:
            if at != start:
                words.append(command[start:at])
            start = at + 1
    return words


@given(st.text("ab '\"\\|", max_size=20))
def test_commands_are_cut_as_hadoop_cuts_them(command: str) -> None:
    assert split_command(command) == naive_words(command)


def test_options_in_hadoops_spelling() -> None:
    found = parse(
        [
            "-D",
            "a=1",
            "-Db=x=y",
            "-D",
            "mapred.reduce.tasks=3",
            "-files",
            "f,g",
            "--input",
            "p",
            "q",
            "-input",
            "r",
            "-output",
            "-o-",
            "-cmdenv",
            "X=1",
            "-cmdenv",
            "Y=2",
            "-mapper",
            "old",
            "-mapper",
            "new",
            "-lazyOutput",
        ]
    )
    assert found.properties == {"a": "1", "b": "x=y", "mapreduce.job.reduces": "3"}
    assert found.options["input"] == ["p", "q", "r"]
    assert (found.first("output"), found.first("mapper")) == ("-o-", "old")  # as in Hadoop
    assert found.options["cmdenv"] == ["X=1", "Y=2"]
    assert found.has("lazyOutput")
    assert found.remarks == []


def test_generic_options_behind_others_are_remarked_on() -> None:
    (remark,) = parse(["-input", "a", "-D", "b=c", "-D", "d=e", "-D", "f=g"]).remarks
    assert remark == (
        "-D stands behind other options: it counts here all the same, but Hadoop wants it before "
        "them"
    )


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["-inptu", "a"], "-inptu"),
        (["stray"], "`stray`"),
        (["-output"], "-output"),
        (["-mapper", "-reducer", "cat"], "-mapper"),
    ],
)
def test_what_is_no_command_line_is_named(words: list[str], named: str) -> None:
    with pytest.raises(WrongCommandError, match=re.escape(named)):
        parse(words)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["-libjars", "a.jar"], "-libjars"),
        (["-fs", "hdfs://host:9000"], "-fs hdfs://host:9000"),
        (["-dfs", "host:9000"], "-fs host:9000"),
        (["-jt", "host:9001"], "-jt host:9001"),
        (["-mapdebug", " "], "-mapdebug is an empty command"),
        (["-D", "mapred.reduce.task.debug.script= "], "mapred.reduce.task.debug.script is an"),
        (["-inputformat", "com.example.MyFormat"], "com.example.MyFormat"),
        (["-outputformat", "MultipleTextOutputFormat"], "MultipleTextOutputFormat"),
        (["-partitioner", "com.example.Mine"], "com.example.Mine"),
        (["-inputreader", "com.example.Reader"], "com.example.Reader"),
        (["-inputreader", "StreamXmlRecord,begin=a"], "end=MARK"),
        (["-inputreader", "StreamXmlRecord,begin=a,end=b,slowmatch=true"], "slowmatch"),
        (["-combiner", "org.apache.hadoop.mapred.lib.LongSumReducer"], "LongSumReducer"),
        (["-combiner", "com.acme.MyReducer"], "-combiner com.acme.MyReducer is not supported: it"),
        (
            ["-mapper", "com.acme.MyMapper"],
            "the classes supported are IdentityMapper, InverseMapper, FieldSelectionMapReduce",
        ),
        (["-reducer", "com.acme.My"], "the classes supported are IdentityReducer, FieldSelection"),
        (["-reducer", "com.acme.MyReducer"], "-reducer com.acme.MyReducer is not supported: it is"),
        (["-reducer", "LongSumReducer"], "use -reducer aggregate, with a mapper that writes"),
        (["-io", "avro"], "avro"),
        (["-files", "not/there"], "not/there"),
        (["-files", "gopher://host/a"], "gopher"),
        (["-D", "stream.io.identifier.resolver.class=x"], "resolver"),
        (["-D", "mapreduce.input.pathFilter.class=x"], "pathFilter"),
        (["-D", "mapreduce.job.output.key.comparator.class=Mine"], "Mine"),
        (["-D", "mapreduce.job.reduces=many"], "mapreduce.job.reduces=many"),
        (["-D", "mapreduce.job.reduces=9999999999"], "9999999999 reduces"),
        (["-D", f"mapred.task.timeout={1 << 63}"], "mapred.task.timeout=9223372036854775808 is"),
        (["-D", "dfs.blocksize=99999999999T"], "beyond 64 bits"),
        (["-output", ""], "-output is missing"),
        (
            [
                *("-D", "mapreduce.fieldsel.map.output.key.value.fields.spec=0-9999999:"),
                *("-mapper", "org.apache.hadoop.mapred.lib.FieldSelectionMapReduce"),
            ],
            "no record has so many fields",
        ),
        (
            [
                "-D",
                "mapreduce.output.fileoutputformat.compress=true",
                "-D",
                "mapreduce.output.fileoutputformat.compress.codec=LzoCodec",
            ],
            "LzoCodec",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(words: list[str], named: str) -> None:
    with pytest.raises(WrongCommandError, match=re.escape(named)):
        resolve(parse([*words, *PLAIN]))  # of an option given twice, the first counts


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["-D", "mapreduce.job.reduces="], "mapreduce.job.reduces= is not a whole number"),
        (["-D", "mapreduce.job.reduces=0x"], "mapreduce.job.reduces=0x is not a whole number"),
        (["-D", "a=1${b}", "-D", "b=2${a}", "-numReduceTasks", "${a}"], "stand for each other"),
        (["-D", "a=2", "-numReduceTasks", "${a}" * 20], "20 placeholders"),
    ],
)
def test_numbers_that_hadoop_cannot_read_are_refused(words: list[str], named: str) -> None:
    with pytest.raises(WrongCommandError, match=re.escape(named)):
        resolve(parse([*words, *PLAIN]))


def test_placeholders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SET", "s")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("UNSET", raising=False)
    found = parse(["-D", "a=${b}${b}", "-D", "b=1", "-D", "self=x${self}", "-D", "mapred.x=2"])
    cases = {
        "${a}-${b}": "11-1",
        "${nope}${b}": "${nope}${b}",  # the first that stands for nothing ends it
        "${b}${nope}${b}": "1${nope}${b}",
        "${self}": "${self}",
        "${}${b $b ${ b}": "${}${b $b ${ b}",
        "${${b}}": "${1}",
        "${env.SET}${env.EMPTY}.": "s.",
        "${env.UNSET:-d}${env.EMPTY:-e}${env.UNSET-f}${env.EMPTY-g}": "def",
        "${mapred.reduce.tasks}": "1",  # the default of what it is called today
        "${file.separator}": "/",
        "${b}" * 19: "1" * 19,
    }
    assert {text: found.substituted(text) for text in cases} == cases


def test_what_is_missing_is_named() -> None:
    for missing in ("-input", "-output"):
        words = list(PLAIN)
        at = words.index(missing)
        del words[at : at + 2]
        with pytest.raises(WrongCommandError, match=missing):
            resolve(parse(words))


@pytest.mark.parametrize(
    "name",
    [
        "mapreduce.job.reduce.slowstart.completedmaps",
        "io.sort.mb",
        "mapreduce.map.memory.mb",
        "mapreduce.reduce.memory.mb",
        "stream.joindelay.milli",
        "yarn.anything",
    ],
)
def test_what_has_no_effect_is_noted(name: str) -> None:
    remarks = meant("-D", f"{name}=1", "-debug").remarks
    assert any(name in remark and "no effect" in remark for remark in remarks)
    assert any("-debug" in remark for remark in remarks)
    assert meant("-D", "my.own.property=1").remarks == []


def test_second_attempts() -> None:
    def speculative(*words: str) -> tuple[bool, bool]:
        found = meant(*words)
        assert found.remarks == []
        return found.speculative["speculative"], found.speculative["reduce_speculative"]

    assert speculative() == (True, True)
    assert speculative("-D", "mapreduce.map.speculative=false") == (False, True)
    assert speculative("-D", "mapred.reduce.tasks.speculative.execution=false") == (True, False)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("mapreduce.job.reducers", "did you mean mapreduce.job.reduces?"),
        ("mapred.reduce.task", "did you mean mapreduce.job.reduces?"),
        ("stream.num.map.output.key.field", "did you mean stream.num.map.output.key.fields?"),
        ("mapred.cache.files", "use -files"),
        ("mapreduce.job.cache.archives", "use -archives"),
    ],
)
def test_a_misspelt_property_has_a_suggestion(name: str, instead: str) -> None:
    (remark,) = meant("-D", f"{name}=1").remarks
    assert remark == f"-D {name} has no effect here; scripts see it as a variable: {instead}"


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("cut -f1 | sort", "|"),
        ("cat 2>&1", "2>&1"),
        ("sh -c 'cut -f1 | sort'", None),
        ("awk -F '|' {print}", None),
        ('awk -F "|" {print}', None),
    ],
)
def test_a_command_that_means_a_shell_is_noted(command: str, word: str | None) -> None:
    remarks = meant("-mapper", command).remarks
    assert bool(remarks) == (word is not None)
    if word:
        assert f"run without a shell, so {word} is an argument" in remarks[0]


def test_a_program_may_be_named_as_a_class_is(tmp_path: Path) -> None:
    program = tmp_path / "com.acme.MyMapper"
    program.touch()
    assert meant("-files", str(program), "-mapper", program.name).definition["map"] == {
        "script": [program.name]
    }


def test_only_who_misspelt_is_sent_to_the_help() -> None:
    for words, advised in ((["-imput", "a"], True), (["-numReduceTasks", "x"], False)):
        with pytest.raises(WrongCommandError) as raised:
            resolve(parse([*words, *PLAIN]))
        assert ("What to do" in told(raised.value)) == advised


def test_a_configuration_file_sets_properties(tmp_path: Path) -> None:
    conf = tmp_path / "conf.xml"
    conf.write_text(
        "<configuration><property><name>mapred.reduce.tasks</name><value>7</value></property>"
        "<property><name>a.b</name><value>c</value></property></configuration>"
    )
    assert meant("-conf", str(conf)).partitions == 7
    assert meant("-additionalconfspec", str(conf)).arguments.properties["a.b"] == "c"
    assert meant("-conf", str(conf), "-D", "mapreduce.job.reduces=2").partitions == 2
    conf.write_text("no xml")
    with pytest.raises(WrongCommandError, match=r"conf\.xml"):
        meant("-conf", str(conf))


@pytest.mark.parametrize(
    ("codec", "ours", "said"),
    [
        ("org.apache.hadoop.io.compress.Lz4Codec", "lz4", False),
        ("ZStandardCodec", "zstd", False),
        ("org.apache.hadoop.io.compress.SnappyCodec", "lz4", True),
        ("GzipCodec", "zstd", True),
        (None, "zstd", True),
    ],
)
def test_compression_of_runs(codec: str | None, ours: str, *, said: bool) -> None:
    for compress, name in (
        ("mapreduce.map.output.compress", "mapreduce.map.output.compress.codec"),
        ("mapred.compress.map.output", "mapred.map.output.compression.codec"),
    ):
        words = [] if codec is None else ["-D", f"{name}={codec}"]
        found = meant("-D", f"{compress}=true", *words)
        assert found.compress_runs == ours
        remark = f"runs between map and reduce are compressed with {ours} here"
        assert [line for line in found.remarks if line.startswith(remark)] == found.remarks
        assert bool(found.remarks) == said
        assert f"runs         compressed with {ours}" in explained(found)
        assert not meant("-D", f"{compress}=false", *words).compress_runs
        own = meant("-D", f"{compress}=true", *words, "--compress-runs", "none")
        assert (own.compress_runs, own.remarks) == ("none", [])
    with pytest.raises(WrongCommandError, match=r"LzoCodec is not supported; supported are"):
        meant("-D", "mapred.compress.map.output=true", "-D", f"{name}=com.x.LzoCodec")


def test_blocks_of_an_output_in_hdfs() -> None:
    words = ["-D", "dfs.replication=2", "-D", "dfs.block.size=1m", "-input", "in", "-mapper", "cat"]
    there = resolve(parse([*words, "-output", "hdfs://h/out"]))
    assert there.blocks == {"replication": 2, "block_size": 1 << 20}
    assert resolve(parse([*words, "-output", "out"])).blocks == {}
    own = parse(["--replication", "1", "--block-size", "64KiB", *PLAIN])
    assert (own.last("replication"), own.last("block-size")) == ("1", "64KiB")


def test_a_property_set_to_nothing_is_not_set() -> None:
    # So it is in Hadoop: the tasks read their properties from a file, where it is overlooked.
    name = "stream.map.output.field.separator"
    found = meant("-D", f"{name}=;", "-D", "mapred.reduce.tasks=2", "-D", f"{name}=")
    assert found.definition["map_streams"]["output_separator"] == "\t"
    assert name.replace(".", "_") not in dict(environment(found, 1))
    assert found.remarks == [f"-D {name}= sets nothing, as in Hadoop: the default stays"]


def test_a_separator_of_keys_and_values_is_a_byte_as_java_cuts_one() -> None:
    name = "mapreduce.input.keyvaluelinerecordreader.key.value.separator"
    for text, byte in ((";", 0x3B), ("::", 0x3A), ("é", 0xE9), ("中", 0x2D)):
        found = meant("-D", f"{name}={text}", "-inputformat", "KeyValueTextInputFormat").request
        assert found["format"]["key_value"]["separator"] == byte


@pytest.mark.parametrize("number", ["0", "-1", "1"])
def test_a_key_has_one_field_at_least(number: str) -> None:
    found = meant(
        *("-D", f"stream.num.map.output.key.fields={number}"),
        *("-D", f"stream.num.reduce.output.key.fields={number}"),
    ).definition
    assert [found[f"{side}_streams"]["key_fields"] for side in ("map", "reduce")] == [1, 1]


def test_small_sequence_files_are_not_cut() -> None:
    least = {
        name: meant("-inputformat", name).request["min_bytes"]
        for name in ("SequenceFileInputFormat", "SequenceFileAsTextInputFormat", "TextInputFormat")
    }
    assert list(least.values()) == [102_400, 102_400, 1]


def test_properties_of_the_record_reader() -> None:
    reader = "stream.recordreader"
    words = [
        "-D",
        f"{reader}.class=StreamXmlRecordReader",
        "-D",
        f"{reader}.begin=<a>",
        "-D",
        f"{reader}.end=</a>",
    ]
    found = meant(*words, "-inputformat", "StreamInputFormat")
    assert found.request["format"] == {"xml": {"begin": "<a>", "end": "</a>"}}


def test_variables_are_named_as_hadoop_names_them() -> None:
    found = dict(environment(meant("-D", "my.a-b=1", "-D", "mapred.job.name=n"), 5))
    assert found["my_a_b"] == "1"
    assert (found["mapreduce_job_name"], found["mapred_job_name"]) == ("n", "n")
    assert (found["mapreduce_job_maps"], found["mapred_map_tasks"]) == ("5", "5")


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        (["-D", "stream.num.map.output.key.fields=2"], (1, 2)),
        (["-D", "stream.num.reduce.output.key.fields=3"], (3, 1)),
        ([*(f"-Dstream.num.{side}.output.key.fields=2" for side in ("map", "reduce"))], None),
        (["-D", "stream.num.map.output.key.fields=2", "-io", "typedbytes"], None),
        (["-D", "stream.num.map.output.key.fields=2", "-numReduceTasks", "0"], None),
    ],
)
def test_a_combiner_that_cuts_other_keys_is_told_of(
    options: list[str], fields: tuple[int, int] | None
) -> None:
    with_it = meant(*options, "-combiner", "cat").remarks
    assert meant(*options).remarks == []
    if fields is None:
        assert with_it == []
        return
    made, given = fields
    (remark,) = with_it
    shown = "1 field" if made == 1 else f"{made} fields"
    assert remark == (
        f"the combiner's output has keys of {shown}, the mapper's of {given}, so equal keys may "
        f"come apart: set -D stream.num.reduce.output.key.fields={given}"
    )


def test_inputs_are_told_to_scripts_as_they_were_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/a.txt").touch()
    monkeypatch.chdir(tmp_path)
    words = ["-input", "logs/,../x", "-input", "s3a://b/*.gz", "-output", "o", "-mapper", "cat"]
    found = dict(environment(resolve(parse(words)), 1))
    given = f"file:{tmp_path}/logs,file:{tmp_path.parent}/x,s3://b/*.gz"
    assert found["mapreduce_input_fileinputformat_inputdir"] == given
    assert found["mapred_input_dir"] == given


@pytest.mark.parametrize(
    ("given", "attempts"),
    [
        ([], (4, 4)),
        (["map.maxattempts=1"], (1, 4)),
        (["reduce.maxattempts=9"], (4, 9)),
        (["map.maxattempts=0", "reduce.maxattempts=-1"], (1, 1)),
    ],
)
def test_maps_and_reduces_have_attempts_of_their_own(
    given: list[str], attempts: tuple[int, int]
) -> None:
    found = meant(*(f"-Dmapreduce.{pair}" for pair in given))
    assert (found.attempts, found.remarks) == (attempts, [])
