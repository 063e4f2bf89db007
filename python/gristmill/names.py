r"""Names of files and directories: bytes, which need not be UTF-8.

    bytes of a name      in Python           in JSON              shown to people
    caf\xc3\xa9          "café"              "café"               café
    caf\xe9              "caf\udce9"         "caf\u0000e9"        caf\xe9

In Python a name is what `os.fsdecode` makes of it. JSON that the engine reads or writes, the
history and what `--json` prints spell each byte that is not part of UTF-8 as U+0000 and two
hexadecimal digits (docs/internals/history.md, "Names"; `crates/base/src/names.rs` for Rust).
`to_json` and `from_json` translate. What people see goes through `show_path` or `show_text`.
"""

import os
import re
from collections.abc import Callable
from typing import Any, cast

__all__ = [
    "StrPath",
    "as_name",
    "escaped",
    "from_json",
    "quote",
    "show_path",
    "show_text",
    "show_texts",
    "to_json",
]

StrPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]
"""A path, as functions take it."""

# Patterns as text: `re` compiles what is used, and the command line imports this at every start.
_SPELLED = "\0([89a-f][0-9a-f])"
_BYTE = "[\udc80-\udcff]"
_UNSHOWN = (
    "[\0-\x1f\x7f-\x9f\ud800-\udfff"  # control characters, and what is not a character
    "\u2028\u2029"  # the ends of lines and paragraphs
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # what turns the direction of text
)
"""What a terminal would act on."""
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def as_name(path: StrPath) -> str:
    r"""Return a path as Python's own functions name it.

    Raises:
        TypeError: It is not a path.
        ValueError: No file can have this name.

    Example:
        >>> as_name(b"caf\xe9") == "caf\udce9"
        True
    """
    name = os.fsdecode(path)
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        raise ValueError(
            f"cannot read the options: no file can have the name {name!a}."
            " What to do: give the name as bytes, or as os.fsdecode returns it."
        ) from None
    return name


def to_json(value: object) -> str:
    r"""Return `value` as JSON in which names are spelled as the engine spells them.

    Example:
        >>> to_json({"inputs": ["a", "caf\udce9"]})
        '{"inputs": ["a", "caf\\u0000e9"]}'
    """
    import json

    text = json.dumps(value)
    # A half of a surrogate pair is an escape that begins so; whole pairs may be, too.
    return json.dumps(_each_text(value, _spell)) if r"\udc" in text else text


def from_json(text: str | bytes) -> Any:  # noqa: ANN401 - as json.loads
    r"""Return what JSON of the engine says, with names as Python's own functions take them.

    Example:
        >>> from_json('{"path": "caf\\u0000e9"}') == {"path": "caf\udce9"}
        True
    """
    import json

    value = json.loads(text)
    has_mark = b"\\u0000" in text if isinstance(text, bytes) else "\\u0000" in text
    return _each_text(value, _name) if has_mark else value


def show_path(path: StrPath) -> str:
    r"""Return a path as people are shown it: on one line, and whatever its bytes are.

    Example:
        >>> show_path("data/caf\udce9"), show_path(b"two\nlines"), show_path("café")
        ('data/caf\\xe9', 'two\\nlines', 'café')
    """
    return escaped(show_text(os.fsdecode(path)))


def escaped(text: str) -> str:
    r"""Return a text with escapes in the place of all that a terminal would act on.

    Example:
        >>> print(escaped("a\x1b[31m\n\u202e"))
        a\x1b[31m\n\u202e
    """
    return text if text.isprintable() else re.sub(_UNSHOWN, _escaped, text)


def show_text(text: str) -> str:
    r"""Return a text with names in it so that every stream with UTF-8 takes it.

    Example:
        >>> show_text("cannot read caf\udce9\n")
        'cannot read caf\\xe9\n'
    """
    if text.isascii():
        return text
    text = re.sub(_BYTE, lambda found: f"\\x{ord(found[0]) & 0xFF:02x}", text)
    return text.encode("utf-8", "backslashreplace").decode()


def show_texts(value: Any) -> Any:  # noqa: ANN401 - as JSON has it
    r"""Return a value of JSON with all its text as people are shown it.

    Example:
        >>> show_texts({"inputs": ["caf\udce9"]})
        {'inputs': ['caf\\xe9']}
    """
    return _each_text(value, show_text)


def quote(word: str) -> str:
    r"""Return a word as a shell takes it: as `shlex.quote` does, and whatever its bytes are.

    Example:
        >>> quote("a b"), quote("caf\udce9's")
        ("'a b'", "$'caf\\xe9\\'s'")
    """
    from shlex import quote

    if re.search(_UNSHOWN, word) is None:
        return quote(word)
    word = word.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{re.sub(_UNSHOWN, _as_bytes, word)}'"


def _as_bytes(found: re.Match[str]) -> str:
    """A character as its bytes, which a shell takes in any locale."""
    one = found[0]
    data = os.fsencode(one) if "\udc80" <= one <= "\udcff" else one.encode("utf-8", "surrogatepass")
    return _ESCAPES.get(one) or "".join(f"\\x{byte:02x}" for byte in data)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    # Two digits would look like a byte that is not UTF-8.
    return _ESCAPES.get(found[0]) or (f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}")


def _spell(text: str) -> str:
    return re.sub(_BYTE, lambda found: f"\0{ord(found[0]) & 0xFF:02x}", text)


def _name(text: str) -> str:
    return re.sub(_SPELLED, lambda found: chr(0xDC00 | int(found[1], 16)), text)


def _each_text(value: object, change: Callable[[str], str]) -> object:
    """The same value, with all text in it changed."""
    match value:
        case str():
            return change(value)
        case dict():
            pairs = cast("dict[object, object]", value).items()
            return {_each_text(name, change): _each_text(part, change) for name, part in pairs}
        case list() | tuple():
            return [_each_text(part, change) for part in cast("list[object]", value)]
        case _:
            return value
