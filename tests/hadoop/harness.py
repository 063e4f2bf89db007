"""Apache Hadoop's own TeraGen, TeraSort and TeraValidate, the yardstick for ours.

    pom.xml, *.java ──mvn, javac──> .cache/hadoop/<hash>/{classpath.txt, classes/}   once
    file:///in ──one JVM for each job, its tasks inside (LocalJobRunner)──> file:///out     2 to 3 s

No cluster, no HDFS, no daemon. A job runs in a scratch folder of its own: TeraSort links
`_partition.lst` into the working directory, and Hadoop spills into `hadoop.tmp.dir`.

Hadoop's local file system keeps a checksum of `name` in `.name.crc`: who edits a file that Hadoop
wrote has to remove that one too, or Hadoop refuses to read the file. TeraSort does not take an
output path with a space in it.

With 10,000 records, on two cores that others used too (best and median of seven): teragen 1.7 and
2.1 s, terasort 2.6 and 3.0 s, teravalidate 2.0 and 2.3 s, nearly all of it starting up. A class
data archive would save some 0.3 s of each, too little for its code.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self
from urllib.parse import quote

_HERE = Path(__file__).resolve().parent
_CACHE = _HERE.parents[1] / ".cache" / "hadoop"
_POM = _HERE / "pom.xml"
_PROVIDER = _HERE / "KeepMaps.java"
_SOURCES = (_PROVIDER, _HERE / "StreamingBatch.java", _HERE / "WriteHistory.java")
_SERVICE = "META-INF/services/org.apache.hadoop.mapreduce.protocol.ClientProtocolProvider"

# Java 23 refuses the Subject.getSubject that Hadoop 3.4 calls; 11 is the oldest that javac is told.
_JAVA_VERSIONS = range(11, 23)

_TAIL_LINES = 60  # a task that fails is followed by some 25 lines of counters
_PREPARE_TIMEOUT_S = 540.0

_JVM = (
    "-XX:TieredStopAtLevel=1",  # the job is over before the second compiler would pay
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Xshare:auto",
    "-Xmx512m",
    "-Dfile.encoding=UTF-8",
    # Only the job's progress and counters, and what goes wrong.
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.org.apache.hadoop.mapreduce.Job=info",
    "-Dorg.slf4j.simpleLogger.log.org.apache.hadoop.util.NativeCodeLoader=error",
    "-Dorg.slf4j.simpleLogger.showThreadName=false",
)

_SETTINGS = {
    "mapreduce.framework.name": "local",
    "fs.defaultFS": "file:///",
    "mapreduce.client.progressmonitor.pollinterval": "20",  # ms; the default is a second
    "mapreduce.task.io.sort.mb": "16",  # the default of 100 is zeroed for every map
}


class HadoopMissing(Exception):
    """Hadoop cannot be had on this machine: no Java, no Maven, or no artifacts."""


class HadoopFailed(Exception):
    """A job exited with an error or ran out of time; the message ends with its log's tail."""

    def __init__(self, tool: str, outcome: str, log: str) -> None:
        super().__init__(f"Hadoop's {tool} {outcome}:\n{_tail(log)}")


