"""What records are read from and written to: files, their splits, their lines, rows and columns.

paths ─▶ plan, splits ─▶ a reader in each format ─▶ records ─▶ a writer in each format ─▶ files
"""


def __getattr__(name: str) -> object:
    """Return a name of `format.py`, which was this module: older pickles have it from here."""
    from importlib import import_module

    return getattr(import_module(f"{__name__}.format"), name)
