"""Standard streams that were closed before the start, as by `2>&-`: their numbers stay taken.

Else a file or pipe that is opened first becomes descriptor 2: messages go into it, and a worker
that is given its own standard streams loses it. What is read or written fails as before, with
EBADF; messages go nowhere.
"""

import os

__all__ = ["reserve"]

_MODES = (os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)
"""For stdin and stdout those with which no read and no write succeeds, as GNU's programs do it."""


def reserve() -> None:
    """Open /dev/null in the place of each standard stream that is closed."""
    for number, mode in enumerate(_MODES):
        try:
            os.fstat(number)
        except OSError:
            try:
                opened = os.open(os.devnull, mode)  # the lowest number that is free: this one
            except OSError:  # there is no /dev/null: it stays as it was
                return
            os.set_inheritable(opened, True)
