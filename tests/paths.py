"""Where the repository and its parts lie."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CI = ROOT / "ci"
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "training_examples"
MODELS = ROOT / "models"
HUMANOID = MODELS / "humanoid.xml"
