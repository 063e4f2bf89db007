"""The licences of all that the wheel contains, as THIRD-PARTY-LICENCES.txt.

    cargo metadata ──▶ crates that the extension is linked of (not those of builds and tests)
                   ──▶ their licence files, equal texts once ──▶ THIRD-PARTY-LICENCES.txt

    python tools/licences.py            writes it: `make dist` does

The script of the report page, uPlot, has its licence beside it in the package.
"""

import json
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["FILE", "Crate", "linked", "written"]

TOP = Path(__file__).parents[1]
FILE = TOP / "THIRD-PARTY-LICENCES.txt"
PLATFORM = "x86_64-unknown-linux-gnu"
"""What the wheel is made for; the crates of aarch64 are the same."""

_TEXTS = re.compile(r"(?i)^(licen[cs]e|copying|copyright|notice|unlicense)")
_NOT_LINKED = re.compile(r"GPL|\.(rs|h|c|py|html|toml)$")
_HEAD = """\
Gristmill is licensed under the Apache License 2.0. Its native part is linked of the crates below,
each under the licence that stands beside it. The texts follow.
"""
_RULE = "-" * 78


@dataclass(frozen=True, slots=True)
class Crate:
    """A crate of the wheel."""

    name: str
    version: str
    licence: str
    """Its licence, as an SPDX expression."""
    folder: Path
    """Where its sources are."""

    @property
    def line(self) -> str:
        """The crate as the file lists it."""
        return f"{self.name} {self.version}: {self.licence}"


def linked() -> list[Crate]:
    """Return the crates that the extension is linked of, by their names."""
    done = subprocess.run(
        ["cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={PLATFORM}"],
        capture_output=True,
        text=True,
        cwd=TOP,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"cannot list the crates: {done.stderr.strip()}")
    found = json.loads(done.stdout)
    packages = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    root = next(name for name, package in packages.items() if package["name"] == "gristmill-python")
    seen: set[str] = set()
    _reach(root, nodes, seen)
    crates = [_crate(packages[name]) for name in seen if packages[name]["source"] is not None]
    return sorted(crates, key=lambda crate: (crate.name, crate.version))


def _reach(name: str, nodes: dict[str, Any], seen: set[str]) -> None:
    if name in seen:
        return
    seen.add(name)
    for dependency in nodes[name]["deps"]:
        if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
            _reach(dependency["pkg"], nodes, seen)


def _crate(package: dict[str, Any]) -> Crate:
    licence = package["license"] or f"see {package['license_file']}"
    folder = Path(package["manifest_path"]).parent
    return Crate(package["name"], package["version"], licence, folder)


def written(crates: Iterable[Crate]) -> str:
    """Return the file."""
    texts: dict[str, tuple[str, list[str]]] = {}
    lines: list[str] = []
    for crate in crates:
        lines.append(crate.line)
        for path in sorted(crate.folder.rglob("*")):
            if _is_text(path):
                text = path.read_text(encoding="utf-8", errors="replace")
                name = f"{crate.name} {crate.version}"
                _, names = texts.setdefault(_same(text), (_unwrapped(text), []))
                if name not in names:
                    names.append(name)
    parts = [_HEAD, "\n".join(lines)]
    for text, names in texts.values():
        parts.append(f"{_RULE}\n{', '.join(names)}\n{_RULE}\n\n{text}")
    return "\n\n".join(parts) + "\n"


def _is_text(path: Path) -> bool:
    """Whether a file is a licence: not of programs and tests that lie beside a library (xz)."""
    return bool(_TEXTS.match(path.name)) and path.is_file() and not _NOT_LINKED.search(path.name)


def _unwrapped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").strip().split("\n"))


def _same(text: str) -> str:
    """What is the same in two texts that differ in their lines, their marks and their addresses."""
    apache = "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION"
    if apache in text and "APPENDIX: How to apply" in text:
        text = text[text.index(apache) : text.index("APPENDIX: How to apply")]
    return re.sub(r"[^a-z0-9]+", " ", text.lower()).replace("https", "http").strip()


if __name__ == "__main__":
    FILE.write_text(written(linked()), encoding="utf-8")
