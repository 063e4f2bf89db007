"""The directories above an output, made before the job begins, as Hadoop makes them.

    out/2026/counts/     out/ and out/2026/ are made; if the job fails, they go

What is not empty then stays. Of a location in a store there is nothing to make.
"""

from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

from gristmill import _core
from gristmill.locations import absolute, is_remote
from gristmill.mapreduce.formats.format import Format, Output
from gristmill.mapreduce.formats.inputs import Inputs
from gristmill.mapreduce.formats.paths import named_places
from gristmill.mapreduce.spec import Spec
from gristmill.parents import made_above

__all__ = ["with_parents"]


@contextmanager
def with_parents(jobs: Iterable[Spec]) -> Generator[None]:
    """Make the directories above the outputs of jobs; they go if something fails.

    Raises:
        ValueError: An output is in the input of its job, where no directory is to be made.
        NotADirectoryError: A file has the name of a directory above an output.

    Example:
        >>> import tempfile, gristmill as gm
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     job = gm.Job(gm.items([]), map=str, output=gm.text(f"{folder}/a/b/out"))
        ...     with with_parents([job]):
        ...         print(Path(folder, "a/b").is_dir())
        True
    """
    made: list[Path] = []
    outputs: list[object] = []
    try:
        for job in jobs:
            if job.output is None or is_remote(job.output.folder):
                continue
            if job.input not in outputs:  # what an earlier job writes does not exist yet
                _refuse_inside(job, job.output)
            outputs.append(job.output.as_written())
            made = [*made_above(job.output.folder), *made]  # each before the one that it is in
        yield
    except BaseException:
        for parent in made:
            with suppress(OSError):
                parent.rmdir()
        raise


def _refuse_inside(job: Spec, output: Output) -> None:
    for source in job.input.sources if isinstance(job.input, Inputs) else [job.input]:
        if isinstance(source, Format):
            paths = [path for path in source.paths if not is_remote(path)]
            _core.check_outside(named_places(paths), absolute(output.folder))
