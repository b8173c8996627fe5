"""MuJoCo's support functions, by its names: Jacobians, products with M, forces, velocities, positions, histories.

All are pure functions of a model and its data that return what MuJoCo writes into arrays. They work under `jit`,
`vmap` and differentiation. Each reads the results of the same stages as MuJoCo's function: after `forward` all work
except `object_acceleration`, which needs `jaxsim.stages.rne_post_constraint`.

```python
from jaxsim import support

jacp, jacr = support.jac_body(m, d, m.name2id("body", "chest"))
```

Ids of bodies, geoms, sites and contacts may be numbers or traced; those of `object_velocity`, `object_acceleration`,
`geom_distance` and of histories are static. Each function is also available at the top level, as `jaxsim.jac`.
"""

from jaxsim.engine.collision.distance import geom_distance
from jaxsim.engine.constants.totalmass import get_totalmass, set_totalmass
from jaxsim.engine.dynamics.inertia import full_m, mul_m, mul_m2, solve_m, solve_m2
from jaxsim.engine.dynamics.rne import contact_force
from jaxsim.engine.kinematics.contact_jacobian import mul_jac_t_vec, mul_jac_vec
from jaxsim.engine.kinematics.jacobian import (
    angmom_mat,
    apply_ft,
    jac,
    jac_body,
    jac_body_com,
    jac_dot,
    jac_geom,
    jac_point_axis,
    jac_site,
    jac_subtree_com,
)
from jaxsim.engine.kinematics.objects import local2global, object_acceleration, object_velocity
from jaxsim.engine.kinematics.positions import differentiate_pos, integrate_pos, normalize_quat
from jaxsim.engine.structure.history import init_ctrl_history, init_sensor_history, read_ctrl, read_sensor

__all__ = [
    "angmom_mat",
    "apply_ft",
    "contact_force",
    "differentiate_pos",
    "full_m",
    "geom_distance",
    "get_totalmass",
    "init_ctrl_history",
    "init_sensor_history",
    "integrate_pos",
    "jac",
    "jac_body",
    "jac_body_com",
    "jac_dot",
    "jac_geom",
    "jac_point_axis",
    "jac_site",
    "jac_subtree_com",
    "local2global",
    "mul_jac_t_vec",
    "mul_jac_vec",
    "mul_m",
    "mul_m2",
    "normalize_quat",
    "object_acceleration",
    "object_velocity",
    "read_ctrl",
    "read_sensor",
    "set_totalmass",
    "solve_m",
    "solve_m2",
]
