"""Learning curves of runs as one SVG: mean and spread over seeds of a column of their logs.

    python training_examples/plot_runs.py tracking --runs quadruped=runs/q0,runs/q1,runs/q2 --out curve.svg

Runs of one label are seeds of one thing: the line is their mean, the band goes from the least to the greatest.
"""

import argparse
import csv
from pathlib import Path

import numpy as np


def column(folder: str, name: str, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Actions and a running mean over `window` updates of a column of `log.csv`."""
    with open(Path(folder) / "log.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    values = np.array([float(r[name]) for r in rows])
    mean = np.convolve(values, np.ones(window), "full")[: len(values)] / np.minimum(np.arange(len(values)) + 1, window)
    return np.array([float(r["steps"]) for r in rows]), mean


def main() -> None:
    """Plot as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("column", help="of log.csv, such as reward or tracking")
    parser.add_argument("--runs", nargs="+", required=True, help="label=folder,folder,...")
    parser.add_argument("--window", type=int, default=10, help="updates of the running mean (default: 10)")
    parser.add_argument("--label", help="of the vertical axis; the column's name by default")
    parser.add_argument("--out", type=Path, default=Path("curve.svg"))
    args = parser.parse_args()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for run in args.runs:
        label, _, folders = run.rpartition("=")
        curves = [column(folder, args.column, args.window) for folder in folders.split(",")]
        length = min(len(x) for x, _ in curves)
        x, y = curves[0][0][:length] / 1e6, np.array([y[:length] for _, y in curves])
        (line,) = axes.plot(x, y.mean(0), label=label or folders)
        axes.fill_between(x, y.min(0), y.max(0), color=line.get_color(), alpha=0.25, linewidth=0)
    axes.set(xlabel="million actions", ylabel=args.label or args.column)
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(args.out)
    print(f"plot: {args.out}")


if __name__ == "__main__":
    main()
