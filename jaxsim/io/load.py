"""`load_model` and `save_mjcf`: a model from a file, a text or a spec, and MJCF text of a spec or a model."""

from __future__ import annotations

import os
from typing import Any

import jax
import numpy as np

from jaxsim.compiler.compile import compile_spec
from jaxsim.compiler.element.inertials import write_inertials
from jaxsim.core.errors import ModelError, UnsupportedError, summarised_warnings
from jaxsim.core.make_model import to_device
from jaxsim.core.model import FLOATS, Model
from jaxsim.core.types import SleepPolicy
from jaxsim.engine.collision.broad.capacity import warn_of_estimate
from jaxsim.engine.islands.asleep_at_start import may_touch_awake
from jaxsim.engine.step.initial import make_data
from jaxsim.engine.structure.refusals import warn_of_substitutes
from jaxsim.io.archive import is_archive, read_archive
from jaxsim.io.mujoco import from_mujoco
from jaxsim.io.newer import warn_of_changes
from jaxsim.mjcf import Element, Spec, expand, read
from jaxsim.mjcf import save_mjcf as write
from jaxsim.mjcf.keyframes import extend
from jaxsim.mjcf.writer import is_flat

_POSES = ("qpos", "mpos", "mquat")


def load_model(
    source: str | os.PathLike | Spec | Any,
    max_contacts: int | None = None,
    max_constraints: int | None = None,
    assets: dict[str, bytes] | None = None,
) -> Model:
    """Load and compile a model from a path, a text (MJCF or URDF), a `Spec`, or a file that `save_model` wrote.

    Args:
        source: a path, the XML text itself, or a `jaxsim.mjcf.Spec`; where MuJoCo is installed, also a
            `mujoco.MjModel`, or a `mujoco.MjSpec`, which MuJoCo compiles.
        max_contacts: capacity of the contact buffer; by default the most that all pairs can make where that is
            affordable, otherwise an estimate that ordinary use does not exceed.
        max_constraints: capacity of the packed constraint rows; by default as many as there can be.
        assets: contents of files by name, looked up before the file system; for paths and texts.

    Raises:
        ModelError: the model is invalid; the message names the file, line and element, and the correction if known.
        UnsupportedError: the model uses a feature that jaxsim does not have; the message names it.
        FileNotFoundError: there is no such file.

    Warns:
        ModelWarning: something is probably a mistake, or another method is used: solver="PGS" gives Newton's answer.
            One for each kind, with a count, and once in a process for each file; `jaxsim info` lists all.
        CapacityWarning: the default for `max_contacts` is an estimate and more than two trees move, once in a process
            for each estimate.
    """
    if type(source).__module__.partition(".")[0] == "mujoco":
        return from_mujoco(_compiled(source), max_contacts, max_constraints)
    if not isinstance(source, str | os.PathLike | Spec):
        raise TypeError(f"load_model: source is of type {type(source).__name__}, wanted a path, a text or a Spec")
    if not isinstance(source, Spec) and is_archive(source):
        m = _restored(read_archive(source), max_contacts, max_constraints)
    else:
        with summarised_warnings():
            spec = source if isinstance(source, Spec) else read(source, assets)
            host = compile_spec(spec, max_contacts, max_constraints)
        m = to_device(host)
        warn_of_changes(host)
        if may_touch_awake(host):
            _check_asleep(m, spec)
        m.structure.remember(spec.copy())
        if max_contacts is None:
            warn_of_estimate(host)
    warn_of_substitutes(m)
    return m


def _compiled(source: Any) -> Any:
    """`mujoco.MjModel` of an MjModel or an MjSpec."""
    kind = type(source).__name__
    if kind not in ("MjModel", "MjSpec"):
        raise TypeError(
            f"load_model: source is a mujoco.{kind}, wanted a path, a text, a Spec, an MjModel or an MjSpec"
        )
    return source.compile() if kind == "MjSpec" else source


