"""Time of many swing-ups of the cart-pole at once by iLQR over that of one, and of their parts over the physics.

    python ci/swing_ups.py [--problems 1000] [--starts 16] [--x64] [--parts]

The planning task of `training_examples/planning/tasks.py` from random starts. By the clock and in processor time, both
with all cores: the median and the mean of one problem over some starts, each the least of five, and all problems in one
batch, the least of three. `--parts`: processor time for each step of the dynamics in a batch, of the parts of an
iteration beside that of `step` itself: this tells physics from what is around it.
"""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

sys.path.append("training_examples/planning")
from tasks import CARTPOLE as TASK

import jaxsim
from jaxsim import optim
from jaxsim.optim import lqr

OPTIONS = optim.Ilqr(40, 1e-6)


def seconds(call: Callable[[], Any], rounds: int) -> np.ndarray:
    """Return the least seconds (2,) of some rounds: by the clock, and of the processor."""
    found = []
    for _ in range(rounds):
        begin = time.perf_counter(), time.process_time()
        jax.block_until_ready(call())
        found.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    return np.min(found, axis=0)


def compare(m: Any, starts: Any, controls: jax.Array, problems: int, alone: int) -> None:
    """Print seconds of one problem, of all, and the ratio."""
    solve = partial(optim.ilqr, m, costs=TASK.costs, options=OPTIONS, substeps=TASK.substeps)
    one, many = jaxsim.jit(lambda d, u: solve(d, controls=u)), jaxsim.jit(jax.vmap(lambda d, u: solve(d, controls=u)))
    take = lambda k: jax.tree.map(lambda x: x[k], (starts, controls))  # noqa: E731
    begin = time.perf_counter()
    jax.block_until_ready(one(*take(0)))
    found = jax.block_until_ready(many(starts, controls))
    print(f"to compile {time.perf_counter() - begin:.1f} s; iterations {np.mean(found.iterations):.1f}")
    times = np.array([seconds(partial(one, *take(k)), 5) for k in range(alone)])
    both = seconds(lambda: many(starts, controls), 3)
    print(f"mean cost {np.mean(found.cost):.4f}; median {np.median(found.cost):.4f}")
    for k, name in enumerate(("by the clock", "processor")):
        median, mean = np.median(times[:, k]), np.mean(times[:, k])
        print(
            f"{name}: one {1e3 * median:.1f} ms (mean {1e3 * mean:.1f}), {problems} at once {both[k]:.3f} s, "
            f"{both[k] / median:.0f} times the median, {both[k] / mean:.0f} times the mean"
        )


def parts(m: Any, starts: Any, controls: jax.Array) -> None:
    """Print processor time (us) of each part for each problem and step of the dynamics, of one problem and of all."""
    problem = lambda d: lqr.Problem(m, d, TASK.costs, *m.actuator_ctrlrange[0], jnp.asarray(TASK.horizon))  # noqa: E731
    take = lambda k: jax.tree.map(lambda x: x[k], (starts, controls))  # noqa: E731
    program = lqr.program_of(problem(take(0)[0]), jaxsim.step, TASK.substeps)

    def searched(d: Any, u: jax.Array) -> lqr.Search:
        return lqr.minimise(problem(d), u, OPTIONS, program)[1]

    def path_of(s: lqr.Search) -> lqr.Path:
        return lqr.Path(s.states, s.controls, s.rows, s.gaps, s.cost)

    def search_line(d: Any, s: lqr.Search) -> lqr.Path:
        first = jnp.asarray(-1)  # a count with which the first step length is enough
        laws = s.laws._replace(promised=jnp.ones(1))
        return lqr.line_search(problem(d), program, s._replace(count=first, laws=laws, ended=jnp.asarray(False)))

    functions = {
        "nothing but the call": lambda d, s: s.cost,
        "rollout": lambda d, s: jaxsim.rollout(m, d, jnp.repeat(s.controls, TASK.substeps, 0))[1]["qpos"],
        "line search": search_line,
        "expansion": lambda d, s: lqr.expansion_of(problem(d), OPTIONS, program, path_of(s), s.multipliers),
        "backward pass": lambda d, s: lqr.backward_pass(
            problem(d), OPTIONS, s.expansion, s.controls, s.gaps, s.weight
        ),
    }  # fmt: skip
    steps = TASK.horizon * TASK.substeps
    first = take(0)
    one = jaxsim.jit(searched)(*first)
    many = jaxsim.jit(jax.vmap(searched))(starts, controls)
    for name, function in functions.items():
        alone, together = jaxsim.jit(function), jaxsim.jit(jax.vmap(function))
        jax.block_until_ready((alone(first[0], one), together(starts, many)))
        a = seconds(partial(alone, first[0], one), 50)[1]
        b = seconds(partial(together, starts, many), 10)[1] / len(controls)
        print(f"{name}: one {1e6 * a / steps:.3f}, of all {1e6 * b / steps:.3f} us for a step; {a / b:.1f} times")


def main() -> None:
    """Print times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--starts", type=int, default=16)
    parser.add_argument("--x64", action="store_true")
    parser.add_argument("--parts", action="store_true")
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", args.x64)
    m = jaxsim.load_model(str(TASK.model))
    d = jaxsim.make_data(m, keyframe=TASK.keyframe)
    keys = jax.random.split(jax.random.key(0), args.problems)
    starts = jax.jit(jax.vmap(lambda k: TASK.start(k, d)))(keys)
    controls = jax.vmap(lambda k: TASK.noise * jax.random.normal(k, (TASK.horizon, m.nu)))(keys).astype(d.qpos.dtype)
    if args.parts:
        parts(m, starts, controls)
    else:
        compare(m, starts, controls, args.problems, args.starts)


if __name__ == "__main__":
    main()
