"""Writes the pages of docs/reference."""

from reference import FOLDER, made


def main() -> None:
    """Write every page."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in made().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"docs/reference/{name}: {len(text.splitlines())} lines")


main()
