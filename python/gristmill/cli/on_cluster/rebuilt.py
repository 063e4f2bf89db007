"""The words of a command line, made again from what click has read: options by their long names.

What the environment says of options is among them.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import click

__all__ = ["rebuilt"]

_DEFAULT = (click.core.ParameterSource.DEFAULT, click.core.ParameterSource.DEFAULT_MAP)


def rebuilt(context: click.Context, changed: Mapping[str, Any]) -> list[str]:
    """Return the words of a command line that was read, with other values of some options.

    Args:
        context: What was read.
        changed: Values by the names of their options; those of options that were not given count,
            too, unless they are nothing.

    Example:
        >>> command = click.Command("a", params=[click.Argument(["x"]), click.Option(["--by"])])
        >>> rebuilt(command.make_context("a", ["1", "--by", "2"]), {"by": "3"})
        ['--by=3', '--', '1']
    """
    options, arguments = list[str](), list[str]()
    for parameter in context.command.params:
        name = parameter.name or ""
        is_given = context.get_parameter_source(name) not in _DEFAULT
        value = changed.get(name, context.params.get(name) if is_given else None)
        if isinstance(parameter, click.Option):
            options += _option(parameter, value)
        else:
            arguments += _values(value)
    return [*options, "--", *arguments] if arguments else options


def _option(option: click.Option, value: object) -> Iterator[str]:
    longest = max(option.opts, key=len)
    if option.is_flag:
        if value:
            yield longest
        return
    for one in _values(value):
        yield f"{longest}={one}"


def _values(value: Any) -> list[str]:  # noqa: ANN401 - click's
    if value is None:
        return []
    if not isinstance(value, (tuple, list)):
        return [str(value)]
    return [str(one) for one in cast("Iterable[object]", value)]
