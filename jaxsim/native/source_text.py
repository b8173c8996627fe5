"""Read C and CUDA source files of the package, and write the constants that precede them."""

from pathlib import Path
from typing import Any


def text(folder: Path, name: str) -> str:
    """Return the text of a source file of the package."""
    return (folder / name).read_text(encoding="utf-8")


def definitions(values: dict[str, Any]) -> str:
    """Return lines `#define NAME value`."""
    return "".join(f"#define {k} {v}\n" for k, v in values.items())
