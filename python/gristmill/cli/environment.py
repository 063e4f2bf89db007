"""What the environment has to do with a failure: the variable behind a value is named.

GRISTMILL_MEMORY=1k gristmill sort a   ──▶   ... is too small ... The environment sets
                                             GRISTMILL_MEMORY to '1k'.
"""

import click

__all__ = ["environment_note"]

_RESOURCES = ("memory", "workers")
"""Too little memory can be for too many workers."""


def environment_note(kind: str | None, option: str | None) -> str:
    """Return a sentence for the end of a paragraph; empty where the environment is not the cause.

    Args:
        kind: The kind of error.
        option: The option whose value is wrong, if one is.
    """
    context = click.get_current_context(silent=True)
    if context is None:
        return ""
    concerned = _RESOURCES if kind == "memory" else (option,)
    given = [
        f"{one.envvar} to {str(context.params[one.name])!r}"
        for one in context.command.params
        if isinstance(one, click.Option)
        and one.envvar
        and one.name in concerned
        and context.get_parameter_source(one.name) is click.core.ParameterSource.ENVIRONMENT
    ]
    return f" The environment sets {' and '.join(given)}." if given else ""
