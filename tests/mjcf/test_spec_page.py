"""The examples of the page about specs run as they stand."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spec.md"


def test_examples_run():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 4
    exec(compile("\n".join(blocks), str(PAGE), "exec"), {})
