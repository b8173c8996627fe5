"""What a machine with a TPU has to show, in pieces, each of which can be repeated alone.

    python ci/tpu.py                          all pieces
    python ci/tpu.py step grad                these alone
    python ci/tpu.py step:humanoid            of a piece, one model
    python ci/tpu.py --list

Install first: `pip install -e '.[dev]' 'jax[tpu]'`, in the TPU's virtual machine or a notebook with a TPU. Pieces of
each model, in single precision: `parity` (accelerations against MuJoCo's), `step` and `grad` (times of a step and of
its gradient, and of each operation; whether two runs are equal bit by bit), and `bench` (`jaxsim bench` beside MJX).
The process of a piece holds the TPU, so only one runs at a time. Results go to `tpu.json`, as those of `ci/gpu.py`:
a repeated piece replaces its old result, and the exit status is the number of pieces that failed. Begin with
`python ci/tpu.py parity:humanoid`: nothing of jaxsim has run on a TPU yet. Without one everything runs on the CPU, and
the table says so; `--small` makes it seconds.
"""

import sys

from gpu import Platform, main

ROBOTS = ("humanoid", "quadruped", "hand", "mesh_gripper")
MODELS = {
    "parity": (*ROBOTS, "quadruped_rough", "arm_hulls"),
    "step": (*ROBOTS, "quadruped_rough", "arm_hulls"),
    "grad": ("humanoid", "quadruped"),
    "bench": ROBOTS,
}

if __name__ == "__main__":
    sys.exit(main(Platform("tpu", __file__, MODELS, (), 1024, "mjx", "XLA Ops"), __doc__))
