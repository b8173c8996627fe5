"""Contacts and distances of random poses of two geoms, here and in the oracle, and whether a disagreement is a tie.

A quarter of the poses is deep, a quarter near, a quarter far and a quarter touches: one geom is moved along the
segment between both until the oracle measures no distance. Compared are the verdict (how many contacts), the
distance and the normal of the contacts, and their positions, to 1e-6; beside them `distance` with mj_geomDistance. A
disagreement is explained if the oracle gives our answer once its search may go on (`ccd_tolerance` 1e-12), or at a pose
moved by 1e-15 to 1e-7; or, in the column `spread`, if its answers at such poses are spread as far about its first one
as ours is from it, or normals differ by what rounding leaves at depths of 1e-15 to 1e-10. Geoms that the refined search
finds to touch within 1e-6 have no distance to compare: there the oracle's search, started from a flat simplex, may give
any.
"""

import copy
import itertools

import jax
import mujoco
import numpy as np

import jaxsim
from jaxsim.engine.collision.distance import geom_distance
from jaxsim.engine.collision.driver import collision

TOLERANCE = 1e-6
BATCH_OF_FIELDS = 250
SHIFTS = np.tile(np.repeat([1e-12, 1e-15, 1e-9, 1e-7, 1e-10, 1e-8, 1e-13], 6), 10)  # of poses, to see what ties are
ANGLES = np.arange(10) * np.pi / 5
PRISM = " ".join(f"{0.3 * np.cos(t):.6f} {0.25 * np.sin(t):.6f} {z}" for z in (-0.2, 0.15) for t in ANGLES)
HEIGHTS = " ".join(f"{x:.4f}" for x in np.random.default_rng(0).uniform(0, 1, 42))
ASSETS = f"""<asset><mesh name="prism" vertex="{PRISM}"/>
  <hfield name="field" nrow="6" ncol="7" size="1 .8 .3 .1" elevation="{HEIGHTS}"/></asset>"""
GEOMS = {
    "plane": 'type="plane" size="5 5 .1"',
    "hfield": 'type="hfield" hfield="field"',
    "sphere": 'type="sphere" size=".3"',
    "capsule": 'type="capsule" size=".15 .35"',
    "ellipsoid": 'type="ellipsoid" size=".4 .2 .3"',
    "cylinder": 'type="cylinder" size=".25 .3"',
    "box": 'type="box" size=".2 .3 .4"',
    "mesh": 'type="mesh" mesh="prism"',
}
FIXED = ("plane", "hfield")
PAIRS = [p for p in itertools.combinations_with_replacement(GEOMS, 2) if p[1] not in FIXED]
FIELDS = {"dist": 1, "pos": 3, "frame": 9}


def pair_xml(kinds, margin=0.0, options=""):
    """MJCF of two geoms that collide with each other only; planes and height fields are fixed, others free."""
    geoms = [f'<geom name="{i}" {GEOMS[k]} contype="0" conaffinity="0"/>' for i, k in enumerate(kinds)]
    bodies = [g if k in FIXED else f"<body><freejoint/>{g}</body>" for g, k in zip(geoms, kinds, strict=True)]
    return f"""<mujoco><option {options}/>{ASSETS}<worldbody>{"".join(bodies)}</worldbody>
      <contact><pair geom1="0" geom2="1" margin="{margin}"/></contact></mujoco>"""


