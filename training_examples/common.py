"""What the optimisation examples share: options, a plot, a replay, and the last word."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

MODELS = Path(__file__).resolve().parent.parent / "models"
POSE = ("time", "geom_xpos", "geom_xmat", "xpos")


def options(doc: str, x64: bool = True) -> argparse.Namespace:
    """--seed, --out and --smoke (a setting that shows that it runs, too small to reach the result)."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the plot and the replay")
    parser.add_argument("--smoke", action="store_true", help="a few iterations only: it runs, but reaches nothing")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_enable_x64", x64)
    return args


def plot(path: Path, curves: Mapping[str, Any], *, title: str, x: str, y: str, log: bool = False) -> None:
    """Lines over their index as an SVG file."""
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
    """The HTML replay of the outputs `POSE` of a rollout."""
    from jaxsim.viewer.html import save_html

    save_html(m, {name: np.asarray(x)[::every] for name, x in poses.items()}, path)
    print(f"replay: {path}")


def finish(reached: bool, words: str, smoke: bool) -> None:
    """Print the result; the exit status says whether it was reached."""
    print(f"{'reached' if reached else 'not reached'}: {words}")
    sys.exit(0 if reached or smoke else 1)


def describe(names: Sequence[str], values: Any) -> str:
    """Names and numbers as "a = 1.23, b = 4.56"."""
    return ", ".join(f"{n} = {float(v):.4g}" for n, v in zip(names, np.ravel(values), strict=True))
