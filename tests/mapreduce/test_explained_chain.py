"""What `explain` says of the jobs of a chain."""

from pathlib import Path

import gristmill as gm


def pairs(line: str) -> list[tuple[str, int]]:
    return [(line, 1)]


def turned(pair: tuple[str, int]) -> list[tuple[int, str]]:
    return [(pair[1], pair[0])]


def test_each_step_has_its_input_and_output_and_no_hidden_name(tmp_path: Path) -> None:
    first = gm.Job(gm.items(["a"]), map=pairs, reduce=gm.sum(), parts=2)
    last = first.then(map=turned, reduce=gm.count(), parts=3)
    chain = last.then(map=turned, output=gm.kv(tmp_path / "out"))
    plan = chain.explain(workers=1)
    assert ".out." not in plan
    pages = plan.split("\n\n")
    assert "2 files in a hidden directory, until the chain is over" in pages[0]
    name = pages[0].splitlines()[0]
    assert pages[1].splitlines()[1:] == [
        f"  input        what {name} writes; splits are known then",
        "  output       3 files in a hidden directory, until the chain is over",
    ]
    assert pages[2].splitlines()[2] == f"  output       files in gm.kv('{tmp_path}/out')"