def poses(mj, n, rng):
    """Positions (n, nq): deep, near and far ones, and ones moved until the geoms touch."""
    nbody = mj.nq // 7
    quat = rng.standard_normal((n, nbody, 4))
    scale = np.repeat([0.1, 0.4, 1.2, 0.4], -(-n // 4))[:n, None, None]
    qpos = np.concatenate([scale * rng.uniform(-1, 1, (n, nbody, 3)), quat], axis=-1)
    qpos[..., 3:] /= np.linalg.norm(quat, axis=-1, keepdims=True)
    if nbody == 1:
        qpos[..., 2] += 0.3
    qpos = qpos.reshape(n, -1)
    data, fromto = mujoco.MjData(mj), np.zeros(6)
    for q in qpos[3 * (-(-n // 4)) :]:
        for _ in range(2):
            place(mj, data, q)
            mujoco.mj_geomDistance(mj, data, 0, 1, 10.0, fromto)
            q[-7:-4] -= fromto[3:] - fromto[:3]
    return qpos


def place(mj, data, q):
    data.qpos[:] = q
    mujoco.mj_kinematics(mj, data)
    mujoco.mj_comPos(mj, data)


def reference(mj, data, q):
    """Contacts of the oracle as (dist, pos, frame), the distance between the geoms and its segment."""
    place(mj, data, q)
    mujoco.mj_collision(mj, data)
    fromto = np.zeros(6)
    dist = mujoco.mj_geomDistance(mj, data, 0, 1, 1.0, fromto)
    contacts = [np.array(getattr(data.contact, f)).reshape(data.ncon, w) for f, w in FIELDS.items()]
    return data.geom_xpos.copy(), data.geom_xmat.copy(), contacts, np.array([dist, *fromto])


def gap(ours, theirs):
    """Largest differences of distance, position and normal of contacts, as sets; infinite if their numbers differ."""
    if len(ours[0]) != len(theirs[0]):
        return np.full(3, np.inf)
    if not len(ours[0]):
        return np.zeros(3)
    near = np.argmin(np.max(np.abs(ours[1][:, None] - theirs[1]), axis=-1), axis=0)
    pick = [x[near] for x in ours]
    return np.array([np.max(np.abs(a[:, :3] - b[:, :3])) for a, b in zip(pick, theirs, strict=True)])


def segment_gap(ours, theirs):
    return np.array([abs(ours[0] - theirs[0]), np.max(np.abs(ours[1:] - theirs[1:]))])


def by_rounding(bad, ours, theirs):
    """Whether contacts differ in their normals alone, which are differences of points by depth, by rounding."""
    if not np.all(bad[:2] <= TOLERANCE):
        return False
    depth = min(np.abs(x[0]).min(initial=1) for x in (ours, theirs))
    return bad[2] * depth <= np.finfo(float).eps


def among(ours, moved):
    """Which of our contacts are among others, to the tolerance."""
    gaps = [np.abs(a[:, None, :3] - b[:, :3]).max(axis=2) for a, b in zip(ours, moved, strict=True)]
    return np.any(np.max(gaps, axis=0) <= TOLERANCE, axis=1)


def explanation(answer, q, rng, ours, theirs, shifts=SHIFTS):
    """Why contacts differ: the oracle, `answer(q)`, has "ours" at poses next to `q`, or a "spread" as wide; or None.

    Prisms and tilted searches are searched one by one, so each contact may be found at a pose of its own. Where the
    numbers of contacts differ, one pose must have all of them, and as many as ours is a spread.
    """
    wanted, spread, seen = gap(ours, theirs), 0, np.zeros(len(ours[0]), bool)
    for shift in shifts:
        moved = answer(q + shift * rng.standard_normal(len(q)))
        if np.all(gap(ours, moved) <= TOLERANCE):
            return "ours"
        if np.isinf(wanted[0]):
            spread = np.maximum(spread, np.where(np.isfinite(gap(ours, moved)), wanted, 0))
            continue
        seen |= among(ours, moved)
        if seen.all():
            return "ours"
        away = gap(moved, theirs)
        spread = np.maximum(spread, np.where(np.isinf(away), 0, away))
    return "spread" if np.all((spread >= wanted) | (wanted <= TOLERANCE)) else None


def distance_is_tie(answer, q, rng, ours, theirs):
    """Whether the oracle's distance at a pose next to `q` is ours, or as far from `theirs`."""
    moved = np.array([answer(q + shift * rng.standard_normal(len(q))) for shift in SHIFTS])
    return np.any(abs(moved - ours) <= TOLERANCE) or np.max(abs(moved - theirs)) >= abs(ours - theirs)


FINE = {"ccd_tolerance": 1e-12, "ccd_iterations": 500}  # options of a search that goes on to the end


def refined(mj):
    """The model with a convex search that goes on until rounding ends it, and its data."""
    fine = copy.deepcopy(mj)
    for name, value in FINE.items():
        setattr(fine.opt, name, value)
    return fine, mujoco.MjData(fine)


def check(kinds, n, seed=0, margin=0.0, options=""):
    """Counts of one pair: poses, contacts, disagreements and those of them that are no ties; and their poses."""
    rng = np.random.default_rng(seed)
    mj = mujoco.MjModel.from_xml_string(pair_xml(kinds, margin, options))
    m = jaxsim.from_mujoco(mj, max_contacts=50 if "hfield" in kinds else 8)
    d, data = jaxsim.make_data(m), mujoco.MjData(mj)
    fine = refined(mj)
    qpos = poses(mj, n, rng)
    found = [reference(mj, data, q) for q in qpos]

    def run(pos, mat):
        at = d.replace(geom_xpos=pos, geom_xmat=mat)
        con = collision(m, at)
        return con.ncon, con.contact.dist, con.contact.pos, con.contact.frame, geom_distance(m, at, 0, 1, 1.0)

    batch = BATCH_OF_FIELDS if "hfield" in kinds else n
    pos, mat = [np.array([f[i] for f in found]) for i in (0, 1)]
    run = jax.jit(jax.vmap(run))
    parts = [run(pos[i : i + batch], mat[i : i + batch]) for i in range(0, n, batch)]
    ncon, *places, (dist, fromto) = jax.tree.map(lambda *x: np.concatenate(x), *parts)
    places = [np.asarray(p).reshape(n, p.shape[1], -1) for p in places]
    measured = np.concatenate([np.asarray(dist)[:, None], np.asarray(fromto)], axis=1)
    out = dict(contacts=int(np.sum(ncon)), verdict=0, value=0, distance=0, spread=[], unexplained=[])
    for i, (_, _, theirs, segment) in enumerate(found):
        ours = [p[i, : int(ncon[i])] for p in places]
        bad = gap(ours, theirs)
        out["verdict"] += np.isinf(bad[0])
        if not np.all(bad <= TOLERANCE):
            out["value"] += np.isfinite(bad[0])
            why = "ours" if np.all(gap(ours, reference(*fine, qpos[i])[2]) <= TOLERANCE) else None
            why = why or ("spread" if by_rounding(bad, ours, theirs) else None)
            why = why or explanation(lambda q: reference(mj, data, q)[2], qpos[i], rng, ours, theirs)
            out["spread"] += [(i, "contact", bad)] if why == "spread" else []
            if not why:
                out["unexplained"].append((i, "contact", bad))
        bad = segment_gap(measured[i], segment)
        if bad[0] > TOLERANCE:
            out["distance"] += 1
            exact = reference(*fine, qpos[i])[3]
            better = segment_gap(measured[i], exact)[0] <= TOLERANCE or abs(exact[0]) <= TOLERANCE
            if not better and not distance_is_tie(
                lambda q: reference(mj, data, q)[3][0], qpos[i], rng, measured[i][0], segment[0]
            ):
                out["unexplained"].append((i, "distance", bad))
    return out, qpos, measured, places, found
