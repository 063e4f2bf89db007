"""Causes of superlinear runs: planted, named; and not named where they are not the cause."""

import json

import numpy as np
import pytest

from gristmill.analysis.runs import Run
from gristmill.analysis.scale.law import Law
from gristmill.analysis.scale.reasons import explain

P = (1, 2, 3, 4, 6, 8)
LAW = Law(gamma=1e-3, sigma=0.01, kappa=0.0001)


def runs_of(
    retries: tuple[float, ...], seed: int, *, told: bool = True, other: float = 0.0
) -> list[Run]:
    """Six rounds; `retries` are seconds lost at each p, `other` a waste that goes with the time."""
    generator = np.random.default_rng(seed)
    found: list[Run] = []
    for _ in range(6):
        for p, lost_s in zip(P, retries, strict=True):
            lost = lost_s * max(1 + 0.2 * generator.standard_normal(), 0.1)
            spent = other * 1000 / p * (1 + 0.1 * generator.standard_normal())
            seconds = LAW.seconds(p) * (1 + 0.02 * generator.standard_normal()) + lost + spent
            wastes = {"memory": spent, **({"retries": lost} if told else {})}
            found.append(Run(p=p, seconds=seconds, wastes=wastes))
    return found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("retries", [(600, 120, 20, 0, 0, 0), (500, 180, 80, 40, 10, 0)])
def test_a_planted_cause_is_named(retries: tuple[float, ...], seed: int) -> None:
    found = explain(runs_of(retries, seed, other=0.05))
    assert found.outcome in ("explained", "partly explained")
    assert found.cause == "retries"
    waste = next(one for one in found.wastes if one.name == "retries")
    assert waste.correlation is not None
    assert waste.correlation.p == 1
    assert waste.correlation.low > 0
    assert found.sigma_without_wastes.value > found.sigma.value
    assert any(sentence.startswith("The cause is retries") for sentence in found.sentences)
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_not_measured_is_not_named(seed: int) -> None:
    found = explain(runs_of((600, 120, 20, 0, 0, 0), seed, told=False, other=0.05))
    assert found.outcome == "not explained"
    assert found.cause is None
    assert any("(memory) are not the cause" in sentence for sentence in found.sentences)


def test_runs_that_are_not_superlinear() -> None:
    found = explain(runs_of((0, 0, 0, 0, 0, 0), 1, other=0.05))
    assert (found.outcome, found.cause) == ("not superlinear", None)


def test_runs_without_wastes_or_without_a_law() -> None:
    plain = [Run(p=run.p, seconds=run.seconds) for run in runs_of((600, 120, 20, 0, 0, 0), 1)]
    assert explain(plain).outcome == "unknown"
    assert explain(plain[:2]).outcome == "unknown"


def test_more_waste_than_time_is_refused() -> None:
    runs = [Run(p=p, seconds=10 / p, wastes={"retries": 11.0}, source="a.csv, line 2") for p in P]
    with pytest.raises(ValueError, match=r"lost 11 s to wastes and took 10 s .*a.csv, line 2"):
        explain(runs)
