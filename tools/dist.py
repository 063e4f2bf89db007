"""Tries what `make dist` has built as a user would: in fresh venvs, with the demo.

    python tools/dist.py                 dist/*.whl: contents, size, platform; installed, demo
    python tools/dist.py --source        dist/*.tar.gz, too: it is compiled, which takes minutes

Prints a line for each finding, and ends with exit code 1 at the first that is wrong. What is
installed beside it (click and others) comes from the index that pip is set to.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

__all__ = ["check_source", "check_wheel", "try_out"]

TOP = Path(__file__).parents[1]
WHEEL_BYTES_MAX = 18_000_000
"""What a wheel may have (Cargo.toml)."""


def check_wheel(path: Path) -> list[str]:
    """Return what there is to say of a wheel; raises where something is missing in it."""
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
    for wanted in ("LICENSE", "THIRD-PARTY-LICENCES.txt"):
        assert any(f".dist-info/licenses/{wanted}" in name for name in names), f"no {wanted}"
    pages = [name for name in names if "/share/man/man1/" in name]
    assert any(name.endswith("gristmill-sort.1") for name in pages), "no manual pages"
    assert any(name.endswith("py.typed") for name in names), "no types"
    assert "abi3" in path.name, "not for all versions of Python"
    size = path.stat().st_size
    assert size <= WHEEL_BYTES_MAX, f"{size:,} bytes: more than {WHEEL_BYTES_MAX:,}"
    return [f"{size / 1e6:.1f} MB, {len(names)} files, {len(pages)} manual pages", _hash(path)]


def check_source(path: Path) -> list[str]:
    """Return what there is to say of a source distribution; raises where something is missing."""
    with tarfile.open(path) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    for wanted in (
        "Cargo.lock",
        "LICENSE",
        "THIRD-PARTY-LICENCES.txt",
        "crates/python/build.rs",
        "gristmill._core.data/data/share/man/man1/gristmill.1",
        "python/gristmill/__init__.py",
    ):
        assert wanted in names, f"no {wanted}"
    return [f"{path.stat().st_size / 1e6:.1f} MB, {len(names)} files", _hash(path)]


def try_out(package: Path) -> list[str]:
    """Install a package into a fresh venv, and use it; returns what there is to say."""
    with tempfile.TemporaryDirectory(prefix="gristmill-dist-") as folder:
        programs = Path(folder, "venv/bin")
        _run(folder, sys.executable, "-m", "venv", "venv")
        _run(folder, programs / "pip", "install", "--quiet", package)
        built = json.loads(_run(folder, programs / "gristmill", "--version", "--json"))
        assert built["profile"] == "release", built
        assert Path(folder, "venv/share/man/man1/gristmill.1").exists(), "no manual page installed"
        shown = json.loads(_run(folder, programs / "gristmill", "demo", "--rows=100k", "--json"))
        assert shown["status"] == "succeeded", shown
        rate = shown["demo"]["gb_per_s"]
    return [
        f"installed: {built['version']}, commit {built['commit']}, for {built['target']}",
        f"its demo: {shown['records']:,} records proved, {rate:.2f} GB/s",
    ]


def _run(folder: str, *command: str | Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _hash(path: Path) -> str:
    return f"sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}"


def main() -> None:
    """Check and try the packages in dist/."""
    parser = argparse.ArgumentParser(description="Try the packages in dist/.")
    parser.add_argument("--source", action="store_true", help="compile the source distribution")
    given = parser.parse_args()
    (wheel,) = (TOP / "dist").glob("*.whl")
    (source,) = (TOP / "dist").glob("*.tar.gz")
    _say(wheel, check_wheel(wheel) + try_out(wheel))
    _say(source, check_source(source))
    if given.source:
        _say(source, try_out(source))


def _say(path: Path, findings: list[str]) -> None:
    print(path.name, *findings, sep="\n  ", flush=True)


if __name__ == "__main__":
    main()
