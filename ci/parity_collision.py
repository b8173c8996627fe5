"""Compare contacts and distances with MuJoCo at random poses of every pair of geom types: a line per pair.

    python ci/parity_collision.py [--poses N] [--seed S] [--margin M] [PAIR ...]          (PAIR: box-cylinder, ...)

`validation/contacts.py` defines what is compared, and which differences are explained by ties.
"""

import argparse
import sys
import time

import jax

from validation.contacts import PAIRS, check


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*")
    parser.add_argument("--poses", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--margin", type=float, default=0.0)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(
        f"{'pair':22}{'contacts':>10}{'verdict':>9}{'value':>7}{'distance':>9}{'spread':>8}{'no tie':>8}{'seconds':>9}"
    )
    total = 0
    for kinds in PAIRS:
        name = "-".join(kinds)
        if args.pairs and name not in args.pairs:
            continue
        start = time.time()
        out, *_ = check(kinds, args.poses, args.seed, args.margin)
        counts = f"{out['contacts']:10}{out['verdict']:9}{out['value']:7}{out['distance']:9}{len(out['spread']):8}"
        counts += f"{len(out['unexplained']):8}"
        print(f"{name:22}{counts}{time.time() - start:9.1f}", flush=True)
        total += len(out["unexplained"])
        if args.verbose:
            for i, what, bad in out["unexplained"][:10]:
                print(f"    pose {i}: {what} differs by {bad}")
    return total > 0


if __name__ == "__main__":
    sys.exit(main())
