"""Test by bounds on the host whether trees that begin asleep may touch an awake tree; if so, the engine decides."""

import numpy as np

from jaxsim.core.allocate import allocate
from jaxsim.core.model import Model
from jaxsim.core.types import DisableBit, GeomType, SleepPolicy
from jaxsim.engine.islands.sleep import equality_trees, starts_asleep
from jaxsim.engine.kinematics.kinematics import kinematics

_MOST_GEOMS = 4_000  # more than these are left to the engine: bounds are compared all with all


def may_touch_awake(m: Model) -> bool:
    """Return whether a tree of the policy "init" may be coupled to an awake tree at qpos0, for a host model.

    False is certain. Trees are coupled by overlapping bounding boxes of geoms, by equalities and by tendons.
    """
    if not starts_asleep(m):
        return False
    joined, equalities = np.eye(m.ntree, dtype=bool), equality_trees(m)
    tree = m.body_treeid[m.geom_bodyid]
    moving = np.flatnonzero(tree >= 0)
    unbounded = np.isin(m.geom_type[moving], (GeomType.PLANE, GeomType.HFIELD)).any()
    left_out = m.nflex or equalities.always.any() or (m.tendon_treenum > 2).any()
    if m.opt.disableflags & DisableBit.ISLAND or unbounded or left_out or len(moving) > _MOST_GEOMS:
        return True
    pairs = np.concatenate([equalities.trees, m.tendon_treeid[m.tendon_treenum == 2]])
    pairs = pairs[(pairs >= 0).all(1)]
    joined[pairs[:, 0], pairs[:, 1]] = True
    one, two = _overlaps(m, moving)
    joined[tree[one], tree[two]] = True
    joined |= joined.T
    for _ in range(int(np.ceil(np.log2(max(m.ntree, 2))))):
        joined = joined @ joined
    init = m.tree_sleep_policy == SleepPolicy.INIT
    return bool(joined[np.ix_(init, ~init)].any())


def _overlaps(m: Model, geoms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of geoms whose boxes along the world's axes overlap within the largest margin."""
    d = kinematics(m, allocate(m))
    mat = d.geom_xmat[geoms].reshape(-1, 3, 3)
    middle = d.geom_xpos[geoms] + (mat @ m.geom_aabb[geoms, :3, None])[..., 0]
    margins = np.concatenate([m.geom_margin, m.pair_margin / 2, np.atleast_1d(m.opt.o_margin) / 2, np.zeros(1)])
    half = (abs(mat) @ m.geom_aabb[geoms, 3:, None])[..., 0] + margins.max()
    near = (abs(middle[:, None] - middle[None]) <= half[:, None] + half[None]).all(-1)
    one, two = np.nonzero(near)
    return geoms[one], geoms[two]
