"""Make a `Model` of mjModel's fields by name, on the host, and move it to the device."""

import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxsim.core.callbacks import Callbacks
from jaxsim.core.frames import near_frames
from jaxsim.core.model import MODEL_FIELDS, SIZES, Model
from jaxsim.core.option import FLUID_OPTIONS, OPTION_FLOATS, OPTION_INTS, STATISTICS, Option, Statistic
from jaxsim.core.struct import evaluate
from jaxsim.core.structure import Structure
from jaxsim.core.types import EqType
from jaxsim.core.visual import make_visual


def make_model(
    values: Mapping[str, Any],
    opt: Mapping[str, Any],
    stat: Mapping[str, Any],
    vis: Mapping[tuple[str, str], Any],
    modelname: str = "",
) -> Model:
    """Assemble a host `Model` (NumPy, float64 leaves) from mjModel's fields by name.

    `values` holds every size and array of mjModel; shapes are checked against the table. `to_device` returns the model
    for users. Raises ValueError naming a field that is missing or has the wrong shape.
    """
    sizes = {name: int(values[name]) for name in SIZES}
    static: dict[str, Any] = dict(sizes)
    floats = {}
    for name, kind, symbolic, _, _, dtype in MODEL_FIELDS:
        shape = evaluate(symbolic, sizes)
        if name not in values:
            raise ValueError(f"mjModel field {name} is missing")
        if kind == "bytes":
            static[name] = bytes(values[name])
            if (len(static[name]),) != shape:
                raise ValueError(f"mjModel field {name} has {len(static[name])} bytes; its shape is {shape}")
            continue
        array = np.array(values[name], dtype=dtype or np.float64).reshape(-1)
        if array.size != math.prod(shape):
            raise ValueError(f"mjModel field {name} has {array.size} numbers; its shape is {shape}")
        (floats if kind == "float" else static)[name] = array.reshape(shape)
    static["vis"] = make_visual(vis)
    static["modelname"] = modelname
    static["callbacks"] = Callbacks()
    static["eq_strain"] = strain_modes({**static, **floats})
    static["near_frames"] = near_frames({**static, **floats})
    static["max_contacts"], static["max_constraints"] = 0, 0  # default_capacities sets them
    opt = {"fluid": any(opt[n] != 0 for n in FLUID_OPTIONS), "backend": 0, **opt}
    options: dict[str, Any] = {n: np.asarray(opt[n], dtype=np.float64) for n in OPTION_FLOATS}
    options |= {n: int(opt[n]) for n in OPTION_INTS}
    statistics: dict[str, Any] = {n: np.asarray(stat[n], dtype=np.float64) for n in STATISTICS}
    return Model(Structure(static), opt=Option(**options), stat=Statistic(**statistics), **floats)


def strain_modes(values: Mapping[str, Any]) -> np.ndarray:
    """Return for each equality (neq, 2) on the strain of a flex the element of its lattice, and its number of modes.

    MuJoCo stores both among the numbers; here they shape the program. `values` are fields of a model by name, of which
    numbers may be batched: the first world counts.
    """
    out = np.zeros((values["neq"], 2), np.int32)
    for i in np.flatnonzero(values["eq_type"] == EqType.FLEXSTRAIN):
        f, data = values["eq_obj1id"][i], np.reshape(values["eq_data"], (-1, values["neq"], 11))
        cell = data[0, i, :3].astype(int)
        order, first = int(values["flex_interp"][f]), values["flex_stiffnessadr"][f]
        if not order:
            continue
        count = values["flex_cellnum"][f]
        out[i, 0] = cell[0] if order < 0 else (cell[0] * count[1] + cell[1]) * count[2] + cell[2]
        size = 9 * (abs(order) + 1) ** (4 if order < 0 else 6)
        at = first + out[i, 0] * size
        if first >= 0 and 0 <= at < values["nflexstiffness"]:
            out[i, 1] = int(np.reshape(values["flex_stiffness"], (-1, values["nflexstiffness"]))[0, at])
    return out


def to_device(m: Model) -> Model:
    """Return a host model with its leaves as JAX arrays of the default float type (float32, or float64 under x64)."""
    dtype = jax.dtypes.canonicalize_dtype(np.float64)
    return jax.device_put(jax.tree.map(lambda x: np.asarray(x, dtype=dtype), m))
