"""Check the words of docstrings, comments and pages.

    python ci/words.py [ROOT]

Prints a line for each breach and exits with 1 if there is one. The rules:

- The docstring of a public function or method of the package begins with a verb (`VERBS`; add the one that is missing).
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
Accumulate Add Advance Allocate Append Apply Approximate Assemble Assert Assign Attach Average Batch Begin Bind
Broadcast Build Calibrate Call Cast Change Check Choose Clear Clip Close Collect Combine Compare Compile Complete
Compose Compute Concatenate Convert Copy Count Create Cut Decide Declare Decode Define Delay Derive Describe Detach
Determine Differentiate Displace Distribute Divide Do Download Draw Drop Embed Encode End Enter Estimate Evaluate
Exchange Expand Export Extend Factorise Fill Find Fit Flatten Fold Follow Forget Form Format Freeze Gather Generate
Get Give Group Guess Halve Handle Hold Identify Ignore Import Include Indent Inflate Initialise Insert Integrate
Interpolate Invert Join Judge Keep Lay Leave Let Limit Line Link List Listen Load Lock Log Look Lower Make Map Mark
Measure Merge Minimise Mirror Mix Modify Move Multiply Name Normalise Note Number Open Optimise Order Orient Overwrite
Pack Pad Parse Pause Permute Pick Place Plan Play Pop Prepare Print Project Propagate Provide Prune Pull Push Put
Quantise Query Quit Raise Randomise Randomize Raster Read Rebuild Record Recover Reduce Refine Refuse Register
Regularise Reject Release Remove Rename Render Reorder Repair Repeat Replace Replay Report Resample Rescale Reset
Resize Resolve Restore Restrict Resume Return Rewrite Roll Rotate Round Run Sample Save Say Scale Scan Scatter Search
See Select Send Separate Serve Set Share Shift Show Simplify Simulate Skip Slice Smooth Solve Sort Specialise Split
Spread Squeeze Stack Start Step Stop Store Substitute Subtract Suggest Sum Swap Switch Symmetrise Tabulate Take Tell
Test Tile Time Trace Track Train Transform Translate Transpose Treat Triangulate Truncate Try Turn Unpack Unravel
Unroll Unwrap Update Use Validate Verify Visit Wait Wake Walk Warn Watch Weigh Wrap Write Yield Zero
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
