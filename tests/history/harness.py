"""Histories made up line by line, and a browser that shows pages."""

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

Event = dict[str, Any]


def submitted(job_id: str, **fields: Any) -> Event:  # noqa: ANN401
    """The first event of a job."""
    return {
        "t_ms": 0,
        "event": "job_submitted",
        "version": 1,
        "job_id": job_id,
        "command": "sort",
        "spec": {"sort": {"inputs": ["in"]}},
        "unix_ms": 1_700_000_000_000,
        "pid": 1,
        "program": "0.1.0",
        **fields,
    }


def write_history(home: Path, job_id: str, events: Iterable[Event]) -> Path:
    """Write a job's history; returns its folder."""
    folder = home / "jobs" / job_id
    folder.mkdir(parents=True)
    with (folder / "events.jsonl").open("w") as file:
        file.writelines(json.dumps(event) + "\n" for event in events)
    return folder


class _Text(HTMLParser):
    """What a reader sees, and the elements that hold it."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.tags: list[str] = []
        self.attributes: dict[str, str | None] = {}
        self.title = ""
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "body":
            self.attributes = dict(attrs)
        self._hidden += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] == ["title"]:
            self.title += data
        elif not self._hidden:
            self.text.append(data)


@dataclass(frozen=True)
class Shown:
    """A page as the browser has it when its scripts are through."""

    title: str
    text: str
    tags: list[str]
    body: dict[str, str | None]


@dataclass(frozen=True)
class Browser:
    """Headless Chromium, which can reach nothing."""

    program: str
    folder: Path

    def show(self, page: Path) -> Shown:
        """Open a page; returns what became of it."""
        found = _Text()
        found.feed(self._run("--dump-dom", page))
        return Shown(found.title.strip(), " ".join(found.text), found.tags, found.attributes)

    def act(self, page: Path, script: str, *, width: int = 1400) -> Any:  # noqa: ANN401
        """Open a page of that width, run a script in it, which calls `say`; returns what it said.

        The page is in a frame, since a browser's window has a least width.
        """
        saying = "const say = (what) => parent.postMessage(JSON.stringify(what), '*');"
        html = page.read_text().replace("</body>", f"<script>{saying}{script}</script></body>")
        (page.parent / "framed.html").write_text(html)
        frame = page.parent / "frame.html"
        frame.write_text(
            "<!doctype html><body><script>addEventListener('message', (event) => {"
            " document.body.dataset.said = event.data; });</script>"
            f"<iframe src='framed.html' style='width: {width}px; height: 900px'></iframe></body>"
        )
        found = _Text()
        found.feed(self._run("--dump-dom", frame, "--virtual-time-budget=3000"))
        return json.loads(found.attributes.get("data-said") or "null")

    def picture(self, page: Path, png: Path, *, width: int, height: int) -> None:
        """Write a picture of a page."""
        self._run(f"--screenshot={png}", page, f"--window-size={width},{height}")

    def _run(self, what: str, page: Path, *more: str) -> str:
        done = subprocess.run(
            [
                self.program,
                "--headless",
                "--no-sandbox",  # root runs tests in containers
                "--disable-gpu",
                "--hide-scrollbars",
                "--proxy-server=127.0.0.1:9",
                f"--user-data-dir={self.folder / 'profile'}",
                *more,
                what,
                page.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout
