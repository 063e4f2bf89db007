"""Whether functions can be called as tasks call them, found out when the job is made.

    map=lambda a, b: ...   ─signature─▶ "is called with one argument, the record"

A function that does not say what it takes, as some builtins, passes. Of a decorated function the
decorator's own parameters count, as they do in a call.
"""

from gristmill.mapreduce.functions import (
    can_be_called,
    name_of,
    signature_of,
    taken,
    takes_context,
)
from gristmill.mapreduce.spec import Spec

__all__ = ["check_calls"]

_GETS = {
    "map": (1, "one argument, the record"),
    "map_batches": (1, "one argument, the batch"),
    "setup": (1, "one argument, the context"),
    "teardown": (1, "one argument, the context"),
    "combine": (2, "two arguments, a key and an iterator of its values"),
    "reduce": (2, "two arguments, a key and an iterator of its values"),
    "reduce_batches": (1, "one argument, an iterator of batches"),
    "sort_by": (2, "two arguments, a key and a value"),
    "group_by": (1, "one argument, a key"),
    "partition_by": (2, "two arguments, a key and the number of partitions"),
}
"""What functions get, besides the context."""

_WITH_CONTEXT = ("map", "map_batches", "combine", "reduce", "reduce_batches")
"""Functions that get the context too, if they have a parameter of its name."""


def check_calls(job: Spec) -> None:
    """Refuse functions that take another number of arguments than they get.

    Raises:
        TypeError: There is one.
    """
    for role, (count, words) in _GETS.items():
        function: object = getattr(job, role)
        if not callable(function):
            continue
        signature = signature_of(function)
        with_context = role in _WITH_CONTEXT and takes_context(function)
        if signature is None or can_be_called(signature, count, with_context=with_context):
            continue
        more = "; a parameter named context gets the context" if role in _WITH_CONTEXT else ""
        raise TypeError(
            f"cannot make the job: {role}={name_of(function)} takes {taken(signature)}, and is"
            f" called with {words}{more}. What to do: change its parameters."
        )
