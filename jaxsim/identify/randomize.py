"""Randomised models from a fit: its parameters are drawn from their posterior, for domain randomisation."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.model import Model
from jaxsim.identify.fit import Fit
from jaxsim.identify.posterior import Posterior
from jaxsim.math.safe import Array

SIZES = ("nq", "nv", "nu", "nbody", "njnt", "ngeom", "ntendon")


def model_randomizer(fit: Fit, posterior: Posterior | None = None) -> Callable[[Model, Array], Model]:
    """Return a function `(model, rng) -> model` that draws the fitted parameters, for `envs.DomainRandomization`.

    Draws are those of `posterior`, or by default normal with the covariance of the fit, in the coordinates that were
    fitted (logarithms with `log=True`) and within their bounds. Other numbers of the model stay.

    Raises ValueError if no parameter is of the model, or if the data do not determine one.
    """
    problem = fit.problem
    if not any(p.kind == "model" for p in problem.parameters):
        raise ValueError(f"no parameter of the fit is of the model: {', '.join(fit.labels)}")
    lost = [label for label, known in zip(fit.labels, fit.identified, strict=True) if not known]
    if lost and posterior is None:
        raise ValueError(f"the data do not determine {', '.join(lost)}: give priors, or leave them out")
    logs = np.repeat([p.log for p in problem.parameters], problem.sizes)
    if posterior is None:
        size = np.where(logs, fit.values, 1.0)
        values, axes = np.linalg.eigh(fit.covariance / np.outer(size, size))
        factor, middle = jnp.asarray(axes * np.sqrt(np.maximum(values, 0))), jnp.asarray(fit.point.free)
    else:
        draws = posterior.draws.reshape(-1, len(fit.labels))
        kept = jnp.asarray(np.where(logs, np.log(np.where(logs, draws, 1.0)), draws))

    def randomize(m: Model, rng: Array) -> Model:
        other = [name for name in SIZES if getattr(m, name) != getattr(fit.m, name)]
        if other:
            raise ValueError(f"the model differs from the fitted one in {', '.join(other)}")
        if posterior is None:
            free = middle + factor @ jax.random.normal(rng, middle.shape, middle.dtype)
        else:
            free = kept[jax.random.randint(rng, (), 0, len(kept))]
        return problem.simulator.model(m, jnp.clip(free, problem.low, problem.high))

    return randomize
