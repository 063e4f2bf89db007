"""How a missing extra is installed: one sentence for all that need one."""

__all__ = ["install_extra"]


def install_extra(extra: str) -> str:
    """Return what to do where the packages of an extra are missing, also for those with a clone.

    Example:
        >>> install_extra("ray").partition("; ")[2]
        'from a clone: make dist && pip install "$(ls dist/gristmill-*.whl)[ray]"'
    """
    wheel = f'"$(ls dist/gristmill-*.whl)[{extra}]"'
    return f'pip install "gristmill[{extra}]"; from a clone: make dist && pip install {wheel}'
