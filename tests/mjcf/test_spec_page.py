"""The examples of the page about specs run as they stand."""

import re

from tests.paths import DOCS

PAGE = DOCS / "spec.md"


def test_examples_run():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 4
    exec(compile("\n".join(blocks), str(PAGE), "exec"), {})
