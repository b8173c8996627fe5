"""Learning curves of runs as one SVG: mean and spread over seeds of a column of their logs.

    python training_examples/plot_runs.py tracking --runs quadruped=runs/q0,runs/q1,runs/q2 --out curve.svg
    python training_examples/plot_runs.py speed --runs PPO=runs/p0,runs/p1 SHAC=runs/s0,runs/s1 --over processor_seconds

Runs of one label are seeds of one thing: the line is their mean, the band goes from the least to the greatest.
"""

import argparse
import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

AXES = {"steps": "million actions", "seconds": "seconds", "processor_seconds": "seconds of one core"}


def columns(folder: str | Path, names: Sequence[str], window: int = 1) -> dict[str, np.ndarray]:
    """Columns of a run's `log.csv`, as running means over `window` updates except for what only grows."""
    with open(Path(folder) / "log.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if rows and (unknown := set(names) - set(rows[0])):
        raise SystemExit(f"{folder}: no column {', '.join(unknown)}; there are {', '.join(rows[0])}")
    values = {name: np.array([float(row[name]) for row in rows]) for name in names}
    count = np.minimum(np.arange(len(rows)) + 1, window)
    return {k: v if k in AXES else np.convolve(v, np.ones(window))[: len(v)] / count for k, v in values.items()}


def plot(runs: Mapping[str, Sequence[str | Path]], name: str, out: Path, over: str = "steps", window: int = 10) -> None:
    """Write curves of the column `name` over another, a line and a band for the folders of each label."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.2), layout="constrained")
    axes = figure.subplots()
    for label, folders in runs.items():
        curves = [columns(folder, [over, name], window) for folder in folders]
        x = np.linspace(0, min(curve[over][-1] for curve in curves), 150)
        y = np.array([np.interp(x, curve[over], curve[name]) for curve in curves])
        x = x / 1e6 if over == "steps" else x
        (line,) = axes.plot(x, y.mean(0), label=label)
        axes.fill_between(x, y.min(0), y.max(0), color=line.get_color(), alpha=0.25, linewidth=0)
    axes.set(xlabel=AXES[over], ylabel=name)
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(out, metadata={"Date": None})


def main() -> None:
    """Plot as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("column", help="of log.csv, such as reward or tracking")
    parser.add_argument("--runs", nargs="+", required=True, help="label=folder,folder,...")
    parser.add_argument("--over", choices=AXES, default="steps", help="the horizontal axis (default: steps)")
    parser.add_argument("--window", type=int, default=10, help="updates of the running mean (default: 10)")
    parser.add_argument("--out", type=Path, default=Path("curve.svg"))
    args = parser.parse_args()
    runs = {}
    for run in args.runs:
        label, _, folders = run.rpartition("=")
        runs[label or folders] = folders.split(",")
    plot(runs, args.column, args.out, args.over, args.window)
    print(f"plot: {args.out}")


if __name__ == "__main__":
    main()
