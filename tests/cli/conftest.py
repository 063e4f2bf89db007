"""Data that several tests sort, disks that are small or read-only, and HDFS.

A disk of its own is a tmpfs, which only root can mount. Without it those tests are skipped, with a
banner at the end of the run; where CI=true they fail.
"""

import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.optional import missing

from .harness import run
from .hdfs_server import Cluster, settings
from .own_code import Bench
from .ray_cluster import RayCluster
from .resuming import RUNS, Tree, undisturbed
from .s3_server import Bucket, Server
from .sorting import HOSTILE, gnu_sort, noise

Mount = Callable[..., Path]


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10,000 records in two files: 1 MB."""
    folder = tmp_path_factory.mktemp("data") / "in"
    run("teragen", "10k", folder, "--files", "2")
    return folder


@pytest.fixture(scope="session")
def much_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """3,000,000 records, so many that a job can be met halfway: 300 MB, gone after the tests."""
    folder = tmp_path_factory.mktemp("much") / "in"
    run("teragen", "3m", folder, "--no-sync")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """A function that mounts a tmpfs and returns its folder; `remount=True` changes its options."""
    mounted: list[Path] = []

    def mount_at(options: str, name: str = "disk") -> Path:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            problem = done.stderr.strip() if done.returncode else None
        except FileNotFoundError as error:
            problem = str(error)
        if problem is not None:
            problem = f"only root can mount a tmpfs: {problem}"
            missing("NOT TESTED: FULL AND READ-ONLY DISKS", problem)
        if "remount" not in options:
            mounted.append(folder)
        return folder

    yield mount_at
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)


@pytest.fixture(scope="session")
def much_text(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """1.2 million lines of 0 to some hundred bytes, few of them different: 60 MB, in one file."""
    file = tmp_path_factory.mktemp("text") / "much"
    file.write_bytes(noise(60_000_000, HOSTILE, 0.02, seed=1))
    yield file
    file.unlink()


@pytest.fixture(scope="session")
def much_text_sorted(much_text: Path) -> Iterator[Path]:
    """The same, as GNU sort puts it in order."""
    file = much_text.with_name("sorted")
    gnu_sort("-o", file, much_text)
    yield file
    file.unlink()


# --- HDFS ---


@pytest.fixture
def there(cluster: Cluster, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty folder in HDFS, for whoever has the environment of this test."""
    assert not home.exists()
    monkeypatch.setenv("HADOOP_CONF_DIR", str(settings(tmp_path / "conf")))
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody")
    (tmp_path / "work").mkdir(exist_ok=True)
    monkeypatch.chdir(tmp_path / "work")
    return cluster.url(f"t{random.randrange(1 << 40):x}")


# --- of jobs that are resumed ---


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home of the test's own."""
    folder = tmp_path / "home"
    monkeypatch.setenv("GRISTMILL_HOME", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def records(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """600,000 records, keys skewed: 60 MB."""
    folder = tmp_path_factory.mktemp("records") / "in"
    run("teragen", "600k", folder, "--files", "3", "--skew", "--no-sync")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def wanted(records: Path, tmp_path: Path) -> Tree:
    """What a terasort that nobody disturbs makes."""
    return undisturbed(records, tmp_path, *RUNS)


# --- S3 ---


@pytest.fixture
def bucket(
    server: Server, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Bucket]:
    """An empty bucket, for whoever has the environment of this test."""
    assert not home.exists()
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))  # nobody's ~/.aws
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    name = f"b{random.randrange(1 << 40):x}"
    folder = server.folder / name
    folder.mkdir()
    yield Bucket(name, folder)
    shutil.rmtree(folder)


@pytest.fixture
def on_ray(ray: RayCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[str, ...]:
    """What has a job run on the cluster; its folder is where it is begun."""
    monkeypatch.chdir(tmp_path)
    for name, value in ray.environment.items():
        monkeypatch.setenv(name, value)
    return ("--on", "ray")


@pytest.fixture
def spill(tmp_path: Path) -> Path:
    """The spill directory of the nodes: here all of them see the same."""
    folder = tmp_path / "spill"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines of words, and jobs of user code that count them."""
    return Bench.made(tmp_path_factory.mktemp("words"), 3_000_000).folder
