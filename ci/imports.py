"""Check that imports point one way: each room of the package imports only from rooms below it.

Run from anywhere; prints one line for each import that points the wrong way and exits with their number (at most 1).
Imports inside functions count as well, except where `ALLOWED` names them with their reason.
"""

import ast
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "jaxsim"

# Lowest first; rooms of one line may import each other.
ORDER = [
    ("math",),
    ("core", "xla"),
    ("mjcf",),
    ("compiler", "engine", "io", "parallel"),
    ("stages", "support"),
    ("__init__",),
    ("envs", "optim", "identify", "viewer", "tools"),
    ("__main__",),
]
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}
# (importing room, imported module): needed only when called, to compute derived constants or to pack rows.
ALLOWED = {
    ("io", "mujoco"),
    ("tools", "mujoco"),
    ("tools", "mujoco_warp"),
    ("envs", "gymnasium"),
    ("envs", "mujoco"),
}
# The engine reads models and never makes them from text; the front end knows neither JAX nor physics.
FORBIDDEN = {
    "math": {"jaxsim"},
    "mjcf": {"jax", "jaxsim.math"},
    "engine": {"jaxsim.compiler", "jaxsim.mjcf", "jaxsim.io.mujoco"},
}
FOREIGN = {"mujoco", "mujoco_warp", "dm_control", "gymnasium"}


def modules(tree: ast.AST) -> list[str]:
    """Dotted names of everything that a module imports."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def room_of(path: Path) -> str:
    """The room of a file: its top folder in the package, or its own name."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


def problems(path: Path) -> list[str]:
    """What is wrong with the imports of one file."""
    room, found = room_of(path), []
    if room not in LEVEL:
        return [f"{path.relative_to(PACKAGE.parent)}: room {room!r} has no place in ci/imports.py"]
    for name in dict.fromkeys(modules(ast.parse(path.read_text(encoding="utf-8")))):
        top, *rest = name.split(".")
        if any(room == r and (name == n or name.startswith(n + ".")) for r, n in ALLOWED):
            continue
        inside = room == "math" and name.startswith("jaxsim.math")
        if not inside and any(name == f or name.startswith(f + ".") for f in FORBIDDEN.get(room, ())):
            found.append(f"{path.relative_to(PACKAGE.parent)}: {room} must not import {name}")
        elif top in FOREIGN:
            found.append(f"{path.relative_to(PACKAGE.parent)}: the package must work without {top}")
        elif top == "jaxsim":
            target = rest[0] if rest and rest[0] in LEVEL else "__init__"
            if LEVEL[target] > LEVEL[room] and not (target == "__init__" and rest):
                found.append(f"{path.relative_to(PACKAGE.parent)}: {room} must not import {name}")
    return found


def main() -> int:
    """Check every module of the package."""
    lines = [line for path in sorted(PACKAGE.rglob("*.py")) for line in problems(path)]
    print("\n".join(lines) if lines else "imports point one way")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
