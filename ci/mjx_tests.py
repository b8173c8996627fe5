"""MJX's own tests with one import changed: how many pass, and why the others do not.

    python ci/mjx_tests.py MUJOCO/mjx/mujoco/mjx [--only io_test ...] [--match REGEX] [--results FOLDER] [--mjx]

MUJOCO is a checkout of MuJoCo at the tag 3.8.1. Its tests are copied to a temporary folder, where `from mujoco import
mjx` becomes `from jaxsim import mjx`, and run one process a file. `--results` keeps what each test gave: what is there
is not run again, so that a long run can be made in pieces. `--mjx` leaves the imports alone: what MJX itself gives.

Names that `mujoco.mjx` exports are its public interface, wherever a test imports them from; `_impl` is, for the fields
that MuJoCo has. A test that reaches for anything else of MJX is private. Its own text decides: the test, its class's
setUp, and what they call in the same file, but not the conditions under which it skips itself.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco

from jaxsim import mjx

PACKAGE = "mujoco.mjx"
SOURCE = f"{PACKAGE}._src"
KINDS = ("pass", "fail", "limitation", "device", "private")
OTHER_IMPLEMENTATION = re.compile("MJX's implementation|MJX's renderer")
ELSEWHERE = re.compile("'warp'|'cpp'|WARP_INSTALLED")
LIMITATION = re.compile("AssertionError: (NotImplementedError|ValueError) not raised")
FIELD_THERE = ("AssertionError: True is not false", "assertFalse(hasattr(")  # the error, and what the test says
RUNNER = """
import importlib, json, sys, time, unittest
from absl import flags
path, match, done, out = sys.argv[1:]
flags.FLAGS(["tests"])
done = set(json.loads(done))
class Result(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        self.begin = time.perf_counter()
    def note(self, test, kind, error=""):
        row = {"test": name(test), "kind": kind, "error": error, "seconds": round(time.perf_counter() - self.begin, 1)}
        with open(out, "a") as file:
            file.write(json.dumps(row) + "\\n")
    def addSuccess(self, test):
        self.note(test, "pass")
    def addSkip(self, test, reason):
        self.note(test, "skip", reason)
    def addError(self, test, err):
        text = " ".join(f"{err[0].__name__}: {err[1]}".split())
        self.note(test, "fail", text)
    addFailure = addError
def name(test):
    return f"{type(test).__name__}.{test._testMethodName}"
def tests(suite):
    for test in suite:
        yield from tests(test) if isinstance(test, unittest.TestSuite) else [test]
import re
module = importlib.import_module(path)
found = tests(unittest.defaultTestLoader.loadTestsFromModule(module))
chosen = [t for t in found if re.search(match, name(t)) and name(t) not in done]
unittest.TestSuite(chosen).run(Result())
"""


def exported(folder: Path) -> set[str]:
    """Names of MJX's public interface: what its `__init__` imports, with all classes of `types`."""
    names: set[str] = set()
    for node in ast.parse((folder / "__init__.py").read_text()).body:
        if isinstance(node, ast.ImportFrom):
            names |= {a.asname or a.name for a in node.names}
    types = ast.parse((folder / "_src/types.py").read_text()).body
    return names - {"*"} | {node.name for node in types if isinstance(node, ast.ClassDef)}


class Imports(ast.NodeTransformer):
    """Changes the imports of a test; `private` are the names in it that stand for MJX's own modules and objects."""

    def __init__(self, folder: Path, public: set[str]):
        self.folder, self.public = folder, public
        self.modules: set[str] = set()
        self.private: set[str] = set()

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        """One import a name, each from where the name is now."""
        return [self._import(node.module or "", alias) for alias in node.names]

    def _import(self, module: str, alias: ast.alias) -> ast.stmt:
        name, known_as = alias.name, alias.asname or alias.name
        if (module, name) == ("mujoco", "mjx"):
            return ast.ImportFrom("jaxsim", [alias])
        if (module, name) == (SOURCE, "test_util"):
            return ast.Import([alias])
        if module == SOURCE:
            self.modules.add(known_as)
        elif module.startswith(SOURCE + "."):
            if hasattr(mjx, name):
                module = "jaxsim.mjx"
            if name not in self.public:
                self.private.add(known_as)
        elif module.startswith(PACKAGE):
            self.private.add(known_as)
        return ast.ImportFrom(module, [alias], 0)

    def visit_Import(self, node: ast.Import) -> ast.Import:
        """Modules of MJX's other implementations stay, and are private."""
        self.private |= {a.asname or a.name for a in node.names if a.name.startswith(PACKAGE + ".")}
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """`io.put_model` is `mjx.put_model`."""
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id in self.modules and hasattr(mjx, node.attr):
            return ast.Attribute(ast.Name("mjx", ast.Load()), node.attr, node.ctx)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """MJX's data files are those of the checkout."""
        self.generic_visit(node)
        if ast.unparse(node) == f"epath.resource_path('{PACKAGE}')":
            return ast.parse(f"epath.Path({str(self.folder)!r})", mode="eval").body
        return node


class Reach:
    """What of MJX the tests of one file use."""

    def __init__(self, tree: ast.Module, imports: Imports):
        self.imports = imports
        self.top = {name: node for node in tree.body for name in _defines(node)}

    def _methods(self, test: str) -> dict[str, ast.stmt]:
        """What the class of a test defines."""
        owner: Any = self.top[test.split(".")[0]]
        return {name: node for node in owner.body for name in _defines(node)}

    def test(self, test: str) -> ast.stmt:
        """The function of a test (Class.test_name, with its parameters)."""
        methods = self._methods(test)
        return methods[max((n for n in methods if test.split(".")[1].startswith(n)), key=len)]

    def private(self, test: str) -> list[str]:
        """Names in a test that are not of MJX's public interface."""
        methods = self._methods(test)
        seen: set[int] = set()
        wait = [self.test(test), *([methods["setUp"]] if "setUp" in methods else [])]
        found: set[str] = set()
        while wait:
            node = wait.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            for part in _walk(node):
                found |= self._names(part)
                if isinstance(part, ast.Name) and part.id in self.top:
                    wait.append(self.top[part.id])
                name = getattr(part, "id", None) or (getattr(part, "attr", "") if _on_self(part) else "")
                if name in methods:
                    wait.append(methods[name])
        return sorted(found)

    def _names(self, node: ast.AST) -> set[str]:
        """The name that this node takes from MJX, where it is a private one."""
        if isinstance(node, ast.Name):
            return {node.id} & self.imports.private
        if not isinstance(node, ast.Attribute):
            return set()
        value = node.value
        if isinstance(value, ast.Name) and value.id in (*self.imports.modules, "mjx"):
            return {node.attr} - self.imports.public
        if isinstance(value, ast.Attribute) and value.attr == "_impl" and not _of_mujoco(node.attr):
            return {f"_impl.{node.attr}"}
        return set()


def _of_mujoco(name: str) -> bool:
    """Whether MuJoCo's model, data or options have this field."""
    names = ("MjModel", "MjData", "MjOption")
    return any(hasattr(getattr(mujoco, n), name) for n in names) or name in ("replace", "tree_replace", "fields")


def _on_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _defines(node: ast.stmt) -> list[str]:
    """Names that a statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [t.id for t in targets if isinstance(t, ast.Name)]


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below one, but for conditions of skipping, and what is for other implementations only."""
    yield node
    elsewhere = isinstance(node, ast.If) and ("skipTest" in ast.dump(node) or ELSEWHERE.search(ast.unparse(node.test)))
    for child in node.orelse if elsewhere else ast.iter_child_nodes(node):
        yield from _walk(child)


def copy_tests(folder: Path, to: Path, public: set[str], as_mjx: bool) -> dict[str, Reach]:
    """Write the tests with changed imports; what they reach for, by the name of the copy."""
    reach: dict[str, Reach] = {}
    helpers = [folder / "_src/test_util.py"]
    for path in [*helpers, *sorted(folder.glob("_src/*_test.py")), *sorted(folder.glob("integration_test/*_test.py"))]:
        name = path.stem if path.parent.name == "_src" else f"integration_{path.stem}"
        tree, imports = ast.parse(path.read_text()), Imports(folder, public)
        reach[name] = Reach(tree, imports)
        text = path.read_text()
        if as_mjx:
            imports.visit(ast.parse(text))
        else:
            changed = ast.unparse(imports.visit(ast.parse(text)))
            text = re.sub(
                r"\A((?:'''|\"\"\")[\s\S]*?(?:'''|\"\"\"))?", r"\1\nfrom jaxsim import mjx\n", changed, count=1
            )
        (to / f"{name}.py").write_text(text)
    del reach["test_util"]
    return reach


def run(name: str, tests: Path, out: Path, match: str, seconds: float) -> None:
    """Run the tests of one file that have no result yet."""
    done = [row["test"] for row in rows(out)]
    arguments = [sys.executable, "-c", RUNNER, name, match, json.dumps(done), str(out)]
    paths = os.pathsep.join([str(tests), os.environ.get("PYTHONPATH", "")])
    try:
        subprocess.run(arguments, timeout=seconds, env=os.environ | {"PYTHONPATH": paths}, check=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        print(f"{name}: {error.__class__.__name__}", file=sys.stderr)


def rows(out: Path) -> list[dict[str, str]]:
    """Results of one file's tests: the last of each."""
    lines = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
    return list({row["test"]: row for row in map(json.loads, lines)}.values())


def kind_of(row: dict[str, str], reach: Reach) -> str:
    """The column of the table in which a test is counted.

    "limitation": the test expects an error for what works here, or that a field of MuJoCo's is absent.
    """
    if row["kind"] == "skip" or OTHER_IMPLEMENTATION.search(row["error"]):
        return "device"
    if reach.private(row["test"]):
        return "private"
    absent = row["error"] == FIELD_THERE[0] and FIELD_THERE[1] in ast.unparse(reach.test(row["test"]))
    return "limitation" if absent or LIMITATION.match(row["error"]) else row["kind"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder mjx/mujoco/mjx of a checkout of MuJoCo")
    parser.add_argument("--only", nargs="+", help="names of files: io_test, integration_forward_test")
    parser.add_argument("--match", default="", help="a regular expression of tests' names")
    parser.add_argument("--results", type=Path, help="folder that keeps results")
    parser.add_argument("--seconds", type=float, default=3600, help="limit for one file")
    parser.add_argument("--mjx", action="store_true", help="run MJX itself")
    args = parser.parse_args()
    folder, public = args.folder.resolve(), exported(args.folder)
    with tempfile.TemporaryDirectory() as temporary:
        results = args.results or Path(temporary)
        results.mkdir(exist_ok=True)
        reach = copy_tests(folder, Path(temporary), public, args.mjx)
        chosen = [name for name in reach if name in (args.only or reach)]
        for name in chosen:
            begin = time.monotonic()
            run(name, Path(temporary), results / f"{name}.jsonl", args.match, args.seconds)
            print(f"{name}: {time.monotonic() - begin:.0f} s", file=sys.stderr)
        report({name: [(row, kind_of(row, reach[name])) for row in rows(results / f"{name}.jsonl")] for name in chosen})


def report(files: dict[str, list[tuple[dict[str, str], str]]]) -> None:
    """Print the table and the tests that fail."""
    print("| file | public: pass | fail | want a limitation of MJX | other device or implementation | private: pass |")
    print("| --- | --- | --- | --- | --- | --- |")
    total: Counter[str] = Counter()
    for name, found in files.items():
        count = Counter(kind for _, kind in found)
        count["inside"] = sum(kind == "private" and row["kind"] == "pass" for row, kind in found)
        total += count
        print(_line(name, count))
    print(_line("all", total))
    tried = total["pass"] + total["fail"]
    print(f"\n{total['pass']} of {tried} tests that go through the public interface pass")
    for name, found in files.items():
        for row, kind in found:
            if kind in ("fail", "limitation"):
                print(f"{kind}: {name} {row['test']}: {row['error'][:200]}")


def _line(name: str, count: Counter[str]) -> str:
    kinds = " | ".join(str(count[kind]) for kind in KINDS[:-1])
    return f"| {name} | {kinds} | {count['inside']} of {count['private']} |"


if __name__ == "__main__":
    main()
