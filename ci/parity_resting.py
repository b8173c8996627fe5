"""Compare contacts of flat faces that rest on each other with MuJoCo: a line per pair and setting.

    python ci/parity_resting.py [--poses N] [--seed S] [--verbose]

Two shapes with flat faces stand on each other, turned about the vertical at random. Some lie on a side, and most are
tilted by 1e-6 to 3e-2 rad. Settings are `multiccd` on and off, and margins 0 and 0.01. The number of contacts is
compared, and distances, normals and positions as sets, to 1e-6. A difference is explained where it is a tie by the test
of `validation/contacts.py`, with poses moved by 1e-15 to 1e-9.
"""

import argparse
import itertools
import sys
from functools import partial

import jax
import mujoco
import numpy as np

import jaxsim
from jaxsim.engine.collision.driver import collision
from validation.contacts import FIELDS, PRISM, TOLERANCE, explanation, gap, place

SHAPES = {
    "box": 'type="box" size=".2 .3 .4"',
    "cylinder": 'type="cylinder" size=".25 .3"',
    "prism": 'type="mesh" mesh="prism"',
    "wedge": 'type="mesh" mesh="wedge"',
}
WEDGE = "-.3 -.2 -.2 .3 -.2 -.2 -.3 .2 -.2 .3 .2 -.2 -.3 0 .2 .3 0 .2"
PAIRS = list(itertools.combinations_with_replacement(SHAPES, 2))
SHIFTS = np.tile(np.repeat([1e-15, 1e-12, 1e-9], 12), 20)
SIDES = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0.5, 0.5, 0.5, 0.5], [0.5, 0.5, -0.5, 0.5]])


def scene_xml(multiccd, margin):
    """MJCF of all pairs, each far from the others."""
    bodies, pairs = "", ""
    for i, kinds in enumerate(PAIRS):
        for side, kind in enumerate(kinds):
            geom = f'<geom name="{i}.{side}" {SHAPES[kind]} contype="0" conaffinity="0"/>'
            bodies += f"<body><freejoint/>{geom}</body>"
        pairs += f'<pair geom1="{i}.0" geom2="{i}.1" margin="{margin}"/>'
    flag = "enable" if multiccd else "disable"
    return f"""<mujoco><option><flag multiccd="{flag}"/></option>
      <asset><mesh name="prism" vertex="{PRISM}"/><mesh name="wedge" vertex="{WEDGE}"/></asset>
      <worldbody>{bodies}</worldbody><contact>{pairs}</contact></mujoco>"""


def product(a, b):
    """Products (n, 4) of quaternions."""
    w, x, y, z = a.T
    m = np.array([[w, -x, -y, -z], [x, w, -z, y], [y, z, w, -x], [z, -y, x, w]])
    return np.einsum("ijn,nj->ni", m, b)


