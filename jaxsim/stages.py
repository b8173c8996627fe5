"""The stages of the pipeline, by MuJoCo's names: pure functions `(m, d) -> d`.

`step` and `forward` consist of them; call them one by one to compute less, or to inspect intermediate results.

```python
from jaxsim.stages import com_pos, kinematics

d = com_pos(m, kinematics(m, d))  # poses of bodies, geoms and sites, centres of mass, axes of dofs
```

Two do not return `Data`: `rne` returns a force (nv,), `update_sleep` a dictionary. Each stage is also available at the
top level, as `jaxsim.kinematics`.
"""

from jaxsim.engine.actuation.forces import fwd_actuation
from jaxsim.engine.actuation.transmission import transmission
from jaxsim.engine.collision.driver import collision
from jaxsim.engine.constraint.make import make_constraint, reference_constraint
from jaxsim.engine.constraint.solve import fwd_constraint
from jaxsim.engine.dynamics.energy import energy_pos, energy_vel
from jaxsim.engine.dynamics.inertia import crb, factor_m
from jaxsim.engine.dynamics.passive import passive
from jaxsim.engine.dynamics.rne import rne, rne_post_constraint
from jaxsim.engine.flex.kinematics import flex
from jaxsim.engine.integrate.explicit import euler
from jaxsim.engine.integrate.implicit import implicit
from jaxsim.engine.islands.sleep import update_sleep
from jaxsim.engine.kinematics.com import com_pos, com_vel
from jaxsim.engine.kinematics.kinematics import camlight, kinematics
from jaxsim.engine.sensor.stages import sensor_acc, sensor_pos, sensor_vel
from jaxsim.engine.step.forward import fwd_acceleration, fwd_position, fwd_velocity, rungekutta4
from jaxsim.engine.step.inverse_forces import compare_fwd_inv, inv_constraint
from jaxsim.engine.tendon.tendon import tendon

__all__ = [
    "camlight",
    "collision",
    "com_pos",
    "com_vel",
    "compare_fwd_inv",
    "crb",
    "energy_pos",
    "energy_vel",
    "euler",
    "factor_m",
    "flex",
    "fwd_acceleration",
    "fwd_actuation",
    "fwd_constraint",
    "fwd_position",
    "fwd_velocity",
    "implicit",
    "inv_constraint",
    "kinematics",
    "make_constraint",
    "passive",
    "reference_constraint",
    "rne",
    "rne_post_constraint",
    "rungekutta4",
    "sensor_acc",
    "sensor_pos",
    "sensor_vel",
    "tendon",
    "transmission",
    "update_sleep",
]
