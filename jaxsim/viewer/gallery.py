"""A page with many replays that shows one at a time, without a network or a server."""

import html
from collections.abc import Sequence

from jaxsim.viewer.html import as_json, fill


def render_gallery(title: str, pages: Sequence[tuple[str, str, str]]) -> str:
    """Compose the HTML text of a gallery of pages, each given by its name, a line of text and its HTML."""
    entries = [{"name": name, "text": text, "page": page} for name, text, page in pages]
    return fill("gallery.html", {"TITLE": html.escape(title), "PAGES": as_json(entries)})
