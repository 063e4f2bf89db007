"""Several inputs of one job, each in its own format: `gm.Job([gm.csv(a, tag="a"), gm.parquet(b)])`.

    inputs ─each plans its splits─▶ splits, with the number of their input ─▶ that input opens them

The splits of the first input come first: values of a key come in the order of the inputs. A map
knows by `context.tag` which input a record is from.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gristmill.mapreduce.formats.format import Format, Input, Reader
from gristmill.mapreduce.formats.plan import Plan, Split
from gristmill.mapreduce.kinds import is_list, is_tuple

__all__ = ["Inputs", "advice_on", "as_input", "with_files"]


@dataclass(frozen=True, eq=False)
class Inputs(Input):
    """Inputs one after another; a job makes it of a list."""

    sources: tuple[Input, ...]
    """The inputs, in the order of the list."""

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.sources))}]"

    @property
    def keyed(self) -> bool:
        """Whether the records of all of them are pairs."""
        return all(source.keyed for source in self.sources)

    @property
    def batched(self) -> bool:
        """Whether `map_batches` can read all of them."""
        return all(source.batched for source in self.sources)

    def plan(self, split_min: int, split_max: int) -> Plan:
        """Cut each input as if it were the only one."""
        plans = [source.plan(split_min, split_max) for source in self.sources]
        return Plan(
            [
                Split(split.bytes, {**split.what, "input": number})
                for number, plan in enumerate(plans)
                for split in plan.splits
            ],
            [file for plan in plans for file in plan.files],
            [name for plan in plans for name in plan.display],
        )

    def open(self, what: dict[str, Any], *, tolerant: bool = False) -> Reader:
        """Open a split."""
        return self._of(what).open(what, tolerant=tolerant)

    def open_batches(self, what: dict[str, Any]) -> Reader:
        """Open a split, for `map_batches`."""
        return self._of(what).open_batches(what)

    def tag_of(self, what: dict[str, Any]) -> str:
        """Return the tag of the input that a split is from."""
        return self._of(what).tag_of(what)

    def can_skip(self, what: dict[str, Any]) -> bool:
        """Return whether a reader of a split goes on after a bad record."""
        return self._of(what).can_skip(what)

    def _of(self, what: dict[str, Any]) -> Input:
        number: int = what["input"]
        return self.sources[number]


def as_input(given: Any) -> Any:  # noqa: ANN401 - what a job was given, which it checks
    """Return the input that a list of inputs stands for; anything else as it is.

    Raises:
        TypeError: One of the list is not an input.
        ValueError: The list is empty.
    """
    if not is_list(given) and not is_tuple(given):
        return given
    sources: tuple[Any, ...] = tuple(given)
    for source in sources:
        if not isinstance(source, Input):
            raise TypeError(
                f"cannot make the job: one of its inputs is {source!r}."
                f" What to do: give {advice_on(source, _IN_A_LIST)}."
            )
    if not sources:
        raise ValueError(
            "cannot make the job: the list of its inputs is empty. What to do: give an input."
        )
    return sources[0] if len(sources) == 1 else Inputs(sources)


_IN_A_LIST = 'inputs such as gm.text("books/", tag="books"); of a job, the output that it writes'


def advice_on(given: object, advice: str) -> str:
    """Return what to give a job as input in the place of something else: of a result, its files."""
    form = getattr(given, "form", None)
    return f"{form}, which is what that job has written" if isinstance(form, Input) else advice


def with_files(source: Input, paths: Sequence[str]) -> Input:
    """Return an input with other files; of several inputs, each path is `TAG=PATH`.

    Raises:
        TypeError: The input does not read files.
        ValueError: A path names no input, or a tag that several inputs have.
    """
    if isinstance(source, Inputs):
        return replace(source, sources=tuple(_replaced(source, paths)))
    if not isinstance(source, Format):
        raise TypeError(f"cannot read files instead of {source}: it does not read files.")
    return source.at(tuple(paths))


def _replaced(source: Inputs, paths: Sequence[str]) -> Iterator[Input]:
    given: dict[str, list[str]] = {}
    tags = [one.tag_of({}) for one in source.sources]
    for path in paths:
        tag, equals, file = path.partition("=")
        if not equals or tags.count(tag) != 1:
            known = ", ".join(tag for tag in tags if tags.count(tag) == 1 and tag) or "none"
            raise ValueError(
                f"cannot read the options: {path!r} does not name one of the job's inputs."
                f" What to do: write TAG=PATH; the tags are: {known}."
            )
        given.setdefault(tag, []).append(file)
    for tag, one in zip(tags, source.sources, strict=True):
        yield with_files(one, given[tag]) if tag in given else one
