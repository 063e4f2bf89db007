"""What fails while a `hadoop fs` command works through its paths: it says so, and goes on.

That is what Hadoop's shell does: `-cat a missing b` prints `a` and `b`, and ends with 1.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from gristmill.cli.failures import DONE, FAILED
from gristmill.cli.streaming.stored import Place, matches
from gristmill.errors import kind_of
from gristmill.streaming.inputs import InputMissingError
from gristmill.terminal import console

__all__ = ["FsFailures"]


class FsFailures:
    """The failures of one command, and the exit code that they make."""

    def __init__(self, command: str) -> None:
        self._name = command.removeprefix("-")
        self.code = DONE

    def add(self) -> None:
        """Count a failure that has been said."""
        self.code = FAILED

    def say(self, what: str) -> None:
        """Say what failed, and count it."""
        console.note(f"{self._name}: {what}")
        self.add()

    @contextmanager
    def told(self, path: str) -> Generator[None]:
        """Say what fails in this block as Hadoop says it; what follows the block is done.

        Args:
            path: What the error is about, where it does not name a file itself.

        Raises:
            BrokenPipeError: Nobody reads on.
        """
        try:
            yield
        except ValueError as error:  # of the engine: a damaged file, a location that no store has
            if kind_of(error) is None:
                raise
            self.say(str(error))
        except BrokenPipeError:
            raise
        except OSError as error:
            # As Hadoop words it, which programs look for: mrjob does.
            what = error.strerror or str(error)
            to = f" to `{error.filename2}'" if error.filename2 else ""
            self.say(f"`{error.filename or path}'{to}: {what}")

    def expanded(
        self, words: list[str], *, missing_ok: bool = False
    ) -> Iterator[tuple[str, Place]]:
        """Yield the places that words lead to, each with its word; say which lead nowhere."""
        for word in words:
            there = list[Place]()
            with self.told(word):
                there = matches(word)
                if not there and not missing_ok:
                    raise InputMissingError(2, "No such file or directory", word)
            for path in there:
                yield word, path
