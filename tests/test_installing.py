"""What is said where the packages of an extra are missing: it helps with a wheel or a clone."""

import sys
from pathlib import Path

import pytest

from gristmill.analysis.histories.jhist.events import events_of
from gristmill.cluster.connection import load
from gristmill.installing import install_extra


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match="Ray is not installed") as caught:
        load()
    says = f"What to do: leave out --on ray, or install Ray: {install_extra('ray')}."
    assert str(caught.value).endswith(says)


def test_without_the_reader_of_binary_histories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    (tmp_path / "job.jhist").write_bytes(b'Avro-Binary\n{"type": "record"}\n\0')
    with pytest.raises(ModuleNotFoundError, match="fastavro") as caught:
        list(events_of(tmp_path / "job.jhist"))
    assert install_extra("analysis") in str(caught.value)
