"""The inputs and scripts of the comparison, the same in every run."""

import gzip
import random
import stat
import struct
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path

__all__ = ["make_inputs", "make_scripts"]

_WORDS = [
    "the",
    "a",
    "of",
    "and",
    "mill",
    "grist",
    "stone",
    "wheat",
    "rye",
    "flour",
    "sieve",
    "sack",
    "wind",
    "water",
    "wheel",
    "ox",
    "ass",
    "horse",
]

_SCRIPTS = {
    "words.py": """
import sys
for line in sys.stdin:
    for word in line.split():
        print(word, 1, sep="\\t")
""",
    "count.py": """
import sys
last, total = None, 0
for line in sys.stdin:
    word, _, number = line.rstrip("\\n").partition("\\t")
    if word != last and last is not None:
        print(last, total, sep="\\t")
        total = 0
    last = word
    total += int(number)
if last is not None:
    print(last, total, sep="\\t")
""",
    "sum.py": """
import sys
print(sum(int(line.split()[0]) for line in sys.stdin))
""",
    "swap.py": """
import sys
for line in sys.stdin:
    key, _, value = line.rstrip("\\n").partition("\\t")
    print(value, key, sep="\\t")
""",
    "length.py": """
import sys
data = sys.stdin.buffer.read()
print(len(data), data.count(b"\\n"), sum(data) % 65521)
for line in data.split(b"\\n")[:5]:
    sys.stdout.flush()
    sys.stdout.buffer.write(line[:40] + b"\\n")
""",
    "raw_keys.py": """
import struct, sys
data, at, pairs = sys.stdin.buffer.read(), 0, []
while at < len(data):
    (size,) = struct.unpack_from(">i", data, at)
    pairs.append(data[at + 4 : at + 4 + size])
    at += 4 + size
for key, value in zip(pairs[::2], pairs[1::2]):
    text = value[1:]  # a Text: its length, one byte here, stands before it
    for part in (b"\\x00\\xff" + text[::-1], key[4:]):
        sys.stdout.buffer.write(struct.pack(">i", len(part)) + part)
""",
    "typed.py": """
import struct, sys
def typed(value):
    if isinstance(value, int):
        return b"\\x03" + struct.pack(">i", value)
    if isinstance(value, list):
        return b"\\x08" + struct.pack(">i", len(value)) + b"".join(map(typed, value))
    return b"\\x07" + struct.pack(">i", len(value.encode())) + value.encode()
for line in sys.stdin:
    words = line.rstrip("\\n").split("\\t")
    key = len(line) * 1000 + sum(map(ord, line)) % 1000
    sys.stdout.buffer.write(typed(key) + typed([*words, len(line)]))
""",
    "untyped.py": """
import sys
data = sys.stdin.buffer.read()
print(len(data), sum(data) % 65521, data[:50].hex())
""",
    "aggregate.py": """
import sys
for line in sys.stdin:
    for word in line.split():
        print(f"LongValueSum:{word}\\t1")
        print(f"ValueHistogram:letters\\t{word[0]}")
        print(f"UniqValueCount:words\\t{word}")
        print(f"DoubleValueSum:half\\t{len(word) / 2}")
        print(f"LongValueMax:longest\\t{len(word)}")
        print(f"longvaluemin:shortest\\t{len(word)}")
        print(f"StringValueMax:last\\t{word}")
        print(f"StringValueMin:first\\t{word}")
""",
    "aggregate_unique.py": """
import sys
for line in sys.stdin:
    for word in line.split():
        print(f"UniqValueCount:{len(word)}\\t{word}")
""",
    "report.py": """
import sys
print("reporter:status:begun", file=sys.stderr)
print("plain words for the log", file=sys.stderr)
for line in sys.stdin:
    print("reporter:counter:lines,all,1", file=sys.stderr)
    print(f"reporter:counter:lengths,{len(line) % 3},{len(line)}", file=sys.stderr)
    print("reporter:counter:wrong,no number,x", file=sys.stderr)
    print("reporter:counter:too,many,fields,1", file=sys.stderr)
    print("reporter:counter: spaced , name ,1", file=sys.stderr)
    print("reporter:counter:down,below zero,-2  ", file=sys.stderr)
    print(line, end="")
""",
    "report_say.py": """
import sys
for line in sys.stdin:
    print("say:counter:g,n,3", file=sys.stderr)
    print("reporter:counter:g,other,3", file=sys.stderr)
    print(line, end="")
""",
    "environment.py": """
import os, re, sys
sys.stdin.read()
names = ["ONE", "TWO", "my_own_property", "a_long_property", "mapreduce_job_name",
         "mapreduce_task_ismap", "mapred_task_is_map",
         "mapreduce_task_partition", "mapred_task_partition",
         "mapreduce_map_input_start", "map_input_start",
         "mapreduce_map_input_length", "map_input_length",
         "mapreduce_job_reduces", "mapreduce_job_maps"]
for name in names:
    print(name, os.environ.get(name))
for name in ["mapreduce_map_input_file", "map_input_file"]:
    print(name, os.environ[name].rsplit("/", 1)[-1])
for name in ["mapreduce_task_id", "mapred_tip_id", "mapreduce_task_attempt_id", "mapred_task_id"]:
    print(name, re.sub("_[a-z0-9]+_[0-9]+_([mr])_", r"_JOB_\\\\1_", os.environ[name]))
""",
    "environment_reduce.py": """
import os, sys
for line in sys.stdin:
    names = ["mapreduce_task_ismap", "mapred_task_partition", "map_input_file",
             "mapreduce_job_reduces"]
    print(line.rstrip("\\n"), *(os.environ.get(name) for name in names))
""",
    "report_big.py": """
import sys
print("reporter:counter:big,most,9223372036854775807", file=sys.stderr)
for line in sys.stdin:
    print("reporter:counter:big,half,4611686018427387904", file=sys.stderr)
""",
    "exit3.py": """
import sys
print("before")
sys.stdout.flush()
sys.exit(3)
""",
    "ignore.py": """
print("nothing read\\tbut this written")
""",
    "flood.py": """
import sys
for line in sys.stdin:
    print(line, end="")
    sys.stderr.write("x" * 300000)
    for i in range(20000):
        print("line", i, file=sys.stderr)
""",
    "forks.py": """
import os, sys, time
lines = sys.stdin.readlines()
if os.fork() == 0:
    time.sleep(0.3)
    print("from the child", len(lines))
    sys.stdout.flush()
    os._exit(0)
print("from the parent", len(lines))
""",
    "always.py": """
import sys
lines = sys.stdin.readlines()
print("read", len(lines))
""",
}


