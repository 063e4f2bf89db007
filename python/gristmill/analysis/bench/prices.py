"""What a machine costs an hour, from a file that the user writes: Gristmill knows no prices.

    usd_per_hour = 0.34          # of one machine
    machines = 1                 # how many of them, if more than one

TOML or JSON, by the name of the file.
"""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from gristmill.analysis.bench.errors import BenchError

__all__ = ["Prices", "read_prices"]

_HOUR_S = 3600
_TB = 1e12
_USD_MAX = 1e15
_KNOWN = ("usd_per_hour", "machines")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The price of the machines of a benchmark."""

    usd_per_hour: float
    machines: float = 1

    def usd_per_tb(self, seconds: float, size_bytes: float) -> float:
        """Return the dollars for each TB, if so many bytes took so many seconds.

        Example:
            >>> round(Prices(usd_per_hour=0.36).usd_per_tb(10.0, 1e9), 6)
            1.0
        """
        return self.usd_per_hour * self.machines * seconds / _HOUR_S / size_bytes * _TB


def read_prices(path: Path) -> Prices:
    """Return the prices of a file.

    Raises:
        BenchError: The file cannot be read, or does not say what an hour costs.
    """
    try:
        text = path.read_text(encoding="utf-8")
        found: Any = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise _wrong(path, str(error.strerror).lower()) from error
    except (ValueError, RecursionError) as error:
        raise _wrong(path, f"it is neither TOML nor, as *.json, JSON ({error})") from error
    if not isinstance(found, dict) or "usd_per_hour" not in found:
        raise _wrong(path, "usd_per_hour is missing")
    fields = cast("dict[str, Any]", found)
    for name, value in fields.items():
        if name not in _KNOWN:
            raise _wrong(path, f"{name!r} is not known")
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise _wrong(path, f"{name} is {value!r}, which is not a number above 0")
        if value > _USD_MAX:
            raise _wrong(path, f"{name} is too large")
    return Prices(**fields)


def _wrong(path: Path, what: str) -> BenchError:
    return BenchError(
        f"cannot read the prices: {path}: {what}."
        " What to do: write for example usd_per_hour = 0.34."
    )
