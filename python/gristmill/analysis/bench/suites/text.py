"""Text to count words of: the same for the same number of lines, on any machine."""

from pathlib import Path
from tempfile import TemporaryDirectory

from gristmill import _core
from gristmill.analysis.bench.errors import library

__all__ = ["write_text"]

_LINE_WORDS = 10
_BLOCK_LINES = 100_000
_EXPONENT = 1.3
"""Of Zipf's law; English has about 1, for which no sum of all ranks is finite."""
_LETTERS = 26


def write_text(lines: int, path: str) -> None:
    """Write lines of ten words at a location.

    Example:
        >>> from pathlib import Path
        >>> with TemporaryDirectory() as folder:
        ...     write_text(3, f"{folder}/text")
        ...     print(len(Path(folder, "text").read_text().split()))
        30
    """
    if not _core.is_remote(path):
        _write(lines, Path(path))
        return
    with TemporaryDirectory() as folder:
        here = Path(folder, "text")
        _write(lines, here)
        _core.put_file(here, path)


def _write(lines: int, path: Path) -> None:
    numpy = library("numpy")
    random = numpy.random.default_rng(1)
    with path.open("w", encoding="ascii") as file:
        for begin in range(0, lines, _BLOCK_LINES):
            count = min(_BLOCK_LINES, lines - begin)
            ranks = random.zipf(_EXPONENT, count * _LINE_WORDS) % 1_000_000
            words = [_word(rank) for rank in ranks.tolist()]
            for at in range(0, len(words), _LINE_WORDS):
                file.write(" ".join(words[at : at + _LINE_WORDS]) + "\n")


def _word(rank: int) -> str:
    """A word of its own for each rank; common ones are short."""
    letters = ""
    while rank or not letters:
        rank, letter = divmod(rank, _LETTERS)
        letters += chr(ord("a") + letter)
    return letters