def make_scripts(folder: Path) -> None:
    """Put the scripts into a folder."""
    for name, text in _SCRIPTS.items():
        path = folder / name
        path.write_text(f"#!/usr/bin/env python3{text}", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def make_inputs(folder: Path) -> None:
    """Put the inputs into a folder."""
    chance = random.Random(20_041_206)

    def lines(count: int) -> str:
        chosen = (" ".join(chance.choices(_WORDS, k=chance.randint(1, 9))) for _ in range(count))
        return "".join(f"{line}\n" for line in chosen)

    words = lines(300)
    flat, tree = folder / "flat", folder / "tree"
    texts = {
        "words.txt": words,
        "empty.txt": "",
        "one.txt": "single\tline\n",
        "data.txt": "shipped\n",
        "more.txt": "shipped too\n",
        "no-newline.txt": "a line\nwithout end",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    unique = [f"key{number:03}\tvalue {number * 7 % 31}\n" for number in range(150)]
    chance.shuffle(unique)
    (folder / "unique.txt").write_text("".join(unique), encoding="utf-8")
    (folder / "few.txt").write_text("".join(unique[:9]), encoding="utf-8")
    numbers = ["-3", "0", "7", "12", "12.5", "100", "-0.25", "7.125", "9"]
    fields = {
        f"{chance.choice(_WORDS)}:{chance.randint(0, 99)}\t{chance.choice(numbers)}"
        f"\tt{number:03}\trest {number}\n"
        for number in range(120)
    }
    (folder / "fields.txt").write_text(
        "".join(sorted(fields, key=lambda line: line[::-1])), encoding="utf-8"
    )
    unicode = [
        f"{chance.choice('äßé中🙂a')}{number:02}{chance.choice('日z')}\t{number}\n"
        for number in range(80)
    ]
    (folder / "unicode.txt").write_text("".join(unicode), encoding="utf-8")
    ends = "\ufeffone\r\ntwo\rthree\n\n\r\r\nfour\r\n\rfive"
    (folder / "ends.txt").write_bytes(ends.encode("utf-8"))
    (folder / "bytes.bin").write_bytes(bytes(chance.choices(range(256), k=4000)))
    (folder / "delimited.txt").write_text("||".join(words.split("\n")[:150]), encoding="utf-8")
    long = random.Random(60)  # of its own, so that the other inputs stay what they are
    lengths = (long.choice([3, 20, 58, 59, 60, 61, 200, 2500, 6000]) for _ in range(60))
    (folder / "long.txt").write_text(
        "".join("".join(long.choices("abcdef ", k=length)) + "\n" for length in lengths),
        encoding="utf-8",
    )
    pages = (
        f"<page><title>{number}</title>\n<text>{lines(1)}</text></page>\n" for number in range(60)
    )
    (folder / "pages.xml").write_text(f"<pages>\n{''.join(pages)}</pages>\n", encoding="utf-8")
    # No UTF-8: Java puts in one character for some, several for others, none for a single byte.
    broken = (
        b"\xff",
        b"\xc0\x80",
        b"\xe2\x82",
        b"\xed\xa0\x80",
        b"\xed\xbf",
        b"\xf0\x9f\x98",
        b"\xf5\x80",
    )
    (folder / "broken.txt").write_bytes(
        b"".join(
            b"%s:%sz%d\t%d%s\n" % (a, b, at, at, b) for at, a in enumerate(broken) for b in broken
        )
    )
    (folder / "cut.gz").write_bytes(b"")
    (folder / "words.txt.gz").write_bytes(gzip.compress(words.encode("utf-8"), mtime=0))
    for path, count in ((flat, 5), (tree, 4), (tree / "below", 2)):
        path.mkdir()
        for number, name in enumerate("abcde"[:count]):
            # All of other sizes, so that tasks are numbered alike: equal ones are not, in Hadoop.
            (path / f"{name}.txt").write_text(lines(10 * number + 7 * count), encoding="utf-8")
    (flat / "_hidden").write_text("not read\n", encoding="utf-8")
    (flat / ".hidden").write_text("not read\n", encoding="utf-8")
    with zipfile.ZipFile(folder / "packed.zip", "w") as packed:
        packed.writestr("inner/word", "from the zip\n")
    with tarfile.open(folder / "packed.tgz", "w:gz") as packed:
        data = b"from the tar\n"
        member = tarfile.TarInfo("inner/word")
        member.size = len(data)
        packed.addfile(member, BytesIO(data))
    (folder / "cuts.seq").write_bytes(_partition_file([b"key050", b"key100"]))


def _partition_file(keys: list[bytes]) -> bytes:
    """A sequence file of Text keys, written by hand: the tests' own reading of the format."""

    def text(data: bytes) -> bytes:
        return bytes([len(data)]) + data

    made = (
        b"SEQ\x06" + text(b"org.apache.hadoop.io.Text") + text(b"org.apache.hadoop.io.NullWritable")
    )
    made += b"\x00\x00" + struct.pack(">i", 0) + bytes(range(16))
    for key in keys:
        made += struct.pack(">ii", len(text(key)), len(text(key))) + text(key)
    return made
