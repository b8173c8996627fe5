"""Check the imports of the repository: what may import what, without circles, and no private names of others.

    python ci/imports.py [ROOT]

Prints a line for each import that breaks a rule and exits with 1 if there is one. The rules:

- A package, which is a folder, imports only packages below it and of its own line: `PACKAGES`, lowest first.
- Neither modules nor packages form a circle. Imports inside functions and those for type checkers count.
- No module uses a private name (`_name`) of another module.
- The tests and the scripts of `ci/` do not import each other. What both need lies in `validation/`.
- A name that is imported from a module of ours exists there.
- The package imports optional packages only where `OPTIONAL` says.
"""

import ast
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
# Lowest first; packages of one line may import each other, but not in a circle. A module's is the longest name above.
PACKAGES = (
    ("jaxsim.math", "jaxsim.xla"),
    ("jaxsim.core", "jaxsim.native"),
    ("jaxsim.interface", "jaxsim.mjcf"),
    ("jaxsim.engine.structure", "jaxsim.engine.solver", "jaxsim.engine.__init__"),
    ("jaxsim.engine.kinematics",),
    ("jaxsim.engine.tendon", "jaxsim.engine.flex", "jaxsim.engine.ray", "jaxsim.engine.islands"),
    ("jaxsim.engine.dynamics", "jaxsim.engine.actuation", "jaxsim.engine.collision", "jaxsim.engine.constraint"),
    ("jaxsim.engine.constants", "jaxsim.engine.sensor", "jaxsim.engine.integrate"),
    ("jaxsim.engine.step",),
    ("jaxsim.compiler", "jaxsim.io", "jaxsim.host", "jaxsim.parallel", "jaxsim.stages", "jaxsim.support"),
    (
        *("jaxsim.__init__", "jaxsim.mjx", "jaxsim.optim", "jaxsim.torch", "jaxsim.viewer", "jaxsim.envs"),
        *("jaxsim.identify", "jaxsim.tools", "jaxsim.__main__"),
    ),
    ("validation", "tests", "ci"),
)
TOPS = ("jaxsim", "validation", "tests", "ci")
LEVEL = {package: level for level, packages in enumerate(PACKAGES) for package in packages}
# What the order alone would let pass: the front end knows neither JAX nor physics, the engine no text.
FORBIDDEN = {
    "jaxsim.mjcf": ("jax", "jaxsim.math", "jaxsim.xla", "jaxsim.native"),
    "jaxsim.engine": ("jaxsim.mjcf",),
    "validation": ("tests", "ci"),
    "tests": ("ci",),
    "ci": ("tests",),
}
# Optional packages -> the modules of the package that may import them.
OPTIONAL = {
    "mujoco": ("jaxsim.mjx.io", "jaxsim.envs.playground", "jaxsim.tools.peers"),
    "mujoco_warp": ("jaxsim.tools.peers",),
    "mujoco_playground": ("jaxsim.envs.playground",),
    "warp": ("jaxsim.tools.peers",),
    "gymnasium": ("jaxsim.envs.gym",),
    "viser": ("jaxsim.viewer.web",),
    "imageio": ("jaxsim.viewer.render",),
    "matplotlib": ("jaxsim.identify.report",),
    "optax": ("jaxsim.optim.extras",),
    "blackjax": ("jaxsim.identify.posterior",),
    "dm_control": (),
}


class Module(NamedTuple):
    """A file: its path from the root, its dotted name, its syntax tree and what it imports, as (line, dotted name)."""

    path: Path
    name: str
    tree: ast.Module
    imports: list[tuple[int, str]]


def read(path: Path) -> Module:
    """A file as a module."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    tree, found = ast.parse(path.read_text(encoding="utf-8")), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return Module(path.relative_to(ROOT), ".".join(parts), tree, found)


def packages(name: str) -> Iterator[str]:
    """A dotted name and the packages that it lies in, longest first."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def inside(name: str, places: tuple[str, ...]) -> bool:
    """Whether a dotted name is one of some places or lies in it."""
    return any(place in packages(name) for place in places)


