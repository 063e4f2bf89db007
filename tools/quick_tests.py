"""`make quick`: the tests that touch what changed, then a sample of every kind, in four minutes.

    git ──▶ files that differ from a revision
              a file of tests       itself
              a module of Python    its examples, and the tests of its name, or that name it
              a file of Rust        the tests of its name
    SAMPLE ──▶ tests of every kind, whatever changed

    python tools/quick_tests.py                  against the commit before the last one
    python tools/quick_tests.py --against main   what a branch changed

Nothing is compiled, so a change of Rust shows after `make build`. When the time is over, the tests
that are left are skipped, and counted as skipped. The exit code is pytest's.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

TOP = Path(__file__).parent.parent
SECONDS = 230
SAMPLE = (
    "tests/test_layers.py",
    "tests/test_words.py",
    "tests/test_waits.py",
    "tests/cli/test_sort.py",
    "tests/cli/test_wordcount.py",
    "tests/cli/test_grep.py",
    "tests/mapreduce/test_jobs.py",
    "tests/mapreduce/test_formats.py",
    "tests/streaming/test_command.py",
    "tests/history/test_reader.py",
    "tests/analysis/test_scale_fit.py",
    "tests/places/test_places.py",
)


def changed(revision: str) -> list[str]:
    """Files that differ from a revision, and those that git does not know yet."""
    differ = ["diff", "--name-only", "--diff-filter=d", revision]
    new = ["ls-files", "--others", "--exclude-standard"]
    return sorted({name for words in (differ, new) for name in _git(words).splitlines()})


def _git(words: list[str]) -> str:
    done = subprocess.run(["git", *words], cwd=TOP, capture_output=True, text=True, check=True)
    return done.stdout


def touching(files: Iterable[str], texts: dict[str, str]) -> list[str]:
    """Tests that touch files; `texts` are the files of tests.

    >>> tests = {"tests/a/test_units.py": "", "tests/test_b.py": "from gristmill.units import x"}
    >>> touching(["python/gristmill/units.py"], tests)[1:]
    ['tests/a/test_units.py', 'tests/test_b.py']
    >>> touching(["crates/engine/src/units/mod.rs", "tests/test_b.py"], tests)
    ['tests/a/test_units.py', 'tests/test_b.py']
    """
    found: list[str] = []
    for file in files:
        path = Path(file)
        stem = path.parent.name if path.stem in ("__init__", "mod") else path.stem
        by_name = [test for test in texts if Path(test).stem == f"test_{stem}"]
        if file in texts:
            found.append(file)
        elif path.suffix == ".rs":
            found += by_name
        elif file.startswith("python/") and path.suffix == ".py":
            module = ".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__")
            found.append(f"tests/test_doctests.py::test_examples[{module}]")
            found += by_name + [test for test, text in texts.items() if module in text]
    return list(dict.fromkeys(found))


def main() -> None:
    parser = argparse.ArgumentParser(description="the tests that touch what changed")
    parser.add_argument("--against", default="HEAD~1", metavar="REVISION")
    revision = parser.parse_args().against
    tests = [path for path in TOP.glob("tests/**/test_*.py") if path.parent.name != "nfs"]
    texts = {str(path.relative_to(TOP)): path.read_text() for path in sorted(tests)}
    chosen = list(dict.fromkeys([*touching(changed(revision), texts), *SAMPLE]))
    several = ["--numprocesses", "2", "--dist", "loadscope", "--no-loadscope-reorder"]
    asked = [sys.executable, "-m", "pytest", "-q", *several, "--seconds", str(SECONDS), *chosen]
    sys.exit(subprocess.run(asked, cwd=TOP, check=False).returncode)


if __name__ == "__main__":
    main()
