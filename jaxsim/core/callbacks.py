"""`Callbacks`: laws that the user hands in as pure JAX functions, where MuJoCo has global C callbacks."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

Law = Callable[..., Any] | None


@dataclasses.dataclass(frozen=True, repr=False)
class Callbacks:
    """Laws of one model, set by `m.replace(callbacks=Callbacks(...))`; all are called while tracing, so must be pure.

    They are structure: compared and hashed by the identity of the functions, so that other functions mean another
    compilation, and a model without them pays nothing. Gradients pass through them. `ids` are static numpy arrays, k
    the number of them.

    act_dyn(m, d, ids): rates of all activations of the actuators with dyntype "user", one after the other.
    act_gain(m, d, ids), act_bias(m, d, ids): gains (k,) and biases (k,) of those with gaintype or biastype "user";
        without them a gain is 1, a bias 0. At this point `d.act_dot` is known.
    passive(m, d): a force (nv,) added to `qfrc_passive`.
    control(m, d): `d` with controls or applied forces set, before actuation; also in the inner stages of RK4.
    sensor(m, d, stage, ids): values of the user sensors of a stage, one after the other; the other sensors of that
        stage have been read. Without it they are 0.
    contact_filter(m, d, geom1, geom2): which pairs of geoms (k,) not to let collide, among those that the model's own
        masks let through; explicit pairs are never asked about. The geoms are arrays of ids, possibly traced.
    sdf(m, geom, x): signed distances (..., n) of points x (..., n, 3) from the geoms (n,) of type sdf without a plugin,
        in the geoms' frames, negative inside; in place of the octrees of their meshes. The geoms may be traced ids.
    contact(m, d): `d.contact` as the constraint rows shall see it, after the contacts were found.
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
        """One word for each law, different for different functions: the digest of a model's structure reads it."""
        laws = ((f.name, getattr(self, f.name)) for f in dataclasses.fields(self))
        return f"Callbacks({', '.join(f'{name}=<{id(law):#x}>' for name, law in laws if law is not None)})"

    def numbers(self, name: str, n: int, like: Any, *args: Any) -> Any:
        """Result of the law `name`, as n numbers of the dtype of `like`; raises ValueError for another size."""
        value = jnp.asarray(getattr(self, name)(*args), like.dtype)
        if value.size != n:
            raise ValueError(f"the callback {name} gave {value.size} numbers, of shape {value.shape}; {n} are wanted")
        return value.reshape(n)
