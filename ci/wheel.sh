#!/usr/bin/env bash
# Builds the sdist and the wheel, checks them, installs the wheel into an empty environment, and runs the gallery and a
# step there, without a clone, a C compiler or git. Needs the packages build and twine.
#
#   ci/wheel.sh [FOLDER]    # where the files go; default: dist/
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
dist=${1:-"$top/dist"}
python -m build --outdir "$dist" "$top"
python -m twine check --strict "$dist"/*

empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT
python -m venv "$empty/env"
"$empty/env/bin/pip" install --quiet "$dist"/*.whl
cd "$empty"
alone=(env -i PATH="$empty/env/bin" HOME="$empty")  # no compiler, no git, no cache
time "${alone[@]}" jaxsim demo --quiet --out demo.html
"${alone[@]}" python - <<'END'
import jax

import jaxsim
from jaxsim.envs.base import model_path

m = jaxsim.load_model(model_path("cartpole.xml"))
d = jax.jit(jaxsim.step)(m, jaxsim.make_data(m))
assert float(d.time) > 0
print(jaxsim.__file__, d.qpos)
END
