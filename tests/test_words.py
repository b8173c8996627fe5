"""`ci/words.py` on a small checkout, and on this one."""

import subprocess
import sys

from tests.paths import ROOT


def run(root):
    return subprocess.run([sys.executable, ROOT / "ci" / "words.py", root], capture_output=True, text=True, check=False)


def test_words_are_those_of_the_field():
    found = run(ROOT)
    assert (found.returncode, found.stdout) == (0, "words are those of the field\n")


def test_breaches_are_named_with_their_lines(tmp_path):
    (tmp_path / "jaxsim").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "jaxsim" / "a.py").write_text('''"""A module."""


def area(side):
    """The area of a square."""
    return side**2  # nobody knows; "dear" in a string is fine


def _own():
    """The private one."""
    return "dear"


class Shape:
    """A shape."""

    @property
    def size(self):
        """The size."""

    def grow(self):
        """Grow by what there is."""
''')
    (tmp_path / "docs" / "page.md").write_text("A page\nwith hops.\n")
    found = run(tmp_path)
    assert found.returncode == 1
    assert found.stdout.splitlines() == [
        "jaxsim/a.py:4: the docstring of area begins with 'The', not with a verb",
        "jaxsim/a.py:6: 'dear': say expensive",
        "jaxsim/a.py:6: 'nobody': say the passive, or who it is",
        "jaxsim/a.py:21: the docstring of grow begins with 'Grow', not with a verb",
        "jaxsim/a.py:22: 'what there is': say the thing itself",
        "docs/page.md:2: 'hops': say pointer jumping",
    ]
