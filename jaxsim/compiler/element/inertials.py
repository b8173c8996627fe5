"""Explicit `inertial` elements for models whose bodies were attached with different compiler settings."""

from __future__ import annotations

import numpy as np

from jaxsim.compiler.compile import PASSES
from jaxsim.compiler.draft import Draft
from jaxsim.compiler.element.bodies import compile_bodies
from jaxsim.mjcf import Spec
from jaxsim.mjcf.foreign import INERTIAL, same
from jaxsim.mjcf.spec import compiler_of

_PLAIN = {"boundmass": 0.0, "boundinertia": 0.0, "balanceinertia": False, "inertiafromgeom": "auto"}


def write_inertials(spec: Spec) -> Spec:
    """Write inertias of an expanded spec as `inertial` elements where one set of settings cannot give them.

    Bodies of attached models keep the compiler settings of these models, and a file has only one set. The root's
    settings change so that they leave explicit inertias unchanged. Changes the given spec and returns it.
    """
    ours = compiler_of(spec)
    foreign = [(e, e.compiler) for e in spec.root.all() if e.compiler is not None]
    if all(same(ours[name], theirs[name]) for e, theirs in foreign if e.tag == "body" for name in INERTIAL):
        return spec
    draft = Draft(spec)
    for step in PASSES[: PASSES.index(compile_bodies) + 1]:
        step(draft)
    for body in draft.lists.body[1:]:
        if not body.geoms and not body.mass and not any(body.inertia):
            continue
        for inertial in body.inertials:
            inertial.delete()
        pos, quat = body.inertial_frame
        made = body.el.add("inertial", pos=np.array(pos), mass=body.mass, diaginertia=np.array(body.inertia))
        made.attrs["quat"] = np.array(quat)
    spec.section("compiler").attrs.update(_PLAIN)
    ours, known = compiler_of(spec), {}
    for element, theirs in foreign:
        settings = {**theirs, **{name: ours[name] for name in INERTIAL}}
        element.compiler = known.setdefault(id(theirs), settings)
    return spec