@dataclass(frozen=True)
class Hadoop:
    """Hadoop's example programs, ready to run; each method is one job in one new JVM."""

    java: str
    classpath: str
    temp_dir: Path
    timeout_s: float = 100.0
    jvm: tuple[str, ...] = _JVM

    @classmethod
    def prepare(cls, temp_dir: Path) -> Self:
        """Resolve the class path, from the cache if it can; jobs keep their scratch in `temp_dir`.

        Raises:
            HadoopMissing: with the reason.
        """
        java, javac, maven = (_program(name) for name in ("java", "javac", "mvn"))
        inputs = b"".join(path.read_bytes() for path in (_POM, *_SOURCES))
        home = _CACHE / hashlib.sha256(inputs).hexdigest()[:16]
        if not _is_complete(home):
            _require_version(java)
            _build(home, javac, maven)
        classpath = os.pathsep.join([str(home / "classes"), *_jars(home)])
        return cls(java, classpath, temp_dir)

    @property
    def cache(self) -> Path:
        """Where results may be kept that follow from the program and the jobs alone."""
        return Path(self.classpath.split(os.pathsep)[0]).parent

    def teragen(self, rows: int, out_dir: Path, maps: int = 1) -> int:
        """Write `part-m-…` files to `out_dir`, which must not exist; return the CHECKSUM counter.

        The counter is the low 64 bits of the checksum; a job without rows has none, which is 0.
        """
        options = {"mapreduce.job.maps": str(maps)}
        log = self._run("terasort.TeraGen", options, str(rows), _uri(out_dir))
        counters = re.findall(r"^\s*CHECKSUM=(-?\d+)$", log, re.MULTILINE)
        return int(counters[-1]) % 2**64 if counters else 0

    def terasort(self, in_dir: Path, out_dir: Path, reduces: int = 1) -> None:
        """Sort into `part-r-…` files in `out_dir`, which must not exist."""
        options = {"mapreduce.job.reduces": str(reduces)}
        self._run("terasort.TeraSort", options, _uri(in_dir), _uri(out_dir))

    def tuned_terasort(
        self, in_dir: Path, out_dir: Path, settings: Mapping[str, str], heap: str
    ) -> None:
        """The same with other settings and another `-Xmx`, for benchmarks: as quick as it gets."""
        jvm = tuple(
            flag for flag in _JVM if not flag.startswith(("-Xmx", "-XX:Tiered", "-XX:+Use"))
        )
        tuned = replace(self, jvm=(*jvm, heap), timeout_s=3600.0)
        tuned._run("terasort.TeraSort", settings, _uri(in_dir), _uri(out_dir))

    def wordcount(self, in_dir: Path, out_dir: Path, reduces: int = 1) -> None:
        """Count the words of the files into `part-r-…` files in `out_dir`, which must not exist."""
        options = {"mapreduce.job.reduces": str(reduces)}
        self._run("WordCount", options, _uri(in_dir), _uri(out_dir))

    def teravalidate(self, in_dir: Path, report_dir: Path) -> list[str]:
        """Return the lines of the report, which is also left in `report_dir`.

        TeraValidate succeeds whatever it finds: the report says whether the data is in order.
        """
        self._run("terasort.TeraValidate", {}, _uri(in_dir), _uri(report_dir))
        report = (report_dir / "part-r-00000").read_text(encoding="utf-8")
        return report.removesuffix("\n").split("\n") if report else []

    def streaming(self, jobs: Mapping[str, Sequence[str]], results: Path, cwd: Path) -> str:
        """Run streaming jobs in one JVM, in `cwd`; return its log.

        `results` gets a file of each job's name: its exit code, then its counters.
        """
        with tempfile.TemporaryDirectory(dir=self.temp_dir, prefix="streaming-") as scratch:
            settings = {**_SETTINGS, "hadoop.tmp.dir": scratch}
            defaults = [word for item in settings.items() for word in ("-D", "=".join(item))]
            lines = [
                " ".join(quote(word, safe="") for word in (name, *defaults, *words))
                for name, words in jobs.items()
            ]
            listed = Path(scratch) / "jobs"
            listed.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            command = [
                *(self.java, *self.jvm, f"-Djava.io.tmpdir={scratch}", "-cp", self.classpath),
                *("org.apache.hadoop.streaming.StreamingBatch", str(listed), str(results)),
            ]
            status, log = _logged(command, cwd, max(self.timeout_s, _PREPARE_TIMEOUT_S))
        if status != 0:
            raise HadoopFailed("Streaming", f"exited with {status}", log)
        return log

    def histories(self, folder: Path) -> tuple[Path, Path]:
        """Write the history of one job with Hadoop's own writer: as JSON, and as binary Avro."""
        files = (folder / "json.jhist", folder / "binary.jhist")
        main = "org.apache.hadoop.mapreduce.jobhistory.WriteHistory"
        command = [self.java, *self.jvm, "-cp", self.classpath, main, *map(str, files)]
        status, log = _logged(command, folder, self.timeout_s)
        if status != 0:
            raise HadoopFailed("EventWriter", f"exited with {status}", log)
        return files

    def _run(self, tool: str, options: Mapping[str, str], *arguments: str) -> str:
        with tempfile.TemporaryDirectory(dir=self.temp_dir, prefix=f"{tool}-") as scratch:
            settings = {**_SETTINGS, "hadoop.tmp.dir": scratch, **options}
            command = [
                *(self.java, *self.jvm, f"-Djava.io.tmpdir={scratch}", "-cp", self.classpath),
                f"org.apache.hadoop.examples.{tool}",
                *(f"-D{name}={value}" for name, value in settings.items()),
                *arguments,
            ]
            status, log = _logged(command, Path(scratch), self.timeout_s)
        if status is None:
            raise HadoopFailed(tool, f"did not end within {self.timeout_s:g} s", log)
        if status != 0:
            raise HadoopFailed(tool, f"exited with {status}", log)
        return log


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise HadoopMissing(f"{name} is not on the PATH (a JDK and Maven are needed)")
    return path


