"""A row of the table of properties, and the tests that several rows name."""

from dataclasses import dataclass

__all__ = ["NOTED", "REFUSED", "Property"]


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a job."""

    name: str
    old: tuple[str, ...]
    default: str
    what: str
    """What it does here."""
    test: str
    """The test that shows it (see `Option.test`)."""
    effect: bool = True


REFUSED = "test_parse.py::test_what_cannot_be_honoured_is_refused_by_name"
NOTED = "test_parse.py::test_what_has_no_effect_is_noted"
