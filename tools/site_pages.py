"""The order of the documentation site's pages: a hook of MkDocs (mkdocs.yml).

A folder brings all its pages, in the order of their names, so that a new page needs no line here.
A page that no section names stands under "More".
"""

from pathlib import Path
from typing import Any

__all__ = ["SECTIONS", "navigation", "on_config"]

SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Start", ("index.md", "tutorial.md")),
    ("Guide", ("guide/mapreduce.md", "guide/*.md")),
    ("Coming from", ("from-gnu-sort.md", "from-hadoop.md", "streaming.md", "from-*.md")),
    ("Reference", ("reference/index.md", "reference/*.md")),
    ("Figures", ("benchmarks.md", "scaling.md", "shuffles.md", "tuning.md")),
    ("Decisions", ("decisions/README.md", "decisions/*.md")),
    ("Formats on disk", ("internals/*.md",)),
    ("More", ("**/*.md",)),
)
"""Sections with the pages in them, as patterns; a page stands where it is named first."""


def navigation(docs: Path) -> list[dict[str, list[str]]]:
    """Return the navigation of a folder of pages.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("index.md", "other.md"):
    ...         _ = Path(folder, name).write_text("# Page")
    ...     navigation(Path(folder))
    [{'Start': ['index.md']}, {'More': ['other.md']}]
    """
    seen: set[str] = set()
    result: list[dict[str, list[str]]] = []
    for title, patterns in SECTIONS:
        pages: list[str] = []
        for pattern in patterns:
            found = sorted(path.relative_to(docs).as_posix() for path in docs.glob(pattern))
            pages += [page for page in found if page not in seen]
            seen.update(pages)
        if pages:
            result.append({title: pages})
    return result


def on_config(config: Any) -> Any:  # noqa: ANN401 - MkDocs's own
    """Give MkDocs its navigation."""
    config["nav"] = navigation(Path(config["docs_dir"]))
    return config