def _check_asleep(m: Model, spec: Spec) -> None:
    """Raise ModelError where a tree has the policy sleep="init" and touches one that is awake."""
    init = m.tree_sleep_policy == SleepPolicy.INIT
    awake = np.flatnonzero(init & (np.asarray(make_data(m).tree_asleep) < 0))
    if len(awake):
        body = _body_element(m, spec, int(m.tree_bodyadr[awake[0]]))
        raise ModelError(
            f"its policy is sleep='init', and it cannot be asleep at the start, since it touches a tree that is awake "
            f"({len(awake)} of {init.sum()} such trees); move them apart, or let both sleep",
            body.source if body else None,
            body.label() if body else "body",
        )


def _body_element(m: Model, spec: Spec, body: int) -> Element | None:
    """The element that a body was made of: by its name, else by its place among all bodies."""
    found = [e for e in expand(spec).elements("body") if e.tag == "body"]
    name = m.id2name("body", body)
    named = [e for e in found if name and e.name == name]
    if named:
        return named[0]
    return found[body - 1] if len(found) == m.nbody - 1 else None


def save_mjcf(source: Spec | Model, path: str | os.PathLike | None = None, flat: bool = False) -> str:
    """Return the MJCF text of a spec, or of a model loaded from one; write it to `path` if given.

    The text is canonical, keeps default classes and macros, and compiles to the same model. File names are rewritten
    for the folder of `path`. With `flat`, macros are expanded, actuators are `general`, and every element lists all of
    its attributes; specs with models that were attached in Python are always written so.

    Raises:
        UnsupportedError: the model did not come from MJCF or URDF, or its numbers were changed after it was compiled,
            which a spec does not contain. Change the spec instead, or use `save_model`. Or `flat` is set and MJCF has
            no such form: `fitaabb` that differs among geoms fitted to meshes, plugins of attached flexcomps with pins.
    """
    if isinstance(source, Spec):
        return write(_complete(source, flat), path)
    if not isinstance(source, Model):
        raise TypeError(f"save_mjcf: source is of type {type(source).__name__}, wanted a Spec or a jaxsim.Model")
    spec = source.structure.source
    if spec is None:
        raise UnsupportedError("this model has no spec to save; use save_model, or save the Spec itself")
    changed = _changes(source, compile_spec(spec))
    if changed:
        raise UnsupportedError(f"changed since the model was compiled: {', '.join(changed)}; change the Spec instead")
    return write(_complete(spec, flat), path)


def _complete(spec: Spec, flat: bool) -> Spec:
    """Spec to be written: where it is flat, expanded and with complete keyframes, as compiled.

    Keyframes of copied and attached models have NaN where they do not set a value.
    """
    if spec.defaults is not None or not (flat or is_flat(spec)):
        return spec
    out = expand(spec)
    extend(out)
    out = write_inertials(out)
    keys = list(out.elements("key"))
    if any(np.any(np.isnan(e.attrs.get(name, 0.0))) for e in keys for name in _POSES):
        m = compile_spec(spec)
        for key, element in enumerate(keys):
            for name in _POSES:
                if np.any(np.isnan(element.attrs.get(name, 0.0))):
                    element.attrs[name] = np.asarray(getattr(m, f"key_{name}")[key]).ravel()
    return out


def _changes(m: Model, original: Model) -> list[str]:
    """Names of the numbers of a model that differ from those it was compiled with, in the model's precision."""
    leaves, before = (jax.tree_util.tree_flatten_with_path((x.opt, x.stat, _numbers(x)))[0] for x in (m, original))
    names = []
    for (path, now), (_, old) in zip(leaves, before, strict=True):
        now = np.asarray(now)
        same = now.shape == np.shape(old) and np.array_equal(now, np.asarray(old, now.dtype), equal_nan=True)
        names += [] if same else [str(getattr(path[-1], "key", getattr(path[-1], "name", path[-1])))]
    return names


def _numbers(m: Model) -> dict:
    return {name: getattr(m, name) for name in FLOATS}


def _restored(m: Model, max_contacts: int | None, max_constraints: int | None) -> Model:
    """Saved model on the device, with other capacities where they are given."""
    given = {"max_contacts": max_contacts, "max_constraints": max_constraints}
    changes = {name: value for name, value in given.items() if value is not None}
    return to_device(m.replace(**changes) if changes else m)
