"""HTML report of a fit: values, intervals, warnings, measured and simulated signals, residuals. Needs matplotlib."""

import html
import io
from pathlib import Path
from typing import Any

import numpy as np

from jaxsim.core.extras import require
from jaxsim.identify.data import Recordings
from jaxsim.identify.fit import UNTESTED, Fit

STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:64em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse}td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left}.warn{background:#fff3cd;padding:.5em 1em}svg{width:100%;height:auto}"""


def save_report(fit: Fit, data: Recordings, path: str | Path, title: str = "Identification") -> None:
    """Write a fit as one self-contained HTML page.

    Raises ImportError, which names the extra to install, when matplotlib is missing.
    """
    Path(path).write_text(render(fit, data, title), encoding="utf-8")


def render(fit: Fit, data: Recordings, title: str = "Identification") -> str:
    """Write the HTML text of the page."""
    rows = "".join(
        f"<tr><td>{html.escape(label)}</td><td>{start:.5g}</td><td>{v:.6g}</td><td>{_deviation(s)}</td>"
        f"<td>{fit.interval_text(i)}</td></tr>"
        for i, (label, start, v, s) in enumerate(zip(fit.labels, fit.starts[0], fit.values, fit.std, strict=True))
    )
    warnings = "".join(f'<p class="warn">{html.escape(line)}</p>' for line in fit.unidentifiable)
    best = int(np.nanargmin(fit.cost[:, -1]))
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>
<style>{STYLE}</style>
<h1>{html.escape(title)}</h1>{warnings}
<p>{len(fit.residual)} of {data.measured.shape[0]} trajectories of {data.measured.shape[1]} steps,
{len(fit.labels)} parameters, {len(fit.starts)} starts (best: {best}). The standard deviation of the residuals is
{fit.noise:.3g} times the noise that was given. The fit {"converged" if fit.converged else "<b>did not converge</b>"}
({fit.iterations} iterations). Cost {fit.cost[best, 0]:.4g} before, {fit.cost[best, -1]:.4g} after.</p>
<table><tr><th>parameter</th><th>start</th><th>value</th><th>std</th><th>95 % interval</th></tr>{rows}</table>
{_validation(fit)}
<h2>Cost</h2>{_cost(fit)}<h2>Measured and simulated</h2>{_signals(fit, data)}<h2>Residuals</h2>{_residuals(fit, data)}
</html>"""


def _validation(fit: Fit) -> str:
    """Table of predictions of held-out records, nominal and fitted, over horizons."""
    v = fit.validation
    if v is None:
        return f"<h2>Held-out records</h2><p>{UNTESTED}</p>"
    head = "".join(f"<th>nominal, {h:.3g} s</th><th>fitted, {h:.3g} s</th>" for h in v.horizons)
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{v.noise[i]:.3g}</td>"
        + "".join(f"<td>{a:.4g}</td><td>{b:.4g}</td>" for a, b in zip(v.nominal[:, i], v.fitted[:, i], strict=True))
        + "</tr>"
        for i, name in enumerate(v.names)
    )
    return (
        "<h2>Held-out records</h2><p>Root mean squares of predicted less measured values over the first seconds of "
        f"windows that begin in measured states.</p><table><tr><th>sensor</th><th>noise</th>{head}</tr>{rows}</table>"
    )


def _deviation(std: float) -> str:
    return f"{std:.2g}" if np.isfinite(std) else "-"


def _figure(rows: int, height: float = 2.0) -> Any:
    figure = require("matplotlib.figure", "reports need matplotlib", "identify")
    return figure.Figure(figsize=(10, height * rows), layout="constrained")


def _svg(figure: Any) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def _channels(data: Recordings) -> list[str]:
    """A label for each column of the measurements: the sensor's name, or all names where a sensor has several."""
    dims = data.measured.shape[-1]
    return [", ".join(data.names)] * dims if len(data.names) != dims else list(data.names)


def _cost(fit: Fit) -> str:
    figure = _figure(1, 2.5)
    axes = figure.subplots()
    axes.semilogy(fit.cost.T, lw=1)
    axes.set(xlabel="iteration", ylabel="cost")
    return _svg(figure)


def _signals(fit: Fit, data: Recordings) -> str:
    count = data.measured.shape[-1]
    figure = _figure(count)
    for i, axes in enumerate(figure.subplots(count, 1, squeeze=False)[:, 0]):
        axes.plot(data.measured[0, :, i], ".", ms=2, color="0.6", label="measured")
        axes.plot(fit.simulated[0, :, i], lw=1, label="simulated")
        axes.set_ylabel(_channels(data)[i], fontsize=8)
    axes.legend(fontsize=8)
    return _svg(figure)


def _residuals(fit: Fit, data: Recordings) -> str:
    count = data.measured.shape[-1]
    figure = _figure(count)
    for i, (left, right) in enumerate(figure.subplots(count, 2, squeeze=False, width_ratios=(3, 1))):
        r = fit.residual[..., i]
        left.plot(r.T, lw=0.5)
        left.set_ylabel(_channels(data)[i], fontsize=8)
        right.hist(r[np.isfinite(r)], bins=30, density=True)
    return _svg(figure)