class Checker:
    """All modules of the repository by name, and what is wrong with their imports."""

    def __init__(self) -> None:
        self.modules = {m.name: m for top in TOPS for m in map(read, sorted((ROOT / top).rglob("*.py")))}

    def target(self, name: str) -> str | None:
        """The module that an imported name is, or is defined in."""
        found = (n for p in packages(name) for n in (p, f"{p}.__init__") if n in self.modules)
        return next(found, None)

    def package(self, name: str) -> str | None:
        """The package of a module."""
        return next((p for p in packages(name) if p in LEVEL), None)

    def directions(self, module: Module) -> Iterator[str]:
        """Imports that point up, that are forbidden, or of optional packages."""
        package = self.package(module.name)
        if package is None:
            yield f"{module.path}: {module.name} has no place in PACKAGES"
            return
        for line, name in module.imports:
            target = self.target(name)
            place = target and self.package(target)
            barred = [p for package, places in FORBIDDEN.items() if inside(module.name, (package,)) for p in places]
            if inside(name, tuple(barred)) or (place and LEVEL[place] > LEVEL[package]):
                yield f"{module.path}:{line}: {package} must not import {name}"
            top = name.partition(".")[0]
            if inside(module.name, ("jaxsim",)) and not inside(module.name, OPTIONAL.get(top, ("jaxsim",))):
                yield f"{module.path}:{line}: jaxsim must work without {top}"

    def missing(self, module: Module) -> Iterator[str]:
        """Imported names of ours that are neither modules nor names of their module."""
        for line, name in module.imports:
            home, _, last = name.rpartition(".")
            if not inside(name, TOPS) or name in self.modules or f"{name}.__init__" in self.modules or last == "*":
                continue
            source = self.modules.get(home) or self.modules.get(f"{home}.__init__")
            if source is None or not names_of(source.tree) & {last, "*"}:
                yield f"{module.path}:{line}: there is no {name}"

    def private(self, module: Module) -> Iterator[str]:
        """Private names of other modules: imported, or read from an imported module."""
        aliases = {}
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Import):
                aliases |= {a.asname or a.name.partition(".")[0]: a.name if a.asname else "" for a in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                aliases |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        for line, name in module.imports:
            if self.target(name) and is_private(name):
                yield f"{module.path}:{line}: {name} is private"
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and is_private(node.attr):
                first, *rest = ast.unparse(node.value).split(".")
                whole = ".".join([aliases.get(first) or first, *rest])
                if first in aliases and whole in self.modules:
                    yield f"{module.path}:{node.lineno}: {whole}.{node.attr} is private"

    def circles(self) -> Iterator[str]:
        """Groups of modules, or of packages, of which each imports, in the end, itself."""
        modules = {m.name: {t for _, n in m.imports if (t := self.target(n))} for m in self.modules.values()}
        packages: dict[str, set[str]] = {}
        for name, targets in modules.items():
            packages.setdefault(self.package(name) or name, set()).update(self.package(t) or t for t in targets)
        for graph, kind in ((modules, "imports"), (packages, "packages")):
            yield from (f"a circle of {kind}: {', '.join(sorted(group))}" for group in circles_of(graph))

    def problems(self) -> Iterator[str]:
        """All that is wrong."""
        for module in self.modules.values():
            yield from self.directions(module)
            yield from self.missing(module)
            yield from self.private(module)
        yield from self.circles()


def circles_of(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """Groups of nodes that reach each other."""
    reach: dict[str, set[str]] = {}
    for name in graph:
        seen, todo = set(), [name]
        while todo:
            last = todo.pop()
            new = graph.get(last, set()) - seen - {last}
            seen |= new
            todo += new
        reach[name] = seen
    return {frozenset(o for o in reach[n] if n in reach.get(o, ())) for n in graph if n in reach[n]}


@functools.cache
def names_of(tree: ast.Module) -> set[str]:
    """All names that a module defines or imports, at any depth."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    return found


def is_private(name: str) -> bool:
    """Whether the last part of a dotted name is private."""
    last = name.rpartition(".")[2]
    return last.startswith("_") and not last.endswith("__")


def main() -> int:
    """Print what is wrong."""
    lines = list(Checker().problems())
    print("\n".join(lines) if lines else "imports point one way")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
