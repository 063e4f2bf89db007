"""A row of the table of errors: what users read of one, with holes for what is known only later."""

import re
from dataclasses import dataclass

HOLE = re.compile(r"\{[\w. ]+\}")
ALTERNATIVES = 24
"""At most so many rows from one place in a source."""
_PARAGRAPH = re.compile(
    r"(?:cannot (?P<operation>(?:(?!\. What to do)[^:])+): )?(?P<message>.*?)"
    r"(?:\.? What to do: (?P<advice>.*?))?\.?",
    re.DOTALL,
)


@dataclass(frozen=True)
class Row:
    """An error, a part of one, advice alone, or a notice."""

    kind: str
    operation: str
    message: str
    advice: str = ""

    def holes(self) -> list[str]:
        """The holes in all of its texts."""
        return HOLE.findall(f"{self.kind}{self.operation}{self.message}{self.advice}")

    def filled(self, values: dict[str, str]) -> "Row":
        """The same with some holes filled."""
        return Row(
            *(
                filled(text, values)
                for text in (self.kind, self.operation, self.message, self.advice)
            )
        )

    @property
    def is_known(self) -> bool:
        """Whether the sources say more than a hole."""
        rest = HOLE.sub("", f"{self.operation}{self.message}{self.advice}")
        return bool(re.search(r"\w", rest))

    def __str__(self) -> str:
        """The row as a line: `kind | operation | message | advice`."""
        parts = (self.kind, self.operation, self.message, self.advice)
        return " | ".join(" ".join(part.split()) or "-" for part in parts)


def filled(text: str, values: dict[str, str]) -> str:
    """A text with some holes filled.

    >>> filled("{what} is {why}", {"what": "it"})
    'it is {why}'
    """
    return HOLE.sub(lambda hole: values.get(hole[0][1:-1], hole[0]), text)


def taken_apart(kind: str, paragraph: str) -> Row:
    """The row of a whole paragraph.

    >>> str(taken_apart("ValueError", "cannot read: it is bad. What to do: mend it."))
    'ValueError | read | it is bad | mend it'
    """
    found = _PARAGRAPH.fullmatch(paragraph)
    assert found is not None
    return Row(kind, found["operation"] or "", found["message"], found["advice"] or "")


def is_sentence(text: str) -> bool:
    """Whether a text is for people: it has words.

    >>> is_sentence("it is empty"), is_sentence("mapreduce.job.name")
    (True, False)
    """
    return bool(re.search(r"[a-z]{2,}[^\w]* +\S*[a-z{]", text))
