"""Mutated files: whatever is done to a real file, it is read or refused with a ModelError, in bounded time."""

import copy
import random
import re
import time
import warnings

import pytest
from lxml import etree

from jaxsim.compiler import compile_spec
from jaxsim.core.errors import ModelError, UnsupportedError
from jaxsim.mjcf import expand, read, save_mjcf
from jaxsim.mjcf.schema.element_type import all_types
from tests.compiler.cases import CASES

TEXTS = [text for text in CASES.values() if len(text) < 4000]
WORDS = sorted({kind.tag for kind in all_types()} | {name for kind in all_types() for name in kind.attributes})
VALUES = (
    *(
        "",
        " ",
        "0",
        "-1",
        "1e308",
        "-1e308",
        "1e-320",
        "nan",
        "inf",
        "-inf",
        "2147483648",
        "99999999999999999999",
        "0x10",
    ),
    *("1 2 3", "0 0 0", "1 0 0 0", "nan nan nan", "true", "auto", "a" * 300, "../../etc/passwd", "/dev/zero", "x/../y"),
    *("&#0;", "\u2028", "world", "main", "0 " * 500, "1e", "--1", "+", ".", "none", "exact", "free", "mesh", "sdf"),
)
SECONDS = 20.0  # far above what any of them takes, below what a hang takes


def mutate(text: str, rng: random.Random, most: int = 4) -> str:
    """One to `most` changes to a document, by element, attribute or character."""
    for _ in range(rng.randint(1, most)):
        if rng.random() < 0.15:
            text = _damage(text, rng)
            continue
        try:
            root = etree.fromstring(text)
        except (etree.XMLSyntaxError, ValueError):
            return text
        _CHANGES[rng.randrange(len(_CHANGES))](list(root.iter(etree.Element)), rng)
        text = etree.tostring(root, encoding="unicode")
    return text


def _damage(text: str, rng: random.Random) -> str:
    at, length = rng.randrange(len(text) + 1), rng.choice((0, 1, 5, 50))
    return (
        text[:at]
        + rng.choice(("", "<", "&", "<!-- ", '"', "\0", "<!DOCTYPE a>", "]]>", "\ud7ff"))
        + text[at + length :]
    )


def _set(nodes, rng):
    node = rng.choice(nodes)
    name = rng.choice(sorted(node.attrib) or WORDS)
    _write(node, name, rng.choice(VALUES))


def _write(node, name, value):
    try:
        node.set(name, value)
    except ValueError:  # characters that XML cannot hold
        node.set(name, "")


def _add(nodes, rng):
    _write(rng.choice(nodes), rng.choice(WORDS), rng.choice(VALUES))


def _nudge(nodes, rng):
    node = rng.choice(nodes)
    for name, value in node.attrib.items():
        if re.search(r"\d", value) and rng.random() < 0.5:
            _write(node, name, re.sub(r"\d", lambda _: rng.choice("0123456789"), value, count=2))


def _drop(nodes, rng):
    node = rng.choice(nodes)
    if node.getparent() is not None:
        node.getparent().remove(node)


def _forget(nodes, rng):
    node = rng.choice(nodes)
    if node.attrib:
        del node.attrib[rng.choice(sorted(node.attrib))]


def _copy(nodes, rng):
    source, target = rng.choice(nodes), rng.choice(nodes)
    target.append(copy.deepcopy(source))


def _rename(nodes, rng):
    rng.choice(nodes).tag = rng.choice(WORDS)


def _wrap(nodes, rng):
    node = rng.choice(nodes)
    if node.getparent() is not None:
        place = node.getparent()
        outer = etree.SubElement(place, rng.choice(("frame", "body", "replicate", "default")), count="2")
        outer.append(node)


_CHANGES = (_set, _set, _add, _nudge, _drop, _forget, _copy, _rename, _wrap)


def survive(seed: int, compile_too: bool, most: int = 4) -> str:
    """Read, expand and save one mutated file; the outcome."""
    rng = random.Random(seed)
    text = mutate(rng.choice(TEXTS), rng, most)
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spec = read(text)
            save_mjcf(spec)
            if compile_too:
                compile_spec(spec)
            else:
                expand(spec)
        outcome = "read"
    except (ModelError, UnsupportedError) as error:
        outcome = type(error).__name__
        assert re.match(r"XML(:\d+)?: \S", str(error)), f"seed {seed} is refused without a place: {error}"
    except FileNotFoundError:
        assert not text.lstrip().startswith("<"), f"seed {seed} was taken for a path"
        outcome = "path"
    except Exception as error:
        raise AssertionError(f"seed {seed}: {error!r}\n{text}") from error
    assert time.perf_counter() - start < SECONDS, f"seed {seed} took too long"
    return outcome


def test_mutated_files_are_read_or_refused():
    outcomes = [survive(seed, False) for seed in range(600)]
    assert min(outcomes.count("read"), outcomes.count("ModelError")) > 60


def test_mutated_files_are_compiled_or_refused():
    outcomes = [survive(seed, True, most=1) for seed in range(10_000, 10_040)]
    assert min(outcomes.count("read"), outcomes.count("ModelError")) > 10


@pytest.mark.slow
def test_a_hundred_thousand_mutated_files():
    for seed in range(20_000, 120_000):
        survive(seed, seed % 100 == 0)
