"""Source files of the package in C and CUDA, and the constants that are written before them."""

from pathlib import Path
from typing import Any


def text(folder: Path, name: str) -> str:
    """A source file of the package."""
    return (folder / name).read_text(encoding="utf-8")


def definitions(values: dict[str, Any]) -> str:
    """Lines `#define NAME value`."""
    return "".join(f"#define {k} {v}\n" for k, v in values.items())