def _require_version(java: str) -> None:
    _, banner = _logged([java, "-version"], _HERE, 20.0)
    found = re.search(r'version "(\d+)', banner)
    if found is None or int(found[1]) not in _JAVA_VERSIONS:
        wanted = f"{_JAVA_VERSIONS.start} to {_JAVA_VERSIONS.stop - 1}"
        raise HadoopMissing(f"Java {wanted} is needed; {java} says:\n{_tail(banner)}")


def _is_complete(home: Path) -> bool:
    # The jars lie in Maven's own repository, which its owner may have emptied since.
    return home.is_dir() and all(Path(jar).is_file() for jar in _jars(home))


def _jars(home: Path) -> list[str]:
    return (home / "classpath.txt").read_text(encoding="utf-8").strip().split(os.pathsep)


def _build(home: Path, javac: str, maven: str) -> None:
    """Fill a new folder and rename it: whoever sees `home` sees all of it, also beside others."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix="new-") as scratch:
        new = Path(scratch) / home.name
        service = new / "classes" / _SERVICE
        service.parent.mkdir(parents=True)
        service.write_text(f"{_PROVIDER.stem}\n", encoding="utf-8")

        listing = f"-Dmdep.outputFile={new / 'classpath.txt'}"
        _build_step(maven, "-q", "-B", "-f", str(_POM), "dependency:build-classpath", listing)

        classpath = os.pathsep.join(_jars(new))
        target = ("--release", str(_JAVA_VERSIONS.start), "-d", str(new / "classes"))
        _build_step(javac, "-proc:none", *target, "-cp", classpath, *map(str, _SOURCES))

        if not _is_complete(home):  # another process may have been as quick
            shutil.rmtree(home, ignore_errors=True)
            new.rename(home)


def _build_step(*command: str) -> None:
    status, log = _logged(list(command), _HERE, _PREPARE_TIMEOUT_S)
    if status != 0:
        raise HadoopMissing(f"`{Path(command[0]).name}` could not prepare it:\n{_tail(log)}")


def _logged(command: list[str], cwd: Path, timeout_s: float) -> tuple[int | None, str]:
    """Run and return the exit status (None: out of time) and stdout and stderr together."""
    environment = {**os.environ, "HADOOP_USER_NAME": "gristmill", "LC_ALL": "C.UTF-8"}
    with tempfile.TemporaryFile() as log:  # a file, since its content outlives a time-out
        try:
            status = subprocess.run(
                command,
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=timeout_s,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            status = None
        log.seek(0)
        return status, log.read().decode(errors="replace")


def _tail(log: str) -> str:
    return "\n".join(log.rstrip().splitlines()[-_TAIL_LINES:])


def _uri(path: Path) -> str:
    # Not Path.as_uri: Hadoop takes a path as it is written, without %20.
    return f"file://{path.resolve()}"
