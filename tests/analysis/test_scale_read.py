"""What `scale fit` reads: CSV and runs.jsonl, and what is wrong with files that it refuses."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.analysis.scale.reading import read


def written(folder: Path, text: str, name: str = "runs.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_with_all_kinds_of_columns(tmp_path: Path) -> None:
    text = (
        "# of Tuesday\n"
        "p,seconds,work,host,map,reduce,waste:retries,repeat\n"
        "1,100.5,2,a,60,40,3.5,1\n"
        "\n"
        '2, 51 ,2,"b, c",30,20,0,2\n'
    )
    data = read(written(tmp_path, text))
    assert data.measured == "seconds"
    one, two = data.runs
    assert (one.p, one.seconds, one.work) == (1, 100.5, 2)
    assert one.phases == {"map": 60, "reduce": 40}
    assert one.wastes == {"retries": 3.5}
    assert two.source.endswith("runs.csv, line 5")


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators_and_a_byte_order_mark(separator: str, tmp_path: Path) -> None:
    text = "\ufeff" + f"p{separator}throughput\r\n2{separator}10\r\n"
    data = read(written(tmp_path, text))
    assert (data.measured, data.runs[0].rate) == ("throughput", 10)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file is empty"),
        (" \n\n", "the file is empty"),
        ("p,seconds\n", "there is no line below the column names"),
        ("n,seconds\n1,2\n", "there is no column p among the columns: n, seconds"),
        ("p,time\n1,2\n", "there is no column seconds and no column throughput"),
        ("p,seconds,throughput\n1,2,3\n", "there are columns of seconds and of throughput"),
        ("p,p,seconds\n1,1,2\n", "two columns have the name 'p'"),
        ("p,seconds\n1,2\n2,abc\n", r"seconds is 'abc', not a number above 0 \(.*, line 3\)"),
        ("p,seconds\n1,2\n2,-1\n", "seconds is '-1', not a number above 0 .*line 3"),
        ("p,seconds\n1,2\n2,0\n", "seconds is '0', not a number above 0 .*line 3"),
        ("p,seconds\n1,nan\n", "seconds is 'nan'"),
        ("p,seconds\n1,inf\n", "seconds is 'inf'"),
        ("p,seconds\n1,\n", "seconds is empty, not a number above 0 .*line 2"),
        ("p,seconds\n0,5\n", "p is '0', not a number above 0"),
        ("p,seconds\n1,2,3\n", "the line has 3 cells, and there are 2 columns .*line 2"),
        ("p,seconds,map\n1,2,1\n2,3,x\n", "map is 'x', not a number from 0 on .*line 3"),
        ("p,seconds,waste:\n1,2,1\n", "a column is called waste: without a name"),
        (
            "p,seconds,pid\n1,100,4\n2,50,12340\n",
            "pid is 12340 s, and the run took 50 s in all .*line 3.*leave the column pid out",
        ),
        ("p,throughput,map\n1,2,1\n", "the column map is of a phase"),
        ('p,seconds\n1,"2\n', "the line is not CSV"),
        ('{"p": 1, "seconds": 2}\n{"p": 2, "sec', "the line is not JSON .*line 2"),
        ('{"p": 1, "seconds": -2}\n', "seconds is -2, not a number above 0 .*line 1"),
        ('{"p": 1}\n', "seconds is None"),
        ('{"format": 1}\n', "no line is a run"),
        ('{"p": 1, "seconds": 2, "phases": {"map": "x"}}\n', "phases, map: 'x'"),
        ('{"p": 1, "seconds": 2, "phases": 3}\n', "phases is not an object"),
        (f'{{"p": {"9" * 400}, "seconds": 2}}\n', r"p is inf, and cannot be above 1e\+12 .*line 1"),
        (f'{{"p": -{"9" * 400}, "seconds": 2}}\n', r"p is -9+\.\.\., not a number above 0"),
        ('{"p": 1, "seconds": true}\n', "seconds is True, not a number above 0"),
        (f'{{"p": 1, "seconds": 2, "x": {"[" * 100_000}\n', "the line is not JSON .*line 1"),
        ("p,seconds\n1,2\n1e300,5\n", r"p is 1e\+300, and cannot be above 1e\+12 .*line 3"),
        ("p,seconds\n1,3e-308\n", "seconds is 3e-308, and cannot be below 1e-50 .*line 2"),
        ("p,throughput\n1,3e-308\n", "throughput is 3e-308, and cannot be below 1e-50 .*line 2"),
    ],
)
def test_what_is_wrong_with_a_file(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=says) as raised:
        read(written(tmp_path, text))
    assert "What to do: " in str(raised.value)
    assert "runs.csv" in str(raised.value)


def test_bytes_that_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes(b"p,seconds\n\xff\n")
    with pytest.raises(ValueError, match="byte 10 is not UTF-8"):
        read(path)


def test_warm_up_is_left_out(tmp_path: Path) -> None:
    lines = '{"format": 1}\n{"p": 1, "seconds": 9, "warm_up": true}\n{"p": 1, "seconds": 2}\n'
    assert [run.seconds for run in read(written(tmp_path, lines, "runs.jsonl")).runs] == [2]


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_bytes(f"p,seconds\n{text}".encode("utf-8", "surrogatepass"))
        try:
            assert all(run.seconds > 0 for run in read(path).runs)
        except ValueError as error:
            assert "What to do: " in str(error)
