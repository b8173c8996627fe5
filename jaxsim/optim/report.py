"""A report on gradients: whether the gradient of a rollout is misleading, and which option helps."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.data import Data
from jaxsim.core.extras import require
from jaxsim.core.model import Model
from jaxsim.math.safe import Array
from jaxsim.optim.arguments import control_limits, floats
from jaxsim.optim.contact import contacts_from_distance, smooth_impedance, straight_through
from jaxsim.optim.costs import Costs
from jaxsim.optim.lqr import Step
from jaxsim.optim.planning import trajectory_cost
from jaxsim.optim.progress import negligible
from jaxsim.optim.stiff import substepped

AGREES = 0.9  # correlation of derivatives and differences from which on a gradient is good
BETTER = 0.1  # more of it by an option, for it to be advised
NOISY = 1.0  # standard deviation of gradients in the neighbourhood, over the size of their mean
NEIGHBOURS = 16  # points at which gradients are compared
PLAIN = "plain"


@dataclass(frozen=True)
class GradientReport:
    """Result of `gradient_report`.

    `differences` (n,): change of the cost along random directions, over their length `scale`. `derivatives`: for each
    option the derivative along the same directions, and `gradients` the norm of its gradient. `noise`: standard
    deviation of gradients at points at that distance, relative to the norm of their mean. `contacts` (steps,): number
    of contacts in every step of the rollout. `line`: costs along the negative gradient at the distances `at`. `advice`:
    sentences.
    """

    scale: float
    differences: np.ndarray
    derivatives: dict[str, np.ndarray]
    gradients: dict[str, float]
    noise: float
    contacts: np.ndarray
    at: np.ndarray
    line: np.ndarray
    slope: float
    advice: tuple[str, ...]

    def agreement(self, option: str) -> float:
        """Compute the correlation, -1 to 1, of an option's derivatives with differences; zero where either is zero."""
        a, b = self.derivatives[option], self.differences
        size = np.linalg.norm(a) * np.linalg.norm(b)
        return float(a @ b / size) if size > 0 else 0.0

    def __str__(self) -> str:
        rows = [f"{'gradient':32} {'size':>10} {'agreement with differences':>28}"]
        rows += [f"{o:32} {self.gradients[o]:10.3g} {self.agreement(o):28.2f}" for o in self.derivatives]
        changes = np.flatnonzero(np.diff(self.contacts))
        rows.append(f"contacts begin or end in {len(changes)} of {len(self.contacts)} steps")
        rows.append(f"plain gradients vary by {self.noise:.2g} of their mean within {self.scale:.2g} of the controls")
        return "\n".join([*rows, *self.advice])

    def picture(self, path: str | Path) -> None:
        """Write a figure (by the suffix: svg, png): derivatives against differences, the cost along a line,
        contacts."""
        drawing = require("matplotlib.figure", "the picture needs matplotlib", "identify")
        figure = drawing.Figure(figsize=(12, 3.6), layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        for option, values in self.derivatives.items():
            left.scatter(self.differences, values, s=12, label=option)
        span = np.array([self.differences.min(), self.differences.max()])
        left.plot(span, span, "k:", linewidth=1)
        left.set(title="derivatives along directions", xlabel="difference of costs", ylabel="derivative")
        left.legend()
        middle.plot(self.at, self.line, label="cost")
        middle.plot(self.at, self.line[len(self.at) // 2] + self.slope * self.at, "--", label="as the derivative says")
        low, high = np.nanmin(self.line), np.nanmax(self.line)
        margin = 0.2 * (high - low) + 1e-12
        middle.set(title="along the negative gradient", xlabel="distance", ylim=(low - margin, high + margin))
        middle.legend()
        right.step(np.arange(len(self.contacts)), self.contacts, where="mid")
        right.set(title="contacts", xlabel="step of the plan")
        figure.savefig(path)


def gradient_report(
    m: Model,
    d: Data,
    costs: Costs,
    controls: Array,
    *,
    key: Array | None = None,
    scale: float | None = None,
    directions: int = 64,
    reach: float = 0.1,
    divisions: int = 10,
    substeps: int = 1,
    low: Any = None,
    high: Any = None,
) -> GradientReport:
    """Compare gradients of `trajectory_cost` with finite differences of the cost at these controls (n, nu).

    The derivatives should predict differences of the cost over the step size of an optimiser. Options: the plain step,
    contacts that act from `reach` (m), smooth impedance, and `divisions` sub-steps. `scale`: distance of the compared
    points, by default a tenth of the range of the controls.
    """
    controls = floats(jnp.asarray(controls))
    low, high = control_limits(m, low, high, controls[0], "gradient_report")
    if scale is None:
        wide = jnp.where(jnp.isfinite(high - low), high - low, 1.0)
        scale = float(0.1 * jnp.mean(wide))
    first, other = jax.random.split(jax.random.key(0) if key is None else key)
    steps: dict[str, Step] = {
        PLAIN: jaxsim.step,
        f"contacts from {reach:g} m": straight_through(lambda m: contacts_from_distance(m, reach)),
        "smooth impedance": straight_through(smooth_impedance),
        f"{divisions} sub-steps": substepped(divisions),
    }

    def cost_of(step: Step) -> Callable[[Array], Array]:
        return lambda u: trajectory_cost(m, d, costs, u, step=step, substeps=substeps)

    rays = _directions(first, directions, controls)
    value = cost_of(jaxsim.step)
    at_points = jaxsim.jit(lambda points: jax.lax.map(value, points))
    sides = at_points(jnp.concatenate([controls + scale * rays, controls - scale * rays]))
    differences = 0.5 * (sides[:directions] - sides[directions:]) / scale
    gradients = {name: jaxsim.jit(jax.grad(cost_of(step)))(controls) for name, step in steps.items()}
    derivatives = {name: np.asarray(jnp.tensordot(rays, g, 2)) for name, g in gradients.items()}
    points = controls + scale * jax.random.normal(other, (NEIGHBOURS, *controls.shape), controls.dtype)
    sizes = {name: float(jnp.linalg.norm(g)) for name, g in gradients.items()}
    g = gradients[PLAIN]
    unit = g / jnp.maximum(jnp.sqrt(jnp.mean(g**2)), 1e-30)
    at = np.linspace(-2, 2, 41) * scale
    line = np.asarray(at_points(controls - jnp.asarray(at)[:, None, None] * unit))
    held = jnp.repeat(controls, substeps, axis=0)
    _, out = jaxsim.jit(lambda u: jaxsim.rollout(m, d, u, outputs=lambda d: jnp.sum(d.contact.dim > 0)))(held)
    report = GradientReport(
        scale=scale,
        differences=np.asarray(differences),
        derivatives=derivatives,
        gradients=sizes,
        noise=_noise(value, points),
        contacts=np.asarray(out)[::substeps],
        at=at,
        line=line,
        slope=-float(jnp.sum(g * unit)),
        advice=(),
    )
    tiny = negligible(controls.dtype) * float(jnp.abs(value(controls)))
    return replace(report, advice=tuple(_advice(report, tiny, divisions)))


def _directions(key: Array, count: int, controls: Array) -> Array:
    """Random directions (count, n, nu), of which each moves all controls by one in the mean."""
    rays = jax.random.normal(key, (count, *controls.shape), controls.dtype)
    return rays / jnp.sqrt(jnp.mean(rays**2, axis=(1, 2), keepdims=True))


def _noise(value: Callable[[Array], Array], points: Array) -> float:
    """Standard deviation of the gradients at points, over the size of their mean."""
    samples = jaxsim.jit(lambda u: jax.lax.map(jax.grad(value), u))(points)
    mean = jnp.mean(samples, 0)
    spread = jnp.sqrt(jnp.mean(jnp.sum((samples - mean) ** 2, axis=(1, 2))))
    return float(spread / jnp.maximum(jnp.linalg.norm(mean), 1e-30))


def _advice(r: GradientReport, tiny: float, divisions: int) -> list[str]:
    """Sentences on what is wrong with the plain gradient, and what helps."""
    options = [o for o in r.derivatives if o != PLAIN]
    cure = {
        options[0]: "contacts_from_distance",
        options[1]: "smooth_impedance",
        options[2]: f"substepped({divisions})",
    }
    if r.gradients[PLAIN] <= tiny:
        if r.gradients[options[0]] > tiny:
            return [
                "The plain gradient is zero: nothing touches that the cost depends on. With contacts from a distance "
                "it is not: use straight_through(contacts_from_distance) with shoot, or plan with it first."
            ]
        return ["All gradients are zero: the cost does not depend on the controls. Start elsewhere, or sample (cem)."]
    plain = r.agreement(PLAIN)
    said = []
    if plain >= AGREES:
        said.append(f"The plain gradient tells what the cost does (agreement {plain:.2f}).")
    else:
        best = max(options, key=r.agreement)
        text = f"The plain gradient misleads at this distance (agreement {plain:.2f})."
        if r.agreement(best) > plain + BETTER:
            text += f" {cure[best]} agrees better ({r.agreement(best):.2f})."
        else:
            text += " No softened step is better: average it (smoothed), or sample (mppi, cem)."
        said.append(text)
    if r.noise > NOISY:
        said.append(
            "Gradients of neighbours differ by more than their mean: average them (smoothed), or step less far."
        )
    return said
