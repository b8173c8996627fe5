"""Numbers of a model, of data or of any PyTree of them as a dictionary of arrays by name, to save and to restore."""

from collections.abc import Mapping
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.errors import did_you_mean

T = TypeVar("T")


def to_arrays(tree: Any) -> dict[str, Any]:
    """Collect leaves by their dotted names ("qpos", "contact.dist"), without empty ones.

    `np.savez`, orbax and flax can write this dictionary; `from_arrays` reads it back.

    Args:
        tree: a `Data` or `Model`, of one world or batched, or a PyTree that holds some.
    """
    return {_name(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree) if np.size(leaf)}


def from_arrays(like: T, arrays: Mapping[str, Any]) -> T:
    """Fill `like` with the numbers of arrays from `to_arrays`, on the device and with the dtypes of `like`.

    Args:
        like: a PyTree with the structure: `jaxsim.make_data(m)`. The arrays may have more leading axes, as in a batch.
        arrays: by name; leaves without entries are not among them.

    Raises:
        ValueError: a name is missing or unknown, or a shape is another model's.
    """
    leaves, form = jax.tree_util.tree_flatten_with_path(like)
    old = {_name(path): leaf for path, leaf in leaves}
    given = {name: np.shape(arrays[name]) for name in arrays}
    for name in given:
        if name not in old:
            raise ValueError(f"there is no array {name!r}{did_you_mean(name, old)}")
    missing = [name for name, leaf in old.items() if np.size(leaf) and name not in given]
    if missing:
        raise ValueError(f"arrays are missing: {', '.join(missing)}")
    leads = {_lead(name, given[name], np.shape(old[name])) for name in given}
    if len(leads) > 1:
        raise ValueError(f"the arrays have different leading axes: {sorted(leads)}")
    lead = leads.pop() if leads else ()
    new = [
        jnp.array(arrays[name], x.dtype) if name in given else jnp.zeros((*lead, *np.shape(x)), x.dtype)
        for name, x in old.items()
    ]
    return jax.tree.unflatten(form, new)


def _lead(name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[int, ...]:
    """Leading axes that an array has before the shape of its field."""
    count = len(shape) - len(wanted)
    if count < 0 or shape[count:] != wanted:
        raise ValueError(f"{name} has shape {shape}, wanted {wanted}: are these arrays of another model?")
    return shape[:count]


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")
