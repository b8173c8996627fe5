"""The notebooks run, with small settings, and begin with a cell that installs what they need."""

import contextlib
import json
import sys
from types import ModuleType

import jax
import pytest

from tests.paths import DOCS

# what a cell tagged "settings" sets, made small
SMALL = {
    "first_steps": {"STEPS": 20},
    "gradients_through_contact": {"SUBSTEPS": 40},
    "plan_a_throw": {"ITERATIONS": 3, "SUBSTEPS": 4},
    "identify_an_arm": {"ITERATIONS": 3, "RANDOM": 4},
    "gpu_or_tpu": {"MODEL": "cartpole.xml", "WORLDS": "4", "NSTEP": 2, "SETTLE": 1, "CHECKED": ("cartpole.xml",)},
    "train_a_quadruped": {"ACTIONS": 2_000, "WORLDS": 8, "EPISODE": 40},
}
QUICK = {"first_steps"}
BOOKS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in DOCS.glob("notebooks/*.ipynb")}


def cells(name):
    """Tags and text of the cells of code."""
    return [
        (c["metadata"].get("tags", []), "".join(c["source"])) for c in BOOKS[name]["cells"] if c["cell_type"] == "code"
    ]


def test_every_notebook_is_run_and_named_in_the_page():
    page = (DOCS / "notebooks" / "index.md").read_text(encoding="utf-8")
    assert BOOKS.keys() == SMALL.keys() and all(f"({name}.ipynb)" in page for name in BOOKS)


@pytest.mark.parametrize("name", SMALL)
def test_one_cell_installs_and_no_output_is_stored(name):
    found = cells(name)
    assert [i for i, (tags, _) in enumerate(found) if "install" in tags] == [0]
    assert [text.count("%pip") for _, text in found] == [1] + [0] * (len(found) - 1)
    assert not any(c.get("outputs") for c in BOOKS[name]["cells"])
    assert len({c["id"] for c in BOOKS[name]["cells"]}) == len(BOOKS[name]["cells"])


@pytest.fixture
def shown(monkeypatch):
    """What cells display, by a module that stands for IPython's."""
    found = []
    display = ModuleType("IPython.display")
    display.HTML, display.display = str, found.append
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return found


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.slow]) for n in SMALL])
def test_a_notebook_runs(name, shown, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if name == "train_a_quadruped":
        pytest.importorskip("brax")
        monkeypatch.setattr(jax, "device_put_replicated", None, raising=False)
    namespace, before = {"__name__": "notebook"}, jax.config.jax_enable_x64
    try:
        jax.config.update("jax_enable_x64", False)
        for i, (tags, text) in enumerate(cells(name)):
            lines = [line.replace("%pip", "pass  #") for line in text.splitlines()]
            with contextlib.redirect_stdout(None):
                exec(compile("\n".join(lines), f"{name}.ipynb, cell {i}", "exec"), namespace)
            if "settings" in tags:
                assert namespace.keys() >= SMALL[name].keys()
                namespace.update(SMALL[name])
    finally:
        jax.config.update("jax_enable_x64", before)
    assert all("<iframe" in page for page in shown)
    if name in ("first_steps", "plan_a_throw", "train_a_quadruped"):
        assert shown
    if name == "gpu_or_tpu":
        assert namespace["wrong"] == [] and (tmp_path / "bench.json").is_file()
    if name == "gradients_through_contact":
        assert abs(namespace["difference"] - namespace["smooth"]).max() < 5e-3
