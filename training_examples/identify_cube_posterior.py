"""Sample the posterior of a real cube's contact, friction, inertia and mass centre by NUTS, from first impacts.

The data are the tosses of `identify_cube.py` (`--data`), and the model is the one it wrote. Each window begins one row
before the first impact, at the state that the whole flight gives. One pose seven rows later is its measurement, so that
errors are independent. Their size is estimated with the fit.
An impact that moves to another time step must not change the cost by a jump: the impedance of contacts begins at zero,
and time steps are half as long as the fit's. The residuals stay the same.
Expected: R-hat below 1.02 for each parameter, four chains.
"""

import argparse
import dataclasses
import time
from pathlib import Path

import identify_cube as cube
import numpy as np
from common import describe, finish, options

import jaxsim
from jaxsim import identify, optim

SUBSTEPS, BEFORE, ROWS = 8, 1, 8


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, default=Path("cube_tosses.npz"), help="the tosses, .npz")
    parser.add_argument("--windows", type=int, default=24)
    parser.add_argument("--draws", type=int, default=120, help="of each chain")


def main():
    args = options(__doc__, x64=False, add=add_options)
    tosses = cube.read(args.data)
    order = np.random.default_rng(args.seed).permutation(len(tosses))[: int(0.75 * len(tosses))]  # those fitted
    impacts = (cube.impact(tosses[i], BEFORE, ROWS) for i in order)
    parts = np.array([part for part in impacts if part is not None][: 4 if args.smoke else args.windows])

    m = jaxsim.load_model(Path(__file__).with_name("cube_fitted.xml"))
    m = optim.smooth_impedance(m.replace(opt=m.opt.replace(timestep=1 / cube.RATE / SUBSTEPS)))
    measured = np.full((len(parts), (ROWS - 1) * SUBSTEPS + 1, 7), np.nan)
    measured[:, -1] = parts[:, -1, :7]
    records = identify.recordings(
        m, np.zeros((*measured.shape[:2], 0)), {"pos": measured[..., :3], "quat": measured[..., 3:]},
        sigma=cube.SIGMA, qpos=parts[:, 0, :7], qvel=parts[:, 0, 7:],
    )  # fmt: skip
    corners = [f"corner{i}" for i in range(8)]
    spheres = corners + [f"face{i}" for i in range(6)]
    shortest = 2.02 * float(m.opt.timestep)

    def number(label: str, *entries, **limits) -> identify.Parameter:
        one = identify.parameter(m, *entries, log=True, tie=True, **limits)
        return dataclasses.replace(one, labels=(label,))

    parameters = [
        number("friction of corners", "geom_friction", corners, 0),
        number("timeconst", "geom_solref", spheres, 0, low=shortest, high=0.1),
        number("dampratio", "geom_solref", spheres, 1),
        number("inertia", "body_inertia", "cube"),
        identify.parameter(m, "body_ipos", "cube"),
    ]
    began = time.process_time(), time.perf_counter()
    effort = {"iterations": 1, "starts": 1} if args.smoke else {"iterations": 8, "starts": 8}
    fit = identify.identify(m, records, parameters, horizons=(), noise="estimated", held_out=None, **effort)
    print(fit, "standard deviations of the noise:", fit.sigma, sep="\n")
    few = {"draws": 4, "warmup": 4, "depth": 2} if args.smoke else {"draws": args.draws, "warmup": 40, "depth": 4}
    found = identify.posterior(fit, seed=args.seed, progress=True, **few)
    print(found)
    print(
        f"{time.process_time() - began[0]:.0f} s of processor time, {time.perf_counter() - began[1]:.0f} s by the clock"
    )
    np.savez(args.out / "cube_posterior.npz", draws=found.draws, labels=np.array(found.labels))
    finish(bool(found.rhat.max() < 1.02), describe(["R-hat"], [found.rhat.max()]), args.smoke)


if __name__ == "__main__":
    main()
