"""Our TeraGen, TeraSort and TeraValidate against Apache Hadoop's own.

    gristmill teragen   ══ the same bytes ══   Hadoop TeraGen
    gristmill terasort  ──> Hadoop TeraValidate       Hadoop TeraSort ──> gristmill teravalidate
    damaged output      ──> both validators    ══ the same report

Reports are compared as sets of entries: Hadoop's single reducer sees the errors of several files
in no fixed order.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .harness import Hadoop, HadoopFailed

# The first test may have to fetch Hadoop.
pytestmark = pytest.mark.timeout(600)

GRISTMILL = Path(sys.executable).with_name("gristmill")

ROWS = 10_000
MAPS = 2
PARTITIONS = 3
RECORD_BYTES = 100

Damage = Callable[[list[Path]], None]


def gristmill(*arguments: str | Path, status: int = 0) -> str:
    """Run the command line, expect an exit status, return what it printed."""
    done = subprocess.run(
        [GRISTMILL, *map(str, arguments)], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == status, f"{arguments}:\n{done.stdout}{done.stderr}"
    return done.stdout


def checksum_by_gristmill(data: Path) -> str:
    return json.loads(gristmill("teravalidate", data, "--json"))["checksum"]


def entries(report: list[str]) -> list[str]:
    """Put lines that continue an entry ("  file …") back to it, and the entries in order."""
    return sorted(re.split(r"\n(?! )", "\n".join(report)))


def parts_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name[0] not in "._")


def swap_records(part: Path, i: int, j: int) -> None:
    data = part.read_bytes()
    records = [data[at : at + RECORD_BYTES] for at in range(0, len(data), RECORD_BYTES)]
    records[i], records[j] = records[j], records[i]
    part.write_bytes(b"".join(records))


def rename_all(parts: list[Path], names: list[str]) -> None:
    aside = [part.rename(part.with_name(f"{part.name}.aside")) for part in parts]
    for part, name in zip(aside, names, strict=True):
        part.rename(part.with_name(name))


@pytest.fixture(scope="module")
def generated(hadoop: Hadoop, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Hadoop's data, and the low 64 bits of its checksum."""
    data = tmp_path_factory.mktemp("teragen") / "data"
    return data, hadoop.teragen(ROWS, data, maps=MAPS)


@pytest.fixture(scope="module")
def sorted_by_gristmill(
    generated: tuple[Path, int], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Our sorted output, from an input with an empty file in it."""
    data, _ = generated
    folder = tmp_path_factory.mktemp("terasort")
    shutil.copytree(data, folder / "in")
    (folder / "in" / f"part-m-{MAPS:05}").touch()
    gristmill("terasort", folder / "in", folder / "out", "--partitions", str(PARTITIONS))
    return folder / "out"


def test_the_yardstick_gives_the_published_checksum(hadoop: Hadoop, tmp_path: Path) -> None:
    assert hadoop.teragen(1000, tmp_path / "data", maps=3) == 0x1F9FFE645EC
    sizes = [part.stat().st_size // RECORD_BYTES for part in parts_of(tmp_path / "data")]
    assert sizes == [334, 333, 333]


def test_the_yardstick_refuses_half_a_record(hadoop: Hadoop, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "part-r-00000").write_bytes(bytes(250))
    with pytest.raises(HadoopFailed, match="read past eof"):
        hadoop.teravalidate(tmp_path / "data", tmp_path / "report")


def test_teragen_writes_the_same_files(generated: tuple[Path, int], tmp_path: Path) -> None:
    theirs, _ = generated
    ours = tmp_path / "data"
    gristmill("teragen", str(ROWS), ours, "--files", str(MAPS))
    names = [f"part-m-{i:05}" for i in range(MAPS)]
    assert [part.name for part in parts_of(ours)] == names
    for name in names:
        assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name


def test_hadoop_accepts_our_sorted_output(
    hadoop: Hadoop, generated: tuple[Path, int], sorted_by_gristmill: Path, tmp_path: Path
) -> None:
    _, checksum_low64 = generated
    assert len(parts_of(sorted_by_gristmill)) == PARTITIONS
    report = hadoop.teravalidate(sorted_by_gristmill, tmp_path / "report")
    checksum = checksum_by_gristmill(sorted_by_gristmill)
    assert report == [f"checksum\t{checksum}"]
    assert int(checksum, 16) % 2**64 == checksum_low64


def test_we_accept_hadoops_sorted_output(
    hadoop: Hadoop, generated: tuple[Path, int], tmp_path: Path
) -> None:
    data, _ = generated
    hadoop.terasort(data, tmp_path / "out", reduces=PARTITIONS)
    report = hadoop.teravalidate(tmp_path / "out", tmp_path / "report")
    assert report == [f"checksum\t{checksum_by_gristmill(tmp_path / 'out')}"]


def records_swapped(parts: list[Path]) -> None:
    swap_records(parts[0], 4, 5)  # neighbours: one misorder
    swap_records(parts[1], 3, 10)  # two misorders
    swap_records(parts[2], 0, -1)  # two, and the part begins after its end


def empty_parts_between(parts: list[Path]) -> None:
    for part in parts:
        part.with_name(f"{part.name}-empty").touch()


def parts_swapped(parts: list[Path]) -> None:
    rename_all(parts, [parts[1].name, parts[0].name, parts[2].name])
    empty_parts_between(parts)  # the comparison reaches across one


def names_that_start_alike(parts: list[Path]) -> None:
    # Hadoop orders "part-10:begin" before "part-1:begin", since 0 comes before the colon.
    rename_all(parts, ["part-10", "part-1", "part-2"])


@pytest.mark.parametrize(
    ("damage", "errors"),
    [
        (records_swapped, 6),
        (empty_parts_between, 0),
        (parts_swapped, 1),
        (names_that_start_alike, 0),
    ],
)
def test_both_validators_report_the_same(
    damage: Damage, errors: int, hadoop: Hadoop, sorted_by_gristmill: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    # Without hidden files: no .crc (harness.py) may contradict what the damage makes of the data.
    shutil.copytree(sorted_by_gristmill, data, ignore=shutil.ignore_patterns(".*", "_*"))
    damage(parts_of(data))

    theirs = entries(hadoop.teravalidate(data, tmp_path / "report"))
    assert [entry.startswith("error\t") for entry in theirs].count(True) == errors
    ours = gristmill("teravalidate", data, status=1 if errors else 0)
    assert entries(ours.removesuffix("\n").split("\n")) == theirs