def poses(mj, n, rng):
    """Positions (n, nq): the second of each pair stands on the first, with a small gap or penetration."""
    qpos = np.zeros((n, mj.nq // 14, 2, 7))
    count = n * qpos.shape[1] * 2
    yaw = rng.uniform(0, 2 * np.pi, count)
    quat = np.stack([np.cos(yaw / 2), 0 * yaw, 0 * yaw, np.sin(yaw / 2)], axis=1)
    angle = 10 ** rng.uniform(-6, -1.5, (count, 1)) * (rng.random((count, 1)) < 0.6)
    tilt = np.concatenate([np.ones((count, 1)), angle * rng.standard_normal((count, 2)), np.zeros((count, 1))], axis=1)
    quat = product(product(quat, tilt), SIDES[rng.choice(4, count, p=[0.4, 0.2, 0.2, 0.2])])
    qpos[..., 3:] = (quat / np.linalg.norm(quat, axis=1, keepdims=True)).reshape(*qpos.shape[:3], 4)
    qpos[..., 0] = 10 * np.arange(qpos.shape[1])[:, None]
    qpos[..., :2] += rng.uniform(-0.2, 0.2, (*qpos.shape[:3], 2))
    depth = rng.uniform(-0.01, 0.03, qpos.shape[:2])
    mat = np.zeros(9)
    for pose, deep in zip(qpos, depth, strict=True):
        for i, (one, two) in enumerate(pose):
            reach = []
            for side, q in enumerate((one, two)):
                mujoco.mju_quat2Mat(mat, q[3:])
                reach.append(extent(mj, 2 * i + side, mat[6:9] * (1 if side == 0 else -1)))
            two[2] = sum(reach) - deep[i]
    return qpos.reshape(n, -1)


def extent(mj, geom, direction):
    """Support function of a geom along a direction in its body's frame."""
    size, mat = mj.geom_size[geom], np.zeros(9)
    mujoco.mju_quat2Mat(mat, mj.geom_quat[geom])
    return mj.geom_pos[geom] @ direction + support(mj, geom, size, direction @ mat.reshape(3, 3))


def support(mj, geom, size, direction):
    """Support function of a geom along a direction in its own frame."""
    if mj.geom_type[geom] == mujoco.mjtGeom.mjGEOM_BOX:
        return abs(direction) @ size
    if mj.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CYLINDER:
        return size[0] * np.hypot(*direction[:2]) + size[1] * abs(direction[2])
    mesh = mj.geom_dataid[geom]
    vert = mj.mesh_vert[mj.mesh_vertadr[mesh] : mj.mesh_vertadr[mesh] + mj.mesh_vertnum[mesh]]
    return (vert @ direction).max()


def mujoco_contacts(mj, data, q):
    """Contacts of MuJoCo, a list of (dist, pos, frame) for each pair, and the poses of the geoms."""
    place(mj, data, q)
    mujoco.mj_collision(mj, data)
    owner = data.contact.geom[:, 0] // 2 if data.ncon else np.zeros(0, int)
    every = [np.array(getattr(data.contact, f)).reshape(data.ncon, w) for f, w in FIELDS.items()]
    return [[x[owner == i] for x in every] for i in range(len(PAIRS))], data.geom_xpos.copy(), data.geom_xmat.copy()


def contacts_of(mj, data, pair, q):
    """Contacts of MuJoCo of one pair."""
    return mujoco_contacts(mj, data, q)[0][pair]


def compare(multiccd, margin, run, qpos, verbose):
    """Print a line per pair for one setting; returns the number of differences that are no ties."""
    mj = mujoco.MjModel.from_xml_string(scene_xml(multiccd, margin))
    m, data = jaxsim.from_mujoco(mj, max_contacts=8 * len(PAIRS)), mujoco.MjData(mj)
    found = [mujoco_contacts(mj, data, q) for q in qpos]
    ncon, owner, *values = run(m, *[np.array([f[i] for f in found]) for i in (1, 2)])
    rng, unexplained = np.random.default_rng(0), 0
    for pair, kinds in enumerate(PAIRS):
        count = np.zeros(4, int)  # numbers and values that differ; ties by spread alone; no ties
        for k, (theirs, *_) in enumerate(found):
            mine = (owner[k] // 2 == pair) & (np.arange(owner.shape[1]) < ncon[k])
            ours = [p[k][mine].reshape(mine.sum(), w) for p, w in zip(values, FIELDS.values(), strict=True)]
            bad = gap(ours, theirs[pair])
            if np.all(bad <= TOLERANCE):
                continue
            kind = int(np.isfinite(bad[0]))
            recompute = partial(contacts_of, mj, data, pair)
            why = explanation(recompute, qpos[k], rng, ours, theirs[pair], SHIFTS)
            count[kind] += 1
            count[2] += why == "spread"
            count[3] += why is None
            if verbose and why is None:
                print(f"    pose {k}: {len(ours[0])} and {len(theirs[pair][0])} contacts, differ by {bad}")
        setting = f"{'-'.join(kinds):18}{'several' if multiccd else 'single':9}{margin:6}"
        print(setting + "".join(f"{x:9}" for x in (sum(len(f[0][pair][0]) for f in found), *count)), flush=True)
        unexplained += count[3]
    return unexplained


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--poses", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def run(m, pos, mat):
        def one(pos, mat):
            d = collision(m, jaxsim.make_data(m).replace(geom_xpos=pos, geom_xmat=mat))
            return d.ncon, d.contact.geom[:, 0], d.contact.dist, d.contact.pos, d.contact.frame

        return jax.vmap(one)(pos, mat)

    heads = ("contacts", "number", "value", "spread", "no tie")
    print(f"{'pair':18}{'multiccd':9}{'margin':>6}" + "".join(f"{x:>9}" for x in heads))
    qpos = poses(mujoco.MjModel.from_xml_string(scene_xml(True, 0)), args.poses, np.random.default_rng(args.seed))
    settings = itertools.product((True, False), (0.0, 0.01))
    return sum(compare(*s, lambda *a: map(np.asarray, run(*a)), qpos, args.verbose) for s in settings) > 0


if __name__ == "__main__":
    sys.exit(main())
