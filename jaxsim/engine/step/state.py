"""The state as one vector, by the bits of mjtState (`jaxsim.State`): size, reading and writing."""

import jax.numpy as jnp
import numpy as np

from jaxsim.core.allocate import reset_to_keyframe
from jaxsim.core.data import DATA_FIELDS, Data
from jaxsim.core.model import SIZES, Model
from jaxsim.core.struct import evaluate
from jaxsim.core.types import State
from jaxsim.engine.step.initial import reset_data
from jaxsim.interface.public import public
from jaxsim.math.safe import Array

FIELDS = {
    State.TIME: "time",
    State.QPOS: "qpos",
    State.QVEL: "qvel",
    State.ACT: "act",
    State.HISTORY: "history",
    State.WARMSTART: "qacc_warmstart",
    State.CTRL: "ctrl",
    State.QFRC_APPLIED: "qfrc_applied",
    State.XFRC_APPLIED: "xfrc_applied",
    State.EQ_ACTIVE: "eq_active",
    State.MOCAP_POS: "mocap_pos",
    State.MOCAP_QUAT: "mocap_quat",
    State.USERDATA: "userdata",
    State.PLUGIN: "plugin_state",
}
PLASTIC = 1 << 14  # of MuJoCo 4; models have no plastic state here


def _parts(m: Model, sig: int) -> list[tuple[str, tuple[int, ...]]]:
    """Return the names and shapes of the parts of a signature, in order."""
    if not 0 <= sig & ~PLASTIC < 1 << len(FIELDS):
        raise ValueError(f"invalid state signature {sig}: it has bits beyond those of mjtState")
    sizes, shapes = {n: getattr(m, n) for n in SIZES}, {f.name: f.shape for f in DATA_FIELDS}
    return [(name, evaluate(shapes[name], sizes)) for bit, name in FIELDS.items() if sig & bit]


def _split(m: Model, state: Array, sig: int) -> dict[str, Array]:
    parts = _parts(m, sig)
    ends = np.cumsum([int(np.prod(shape)) for _, shape in parts])
    if state.shape != (int(ends[-1]) if len(ends) else 0,):
        raise ValueError(f"a state of signature {sig} has {state_size(m, sig)} numbers, not shape {state.shape}")
    pieces = jnp.split(state, ends[:-1].tolist()) if parts else []
    return {name: piece.reshape(shape) for (name, shape), piece in zip(parts, pieces, strict=True)}


def state_size(m: Model, sig: int) -> int:
    """Return the size of a state with these parts: mj_stateSize. Raises ValueError for unknown bits."""
    return sum(int(np.prod(shape)) for _, shape in _parts(m, sig))


@public(static=("sig",))
def get_state(m: Model, d: Data, sig: int = State.INTEGRATION) -> Array:
    """Return the parts of the state named by the bits `sig`, concatenated (state_size,): mj_getState."""
    parts = [jnp.ravel(getattr(d, name)).astype(d.qpos.dtype) for name, _ in _parts(m, sig)]
    return jnp.concatenate([*parts, jnp.zeros(0, d.qpos.dtype)])


@public(static=("sig",))
def set_state(m: Model, d: Data, state: Array, sig: int = State.INTEGRATION) -> Data:
    """Set the parts of the state of `d` from a vector: mj_setState. Raises ValueError for a wrong length."""
    values = _split(m, jnp.asarray(state), sig)
    if "eq_active" in values:
        values["eq_active"] = values["eq_active"] != 0
    return d.replace(**values)


@public(static=("srcsig", "dstsig"))
def extract_state(m: Model, state: Array, srcsig: int, dstsig: int) -> Array:
    """Extract the parts `dstsig` from a state with the parts `srcsig`, which must contain them: mj_extractState."""
    if srcsig & dstsig != dstsig:
        raise ValueError(f"the signature {dstsig} is not a subset of {srcsig}")
    wanted = [name for name, _ in _parts(m, dstsig)]
    values = _split(m, jnp.asarray(state), srcsig)
    return jnp.concatenate([*(values[name].ravel() for name in wanted), jnp.zeros(0, jnp.asarray(state).dtype)])


@public(static=("sig",))
def copy_state(m: Model, src: Data, dst: Data, sig: int = State.INTEGRATION) -> Data:
    """Copy the parts of the state of `src` to `dst`: mj_copyState."""
    return dst.replace(**{name: getattr(src, name) for name, _ in _parts(m, sig)})


@public(static=("key",))
def reset_data_keyframe(m: Model, d: Data, key: int | str) -> Data:
    """Reset `d` to a keyframe given by index or name: mj_resetDataKeyframe. Raises KeyError for an unknown one."""
    return reset_to_keyframe(m, reset_data(m, d), m.keyframe(key).id)


@public(static=("k",))
def set_keyframe(m: Model, d: Data, k: int) -> Model:
    """Set keyframe `k` of `m` to the state of `d`: mj_setKeyframe."""
    values = {
        "key_time": d.time,
        "key_qpos": d.qpos,
        "key_qvel": d.qvel,
        "key_act": d.act,
        "key_mpos": d.mocap_pos.ravel(),
        "key_mquat": d.mocap_quat.ravel(),
        "key_ctrl": d.ctrl,
    }
    k = m.keyframe(k).id
    return m.replace(**{name: getattr(m, name).at[k].set(value) for name, value in values.items()})
