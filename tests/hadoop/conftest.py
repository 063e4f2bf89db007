"""The `hadoop` fixture: the tools of Apache Hadoop, for all tests of the session."""

import pytest
from tests.optional import missing

from .harness import Hadoop, HadoopMissing


@pytest.fixture(scope="session")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Hadoop:
    try:
        return Hadoop.prepare(tmp_path_factory.mktemp("hadoop"))
    except HadoopMissing as problem:
        missing("NOT COMPARED WITH HADOOP", str(problem))
