"""Shared parts of the optimisation examples: command-line options, plot, replay, result line."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

MODELS = Path(__file__).resolve().parent.parent / "models"
POSE = ("time", "geom_xpos", "geom_xmat", "xpos", "site_xpos", "site_xmat")


def options(
    doc: str, x64: bool = True, add: Callable[[argparse.ArgumentParser], None] | None = None
) -> argparse.Namespace:
    """Arguments --seed, --out and --smoke of an example and those that `add` adds, after setting JAX's precision."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the plot and the replay")
    parser.add_argument("--smoke", action="store_true", help="a few iterations, too few to reach the result")
    if add is not None:
        add(parser)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_enable_x64", x64)
    return args


def plot(path: Path, curves: Mapping[str, Any], *, title: str, x: str, y: str, log: bool = False) -> None:
    """Write an SVG file with a line for each curve, over its index."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for label, values in curves.items():
        axes.plot(np.asarray(values), label=label)
    axes.set(title=title, xlabel=x, ylabel=y, yscale="log" if log else "linear")
    axes.legend()
    figure.savefig(path)
    print(f"plot: {path}")


def replay(m: Any, poses: Mapping[str, Any], path: Path, every: int = 1) -> None:
    """Write an HTML replay of the outputs `POSE` of a rollout."""
    from jaxsim.viewer.html import save_html

    save_html(m, {name: np.asarray(x)[::every] for name, x in poses.items()}, path)
    print(f"replay: {path}")


def finish(reached: bool, result: str, smoke: bool) -> None:
    """Print the result and exit, with status 1 where it was not reached unless `smoke` is set."""
    print(f"{'reached' if reached else 'not reached'}: {result}")
    sys.exit(0 if reached or smoke else 1)


def describe(names: Sequence[str], values: Any) -> str:
    """Names and numbers as text, such as "a = 1.23, b = 4.56"."""
    return ", ".join(f"{n} = {float(v):.4g}" for n, v in zip(names, np.ravel(values), strict=True))
