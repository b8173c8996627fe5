"""Report of `jaxsim info`: sizes and contents of a model, and a feature of it that is not supported."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from enum import IntEnum
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxsim
from jaxsim.core.errors import UnsupportedError, collected_warnings
from jaxsim.core.model import Model
from jaxsim.core.types import (
    BiasType,
    ConeType,
    DisableBit,
    DynType,
    EnableBit,
    EqType,
    GeomType,
    IntegratorType,
    JointType,
    SensorType,
    SolverType,
    TrnType,
)
from jaxsim.engine.collision.broad.broadphase import is_large
from jaxsim.engine.collision.broad.capacity import contact_bound
from jaxsim.engine.collision.driver import groups
from jaxsim.engine.step.forward import not_in_vectors
from jaxsim.engine.structure.geom_bounds import hull_vertices
from jaxsim.mjcf import read
from jaxsim.native.function import choices_of

SIZES = ("nbody", "nq", "nv", "nu", "na", "ngeom", "nsite", "nsensordata", "nmocap", "nmesh", "ntendon", "neq", "nkey")


def report(path: str, load: Callable[[], Model]) -> int:
    """Print the report of a model; returns the exit status, 1 when the model has an unsupported feature.

    Errors of the model itself are raised, as `load` raises them.
    """
    lines, unsupported, warned = [], None, []
    try:
        with collected_warnings() as warned:
            m = load()
        lines = describe(m)
        lines += programs(m)  # the engine raises while it is traced
    except UnsupportedError as error:
        unsupported = " ".join(str(error).split())
        lines = lines or outline(path)
    told = [("warning", str(one)) for one in warned]
    rows = [("model", path), *lines, *told, ("unsupported", unsupported or "nothing")]
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        print(f"{name:<{width}}  {text}")
    return 1 if unsupported else 0


def programs(m: Model) -> list[tuple[str, str]]:
    """Describe how the parts of a step run on this machine, in rows (label, text): native, or by XLA with the cause."""
    d = jaxsim.make_data(m)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the rows say it
        choices = choices_of(lambda: jax.jit(lambda m, d: jaxsim.step(m, d)).lower(m, d))
    ours = dict.fromkeys(c.label for c in choices if c.cause is None)
    others = dict.fromkeys(f"{c.label} ({c.cause})" for c in choices if c.cause is not None)
    rows = [("programs", f"of our own: {', '.join(ours) or 'none'}; the rest by XLA")]
    rows += [("by XLA instead", text) for text in others]
    if jax.default_backend() == "cpu":
        cause = not_in_vectors(m, d)
        rows += [("a batch", "one program of vectors of worlds" if cause is None else f"world by world: {cause}")]
    return rows


def describe(m: Model) -> list[tuple[str, str]]:
    """Describe a compiled model in rows (label, text)."""
    limited = int(np.sum(m.jnt_limited))
    kinds = [
        ("joints", _counts(_words(JointType, m.jnt_type)), f", {limited} limited" if limited else ""),
        ("geoms", _counts(_words(GeomType, m.geom_type)), _dims(m)),
        ("actuators", _counts(_actuators(m)), ""),
        ("sensors", _counts(_words(SensorType, m.sensor_type)), ""),
        ("equalities", _counts(_words(EqType, m.eq_type)), ""),
    ]
    rows = [
        ("name", m.modelname or "-"),
        ("sizes", ", ".join(f"{n} {getattr(m, n)}" for n in SIZES if getattr(m, n))),
        *((name, text + tail) for name, text, tail in kinds if text),
        ("mass", f"{float(m.body_subtreemass[0]):.4g} kg in {m.ntree} kinematic tree{'s' * (m.ntree != 1)}"),
        ("options", _options(m)),
        *_collisions(m),
        ("capacities", f"{m.max_contacts} contacts{_of_bound(m)}, {m.max_constraints} constraint rows"),
    ]
    keys = [m.id2name("key", k) or str(k) for k in range(m.nkey)]
    return rows + ([("keyframes", ", ".join(keys))] if keys else [])


def _of_bound(m: Model) -> str:
    """Text of the most contacts of all pairs, where that is more than the capacity."""
    bound = contact_bound(m)
    return f" ({bound} if all pairs of geoms touched)" if bound > m.max_contacts else ""


def outline(path: str) -> list[tuple[str, str]]:
    """Describe a model that cannot be compiled, in rows: the number of elements in its file, by tag."""
    spec = read(Path(path))
    tags = Counter(_tags(spec.root))
    return [("elements", ", ".join(f"{n} {tag}" for tag, n in sorted(tags.items())))]


def _tags(element: Any) -> Iterable[str]:
    for child in element.children:
        yield child.tag
        yield from _tags(child)


def _words(enum: type[IntEnum], values: np.ndarray) -> list[str]:
    return [enum(int(v)).name.lower() for v in values]


def _counts(words: Iterable[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in Counter(words).most_common())


def _dims(m: Model) -> str:
    """Number of geoms that can collide, and their largest contact dimension."""
    active = (m.geom_contype != 0) | (m.geom_conaffinity != 0)
    if not active.any():
        return "; none collides"
    return f"; {int(active.sum())} can collide, condim at most {int(m.geom_condim[active].max())}"


def _collisions(m: Model) -> list[tuple[str, str]]:
    """What can collide, by how it is found, and how large the hulls of meshes are."""
    if is_large(m):
        return [("collisions", "too many pairs to list: a grid finds those that are near")]
    counts = Counter()
    for group in groups(m):
        counts[group.collider.function.__name__.replace("_", " and ")] += len(group.geom)
    if not counts:
        return []
    text = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    rows = [("collisions", f"{sum(counts.values())} candidate pairs: {text}")]
    used = np.unique(m.geom_dataid[(m.geom_type == GeomType.MESH) & ((m.geom_contype | m.geom_conaffinity) != 0)])
    if len(used):
        sizes = sorted(len(hull_vertices(m, mesh)) for mesh in used)
        rows.append(("hulls", f"{len(sizes)} of {sizes[0]} to {sizes[-1]} vertices, {sum(sizes)} in all"))
    return rows


def _actuators(m: Model) -> list[str]:
    """A phrase for each actuator: its law, activation state and transmission."""
    words = []
    for trn, dyn, bias in zip(m.actuator_trntype, m.actuator_dyntype, m.actuator_biastype, strict=True):
        kind = "motor" if bias == BiasType.NONE else "servo" if bias == BiasType.AFFINE else BiasType(bias).name.lower()
        state = "" if dyn == DynType.NONE else f" with {DynType(dyn).name.lower()} state"
        words.append(f"{kind}{state} on {TrnType(trn).name.lower()}")
    return words


def _options(m: Model) -> str:
    opt = m.opt
    off = [str(b.name).lower() for b in DisableBit if opt.disableflags & b]
    on = [str(b.name).lower() for b in EnableBit if opt.enableflags & b]
    parts = [
        f"timestep {float(opt.timestep):g} s",
        IntegratorType(opt.integrator).name.lower(),
        f"{ConeType(opt.cone).name.lower()} cones",
        f"{SolverType(opt.solver).name} at most {opt.iterations} iterations",
        *(f"{name} off" for name in off),
        *(f"{name} on" for name in on),
    ]
    return ", ".join(parts)
