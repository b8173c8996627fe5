"""Check the words of docstrings, comments and pages.

    python ci/words.py [ROOT]

Prints a line for each breach and exits with 1 if there is one. The rules:

- The docstring of a public function or method of the package begins with a verb (`KNOWN`: add the one that is missing).
- The words of `INSTEAD` are not in docstrings, comments and pages: they were a dialect of this project.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KNOWN = """
Add Advance Allocate Append Apply Approximate Assemble Assign Attach Average Batch Begin Bind Build Cache Call Cast
Change Check Choose Classify Clear Clip Collect Combine Compare Compile Complete Compose Compress Compute Concatenate
Continue Convert Copy Count Cut Declare Decode Delay Delete Descend Describe Disable Divide Do Draw Drop Encode End
Enter Estimate Evaluate Exchange Execute Expand Extend Extract Factor Fill Find Fit Flatten Fold Follow Format
Generate Give Group Guess Halve Identify Import Insert Interpolate Invert Issue Iterate Join Judge Keep Lay Leave Let
Limit Line List Load Look Lower Make Map Mark Measure Merge Minimise Mix Move Multiply Name Normalise Note Number Open
Order Orient Overlay Overwrite Pack Pad Parse Pause Place Print Project Put Raise Read Recompute Record Reduce Refuse
Register Remove Rename Render Reorder Repeat Replace Report Resample Reset Restrict Return Rewrite Rotate Round Run
Say Scale Scan Scatter Search Select Set Share Show Simplify Simulate Smooth Solve Sort Split Stack Start Step Store
Substitute Subtract Suggest Sum Swap Take Tile Time Trace Transform Triangulate Turn Unpack Unravel Update Visit Wait
Wake Warn Wrap Write Zero
"""
VERBS = frozenset(KNOWN.split())
INSTEAD = {
    "dear": "expensive",
    "hop": "pointer jumping",
    "hops": "pointer jumping",
    "is what it is": "the fact itself",
    "nobody": "the passive, or who it is",
    "rooms": "packages",
    "wants": "needs, or takes",
    "what there is": "the thing itself",
    "what was asked": "the thing itself",
}
FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef
BANNED = re.compile(rf"\b({'|'.join(INSTEAD)})\b", re.IGNORECASE)


def without_verbs(source: str) -> Iterator[tuple[int, str]]:
    """Return lines and messages of public functions whose docstrings do not begin with a verb."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, FUNCTIONS) or node.name.startswith("_"):
            continue
        first = (ast.get_docstring(node) or "Return").split()[0].strip(".,:")
        if first not in VERBS and not any("property" in ast.unparse(d) for d in node.decorator_list):
            yield node.lineno, f"the docstring of {node.name} begins with {first!r}, not with a verb"


def prose(source: str) -> Iterator[tuple[int, str]]:
    """Return lines and texts of the docstrings and comments of Python code."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Module)) and (text := ast.get_docstring(node, clean=False)):
            yield from enumerate(text.splitlines(), node.body[0].lineno)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def banned(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Return lines and messages of words that are not used."""
    for number, text in lines:
        for word in BANNED.findall(text):
            yield number, f"{word!r}: say {INSTEAD[word.lower()]}"


def breaches(root: Path) -> Iterator[str]:
    """Return a line for each breach in a checkout."""
    for path in sorted(p for folder in ("jaxsim", "ci", "training_examples") for p in (root / folder).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        verbs = without_verbs(source) if path.is_relative_to(root / "jaxsim") else ()
        yield from (f"{path.relative_to(root)}:{n}: {text}" for n, text in sorted([*verbs, *banned(prose(source))]))
    for path in sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")]):
        lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        yield from (f"{path.relative_to(root)}:{n}: {text}" for n, text in banned(lines))


if __name__ == "__main__":
    found = list(breaches(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT))
    print("\n".join(found) or "words are those of the field")
    sys.exit(bool(found))
