"""Transfer of models and data between MuJoCo's objects and the device, by MJX's names."""

from typing import Any

import jax

from jaxsim.core.errors import UnsupportedError
from jaxsim.core.model import Model as CoreModel
from jaxsim.engine.step import initial, state
from jaxsim.io.mujoco import from_mujoco, host_model
from jaxsim.io.mujoco_data import from_mujoco_data, to_mujoco
from jaxsim.math.safe import Array
from jaxsim.mjx.arguments import takes_mjx
from jaxsim.mjx.types import Data, DataStructure, Impl, Model


def put_model(
    m: Any, device: Any = None, impl: Any = None, graph_mode: Any = None, keepalive_refs: Any = None
) -> Model:
    """Return the `Model` of a `mujoco.MjModel`, or of a `jaxsim.Model`.

    `graph_mode` and `keepalive_refs` are for MJX's other implementations. Raises UnsupportedError for features that
    jaxsim does not have, and for the implementations "warp" and "cpp".
    """
    _check_impl(impl)
    model = Model(m) if isinstance(m, CoreModel) else Model(from_mujoco(m), int(m.signature))
    return jax.device_put(model, device)


def make_data(
    m: Any,
    device: Any = None,
    impl: Any = None,
    _full_compat: bool = False,
    nconmax: int | None = None,
    naconmax: int | None = None,
    naccdmax: int | None = None,
    njmax: int | None = None,
    keepalive_refs: Any = None,
) -> Data:
    """Return the `Data` at qpos0 of a `Model` or of a `mujoco.MjModel`.

    The capacities are those of the model. MJX's capacities, and the arguments after `impl`, are for its other
    implementations.
    """
    _check_impl(impl)
    model = m.model if isinstance(m, Model) else m if isinstance(m, CoreModel) else from_mujoco(m)
    return jax.device_put(Data(initial.make_data(model), DataStructure(model)), device)


def put_data(
    m: Any,
    d: Any,
    device: Any = None,
    impl: Any = None,
    nconmax: int | None = None,
    naconmax: int | None = None,
    njmax: int | None = None,
    dummy_arg_for_batching: Any = None,
    keepalive_refs: Any = None,
) -> Data:
    """Return the `Data` of a `mujoco.MjData`: state, derived fields, contacts and constraint rows.

    The arguments after `impl` are for MJX's other implementations.
    """
    _check_impl(impl)
    model = from_mujoco(m)
    return jax.device_put(Data(from_mujoco_data(model, d), DataStructure(model)), device)


@takes_mjx
def get_data(m: Any, d: Data, keepalive_refs: Any = None) -> Any:
    """Return the `mujoco.MjData` of one world, or a list of them for a batch."""
    import mujoco

    new = mujoco.MjData  # pyright: ignore[reportAttributeAccessIssue]  # a compiled module without stubs
    result = [new(m) for _ in range(len(d.qpos))] if d.qpos.ndim > 1 else new(m)
    get_data_into(result, m, d)
    return result


@takes_mjx
def get_data_into(result: Any, m: Any, d: Data, keepalive_refs: Any = None) -> None:
    """Write one world into a `mujoco.MjData`, a batch into a list of them."""
    batch = d.qpos.ndim > 1
    if isinstance(result, list) != batch:
        raise ValueError(f"destination is a {'MjData' if batch else 'list'}, but d is {'' if batch else 'not '}batched")
    model = host_model(m)
    if d.qpos.shape[-1] != model.nq:
        raise ValueError(f"qpos has {d.qpos.shape[-1]} numbers, and the model has nq = {model.nq}")
    to_mujoco(model, d.data, result)


@takes_mjx
def get_state(m: Model, d: Data, spec: Any) -> Array:
    """Return the parts of the state that the bits of `spec` (mjtState) name, concatenated."""
    return state.get_state(m.model, d.data, int(spec))


@takes_mjx
def set_state(m: Model, d: Data, state_: Array, spec: Any) -> Data:
    """Set the parts of the state of `d` from a vector."""
    return Data(state.set_state(m.model, d.data, state_, int(spec)), d.structure)


@takes_mjx
def state_size(m: Model, spec: Any) -> int:
    """Return the size of the state with the parts of `spec`."""
    return state.state_size(m.model, int(spec))


def _check_impl(impl: Any) -> None:
    """Raise UnsupportedError for implementations other than "jax", ValueError for an unknown name."""
    name = "jax" if impl is None else Impl(getattr(impl, "value", impl)).value
    if name != "jax":
        raise UnsupportedError(f"MJX's implementation {name!r}: use impl='jax', which runs on every device")
