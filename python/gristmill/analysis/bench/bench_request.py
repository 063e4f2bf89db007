"""What a benchmark was asked to do, and the configurations that it compares.

    --vary workers=1,2 --vary runner=threads,processes
        ──▶ 4 configurations: {"workers": "1", "runner": "threads"}, ...

A configuration is a value for each name that varies. A name is an option of a command, or `python`:
the path of a Python that has Gristmill, so that two builds can be compared.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any, Literal

from gristmill.analysis.bench.errors import WrongOptionError

__all__ = ["BenchRequest", "Cache", "Config", "label", "parse_rows", "parse_vary", "product_of"]

Config = Mapping[str, str]
"""A value for each name that varies."""

Cache = Literal["warm", "cold", "dropped"]
"""Whether the page cache holds the input when a step begins: cache.py says how it is done."""

_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
_ROWS_MAX = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRequest:
    """The options of a benchmark, as asked for."""

    suite: str
    """The name of the suite, or the file of a job."""
    rows: int = 0
    """Records of the generated input."""
    sizes: tuple[int, ...] = ()
    """File sizes in bytes, for the suite `io`."""
    repeat: int = 5
    """How many rounds are measured."""
    warm_up: int = 1
    """How many rounds run before them, and are not measured."""
    cache: Cache = "warm"
    """Whether the page cache holds the input when a step begins."""
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    """Options for each command that knows them, such as `workers`."""
    store_options: tuple[str, ...] = ()
    """Options of the stores: KEY=VALUE."""
    vary: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The names that vary, each with its values."""
    inputs: tuple[str, ...] = ()
    """Inputs of the job, if `suite` is a job file."""
    settings: tuple[str, ...] = ()
    """Settings of that job: NAME=VALUE."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields for JSON.

        Example:
            >>> request = BenchRequest(suite="sort", vary={"workers": ("1", "2")})
            >>> BenchRequest.from_json(request.to_json()).vary
            {'workers': ('1', '2')}
        """
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "BenchRequest":
        """Return the request of such fields; a field of a later version is an error."""
        given = dict(fields)
        for name in ("sizes", "store_options", "inputs", "settings"):
            given[name] = tuple(given.get(name, ()))
        given["vary"] = {name: tuple(values) for name, values in given.get("vary", {}).items()}
        return cls(**given)


def parse_vary(given: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the names that vary, with their values, from options such as `workers=1,2`.

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
        WrongOptionError: It is not a number of rows.

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
