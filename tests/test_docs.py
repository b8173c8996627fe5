"""All code in the documentation runs: Python blocks of a page in order, commands as far as their options go."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from jaxsim.tools.cli import make_parser
from tests.paths import DOCS, MODELS, ROOT

PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
COLUMN = 88  # characters of a line of code that the site shows without scrolling
FIRST_PAGES = (
    "index.md",
    "first_ten_minutes.md",
    "getting_started.md",
    "loading.md",
    "objects.md",
    "python_loops.md",
    "batching.md",
    "environments.md",
    "training.md",
    "viewer.md",
)
# these take more than some seconds: `pytest -m slow`
LONG = {"README.md", "batching.md", "environments.md", "gradients.md", "identification.md", "performance.md"}
LONG |= {"planning.md", "python_loops.md", "utilities.md"}


def blocks(page, language):
    """The fenced blocks of a language, each with the line where it starts."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [(text[: match.start()].count("\n") + 2, match.group(1)) for match in found]


def pages(language):
    return [
        pytest.param(page, id=page.name, marks=[pytest.mark.slow] if page.name in LONG else [])
        for page in PAGES
        if blocks(page, language)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder to run in, with the models beside it."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "models").symlink_to(MODELS)
    return folder


@pytest.mark.parametrize("page", pages("python"))
def test_python_of_the_page_runs(page, folder, monkeypatch):
    monkeypatch.chdir(folder)
    namespace = {"__name__": "docs"}
    cache = jax.config.jax_compilation_cache_dir
    try:
        with jax.enable_x64(False):
            for line, code in blocks(page, "python"):
                exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)
    finally:
        jax.config.update("jax_compilation_cache_dir", cache)  # a page may set one


@pytest.mark.parametrize("page", [p.values[0] for p in pages("sh")], ids=lambda p: p.name)
def test_commands_of_the_page_exist(page):
    parser = make_parser()
    for _, code in blocks(page, "sh"):
        for command in re.split(r"\n|&&", code.replace("\\\n", " ")):
            words = shlex.split(command, comments=True)
            if words[:1] == ["jaxsim"] and "MODEL" not in words:
                args = parser.parse_args(words[1:])
                assert "model" not in args or (ROOT / args.model).is_file(), command
            if words[:1] == ["python"] and words[1].endswith(".py"):
                assert (ROOT / words[1]).is_file(), command


def test_pages_are_in_the_site():
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in PAGES[1:]:
        name = page.relative_to(DOCS).as_posix()
        assert f": {name}\n" in listed, f"{name} is not in mkdocs.yml"


def test_pages_of_the_guide_and_the_reference_are_in_the_index_for_assistants():
    index = (DOCS / "llms.txt").read_text(encoding="utf-8")
    missing = [page.name for page in DOCS.glob("*.md") if page.name != "index.md" and f"({page.name})" not in index]
    assert not missing


@pytest.mark.parametrize("page", FIRST_PAGES)
def test_code_of_the_first_pages_fits_the_column(page):
    for language in ("python", "sh", "xml"):
        for line, code in blocks(DOCS / page, language):
            assert max(map(len, code.splitlines())) <= COLUMN, f"{page}:{line}"


def test_site_builds_without_a_warning(tmp_path):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = [ROOT / "ci" / "site.sh", tmp_path / "site"]
    built = subprocess.run(command, capture_output=True, encoding="utf-8", env={**os.environ, "PATH": path})
    assert built.returncode == 0, built.stdout + built.stderr
    assert (tmp_path / "site" / "llms.txt").is_file() and (tmp_path / "site" / "loading.md").is_file()


LINKED = [*PAGES, DOCS / "llms.txt", *ROOT.glob("[AC]*.md")]


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    """Every relative link of a page is a file, and its anchor a heading of that file."""
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        if ":" in name:
            continue
        file = page.parent / name if name else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings], target
