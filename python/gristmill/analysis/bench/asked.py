"""What a benchmark was asked to do, and the configurations that it compares.

    --vary workers=1,2 --vary runner=threads,processes
        ──▶ 4 configurations: {"workers": "1", "runner": "threads"}, ...

A configuration is a value for each name that varies. A name is an option of a command, or `python`,
the program that runs Gristmill: so two builds take turns.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any, Literal

from gristmill.analysis.bench.errors import WrongOptionError

__all__ = ["Asked", "Cache", "Config", "label", "parse_rows", "parse_vary", "product_of"]

Config = Mapping[str, str]
"""A value for each name that varies."""

Cache = Literal["warm", "cold", "dropped"]
"""Where a step's input lies when it begins."""

_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
_ROWS_MAX = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked for."""

    suite: str
    """The name of the suite, or the file of a job."""
    rows: int = 0
    """Records of the data."""
    sizes: tuple[int, ...] = ()
    """Sizes of files in bytes, of the suite `io`."""
    repeat: int = 5
    """How many rounds are measured."""
    warm_up: int = 1
    """How many rounds go before them."""
    cache: Cache = "warm"
    """Where the input lies when a step begins."""
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    """Options that each command gets that has them, such as `workers`."""
    store_options: tuple[str, ...] = ()
    """How stores are reached: KEY=VALUE."""
    vary: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """What varies, and its values."""
    inputs: tuple[str, ...] = ()
    """Inputs of a job of one's own."""
    settings: tuple[str, ...] = ()
    """Its settings: NAME=VALUE."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON has it.

        Example:
            >>> Asked.from_json(Asked(suite="sort", vary={"workers": ("1", "2")}).to_json()).vary
            {'workers': ('1', '2')}
        """
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Asked":
        """Return what was written as JSON; a field of a later version is an error."""
        given = dict(fields)
        for name in ("sizes", "store_options", "inputs", "settings"):
            given[name] = tuple(given.get(name, ()))
        given["vary"] = {name: tuple(values) for name, values in given.get("vary", {}).items()}
        return cls(**given)


def parse_vary(given: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return what varies, of options such as `workers=1,2`.

    Raises:
        WrongOptionError: One of them is not NAME=VALUE,VALUE.

    Example:
        >>> parse_vary(["workers=1,2", "no-sync=on,off"])
        {'workers': ('1', '2'), 'no-sync': ('on', 'off')}
    """
    found: dict[str, tuple[str, ...]] = {}
    for one in given:
        name, equals, values = one.partition("=")
        several = tuple(value.strip() for value in values.split(","))
        if not equals or not name or not all(several) or len(set(several)) != len(several):
            raise WrongOptionError(
                f"cannot read the options: --vary is {one!r}, which is not a name with different"
                " values. What to do: write for example --vary workers=1,2."
            )
        if name in found:
            raise WrongOptionError(
                f"cannot read the options: --vary gives {name!r} twice."
                f" What to do: write its values once, with commas: --vary {name}=..."
            )
        found[name] = several
    return found


def product_of(vary: Mapping[str, Sequence[str]]) -> list[Config]:
    """Return each combination of values.

    Example:
        >>> product_of({"workers": ["1", "2"]}), product_of({})
        ([{'workers': '1'}, {'workers': '2'}], [{}])
    """
    return [dict(zip(vary, values, strict=True)) for values in product(*vary.values())]


def label(config: Config) -> str:
    """Return a configuration as people write it.

    Example:
        >>> label({"workers": "1", "runner": "threads"}), label({})
        ('workers=1,runner=threads', '')
    """
    return ",".join(f"{name}={value}" for name, value in config.items())


def parse_rows(text: str) -> int:
    """Return a number of rows as `teragen` takes it.

    Raises:
        WrongOptionError: It is none.

    Example:
        >>> parse_rows("10m"), parse_rows("1000")
        (10000000, 1000)
    """
    factor = _FACTORS.get(text[-1:].lower() if not text[-1:].isdigit() else "")
    digits = text if text[-1:].isdigit() else text[:-1]
    rows = int(digits) * factor if factor and digits.isascii() and digits.isdigit() else 0
    if not 1 <= rows <= _ROWS_MAX:
        raise WrongOptionError(
            f"cannot read the options: --rows is {text!r}, which is not a number of rows from 1 on."
            " What to do: write for example 10m; k, m, b and t stand for 10^3, 10^6, 10^9, 10^12."
        )
    return rows
