#!/usr/bin/env bash
# Runs the tests of `from_mujoco`, `to_mujoco`, `from_mujoco_data` and `jaxsim.mjx` with a newer MuJoCo, in an environment
# of its own.
#
#   ci/newer_mujoco.sh [VERSION]    # of MuJoCo; default: 4.0.0
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
python -m venv "$home/env"
"$home/env/bin/pip" install --quiet "$top" "mujoco==${1:-4.0.0}" pytest chex
cd "$top"
"$home/env/bin/python" -m pytest tests/io/test_mujoco_data.py tests/io/test_newer_installed.py tests/mjx
