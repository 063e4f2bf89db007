"""index.md: what the reference has."""

from reference.markdown import document

__all__ = ["page"]

_PAGES = """\
- [Commands](commands.md): every command, argument and option
- [Python API](python.md): functions, jobs, formats, aggregates, results
- [Environment](environment.md): the variables that Gristmill reads
- [Counters](counters.md): what a job counts
- [Errors and exit codes](errors.md): kinds of errors, exceptions, exit codes
- [JSON output](json.md): what `--json` prints
- [Stores](stores.md): where data can be, and what each place guarantees
- [Glossary](glossary.md): what words mean

Formats on disk: [_SUCCESS](../internals/success.md), [run files](../internals/run-file.md),
[key/value files](../internals/kv-file.md), [histories](../internals/history.md). The guide says how
things are used; the reference says what there is."""


def page() -> str:
    """Return the page."""
    return document("Reference", _PAGES)
