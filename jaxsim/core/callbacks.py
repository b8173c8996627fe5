"""`Callbacks`: the user's laws as pure JAX functions, in place of MuJoCo's global C callbacks."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

Law = Callable[..., Any] | None


@dataclasses.dataclass(frozen=True, repr=False)
class Callbacks:
    """Laws of one model, set by `m.replace(callbacks=Callbacks(...))`; all are called while tracing and must be pure.

    They are structure: compared and hashed by the identity of the functions, so that other functions mean another
    compilation, and a model without them has no cost. Gradients pass through them. `ids` are static NumPy arrays of
    length k.

    act_dyn(m, d, ids): rates of all activations of the actuators with dyntype "user", concatenated.
    act_gain(m, d, ids), act_bias(m, d, ids): gains (k,) and biases (k,) of those with gaintype or biastype "user";
        without them a gain is 1, a bias 0. At this point `d.act_dot` is known.
    passive(m, d): a force (nv,) added to `qfrc_passive`.
    control(m, d): `d` with controls or applied forces set, before actuation; also in the inner stages of RK4.
    sensor(m, d, stage, ids): values of the user sensors of a stage, concatenated; the other sensors of that stage
        are already computed. Without it they are 0.
    contact_filter(m, d, geom1, geom2): mask of pairs of geoms (k,) that do not collide, among those that pass the
        model's own filters; explicit pairs are not filtered. The geoms are arrays of ids, possibly traced.
    sdf(m, geom, x): signed distances (..., n) of points x (..., n, 3) from the geoms (n,) of type sdf without a plugin,
        in the geoms' frames, negative inside; in place of the octrees of their meshes. The geoms may be traced ids.
    contact(m, d): `d.contact` as the constraint rows use it, after the contacts were found.
    """

    act_dyn: Law = None
    act_gain: Law = None
    act_bias: Law = None
    passive: Law = None
    control: Law = None
    sensor: Law = None
    contact_filter: Law = None
    sdf: Law = None
    contact: Law = None

    def __repr__(self) -> str:
        """Return one word for each law, different for different functions.

        The digest of a model's structure reads it.
        """
        laws = ((f.name, getattr(self, f.name)) for f in dataclasses.fields(self))
        return f"Callbacks({', '.join(f'{name}=<{id(law):#x}>' for name, law in laws if law is not None)})"

    def numbers(self, name: str, n: int, like: Any, *args: Any) -> Any:
        """Return the result of the law `name`, as n numbers of the dtype of `like`.

        Raise ValueError for another size.
        """
        value = jnp.asarray(getattr(self, name)(*args), like.dtype)
        if value.size != n:
            raise ValueError(f"the callback {name} gave {value.size} numbers, of shape {value.shape}; wanted {n}")
        return value.reshape(n)
