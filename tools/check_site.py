"""Checks the pages of a built site: every link inside it leads somewhere, and no page asks another host for anything.

python tools/check_site.py out/docs
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page links to, what it loads when it is opened, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name == "href" and value:
                (self.loads if tag == "link" else self.links).append(value)
            elif name in ("src", "srcset", "poster", "data") and value:
                self.loads += [part.split()[0] for part in value.split(",")] if name == "srcset" else [value]


def problems(site: Path) -> list[str]:
    """One line for each link that leads nowhere, and for each request to another host."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    found = []
    for path, page in pages.items():
        for target in page.links + page.loads:
            url = urlsplit(target)
            if url.scheme or url.netloc:
                if target in page.loads and url.scheme != "data":
                    found.append(f"{path.name} loads {target}")
                continue
            file = (path.parent / unquote(url.path)).resolve() if url.path else path
            if not file.exists():
                found.append(f"{path.name} links to {target}, which is no file")
            elif file in pages and unquote(url.fragment) not in pages[file].anchors:
                found.append(f"{path.name} links to {target}, which has no such anchor")
    for style in site.rglob("*.css"):
        requests = re.findall(
            r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')\s]+)", style.read_text(encoding="utf-8")
        )
        found += [f"{style.name} loads {target}" for target in requests]
    return found


if __name__ == "__main__":
    site = Path(sys.argv[1])
    found = problems(site)
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(found)} problems." if found else f"The site is in {site / 'index.html'}; its links are whole.")
    sys.exit(bool(found))
