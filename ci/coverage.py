"""Count how often 95 % intervals of `jaxsim.identify` hold the truth, in fits to made-up data.

    python ci/coverage.py [CASE ...] [--repeats 200] [--seed 0]

Exits with 1 where a share lies outside 90 to 98 %.
"""

import argparse
import sys
import time

import jax

jax.config.update("jax_enable_x64", True)

from validation.coverage import CASES, coverage  # noqa: E402

ASKED = (0.90, 0.98)


def main() -> int:
    """Print a line for each parameter; return the exit status."""
    parser = argparse.ArgumentParser(description="Coverage of the intervals of fits")
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    outside = 0
    for name in args.cases:
        began = time.process_time()
        found = coverage(CASES[name](), args.repeats, seed=args.seed)
        for i, label in enumerate(found.labels):
            share, z = found.share[i], found.scores[:, i]
            outside += not ASKED[0] <= share <= ASKED[1]
            print(
                f"{name:6s} {label:32s} {100 * share:5.1f} %   error over std: mean {z.mean():+.2f}, std {z.std():.2f}"
            )
        spent = time.process_time() - began
        print(f"{name:6s} {args.repeats} repeats, converged {100 * found.converged:.0f} %, {spent:.0f} s (processor)")
    return int(outside > 0)


if __name__ == "__main__":
    sys.exit(main())
