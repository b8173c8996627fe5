"""Hook of mkdocs: the Markdown of each page beside its HTML, since `llms.txt` links to Markdown."""

import shutil
from pathlib import Path
from typing import Any


def on_post_build(config: Any) -> None:
    """Copy all pages of the docs to the same paths of the site."""
    docs, site = Path(config["docs_dir"]), Path(config["site_dir"])
    for page in docs.rglob("*.md"):
        shutil.copy(page, site / page.relative_to(docs))
