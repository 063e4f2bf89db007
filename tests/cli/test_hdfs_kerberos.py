"""HDFS that asks for Kerberos's tickets and encrypts what it sends, with Hadoop's own MiniKdc."""

from ctypes.util import find_library
from pathlib import Path

import pytest
from tests.optional import missing, or_missing

from .harness import failure, report, run
from .hdfs_server import local, serving, settings


def test_jobs_with_a_ticket(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not home.exists()
    if find_library("gssapi_krb5") is None:
        problem = "Kerberos's library is not there: install libgssapi-krb5-2 or krb5-libs"
        missing("NOT TESTED: KERBEROS", problem)
    asked = {
        "hadoop.security.authentication": "kerberos",
        "dfs.data.transfer.protection": "privacy",
    }
    monkeypatch.setenv("HADOOP_CONF_DIR", str(settings(tmp_path / "conf", asked)))
    for name in ("HADOOP_USER_NAME", "HADOOP_HOME", "KRB5_CLIENT_KTNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    with (
        or_missing("KERBEROS"),
        serving(tmp_path / "data", program="Secure") as cluster,
    ):
        monkeypatch.setenv("KRB5_CONFIG", cluster.kerberos)
        monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/tickets")
        error = failure("teragen", "1k", cluster.url("in"))
        assert "did not accept the user" in error
        assert "kinit" in error
        monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(tmp_path / "data" / "somebody.keytab"))
        run("teragen", "30k", cluster.url("in"))
        run("terasort", cluster.url("in"), cluster.url("out"), "--runner", "processes")
        found = report("teravalidate", cluster.url("out"), "--against", cluster.url("in"))
        assert found["records"] == 30_000
        run("hadoop", "fs", "-get", cluster.url("in"), "got")
    run("teragen", "30k", "in", "--no-sync")
    assert local(Path("got")) == local(Path("in"))
