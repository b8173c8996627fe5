"""Fields that connect objects: parents, addresses, kinematic trees, simple bodies, sparsity, bounding volumes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jaxsim.compiler import sparsity
from jaxsim.compiler.asset.bvh import Bvh, body_bvh
from jaxsim.compiler.draft import Draft, starts, starts_or_none
from jaxsim.compiler.element.bodies import contact_bits
from jaxsim.compiler.objects import Actuator, Body, Geom, Tendon
from jaxsim.core.types import JointType, SameFrame, SleepPolicy, TrnType, WrapType
from jaxsim.mjcf.pose import IDENTITY, same_quat, same_vec
from jaxsim.mjcf.schema.values import ENUMS

_ZERO = (0.0, 0.0, 0.0)
_GEOM_WRAPS = (WrapType.SPHERE, WrapType.CYLINDER)


def _ints(values) -> np.ndarray:
    return np.array(values, np.int32)


def body_tables(draft: Draft) -> None:
    """Set parents, roots, addresses of joints, dofs and geoms, mocap ids, contact bits."""
    v, bodies = draft.values, draft.lists.body
    for body in bodies:
        parent = body.parent
        body.rootid = body.id if parent is None or parent.parent is None else parent.rootid
        body.parentid = parent.id if parent is not None else 0
    mocap = np.array([b.mocap for b in bodies])
    v["body_parentid"] = _ints([b.parentid for b in bodies])
    v["body_rootid"] = _ints([b.rootid for b in bodies])
    v["body_mocapid"] = np.where(mocap, np.cumsum(mocap) - 1, -1).astype(np.int32)
    for what, counts in (
        ("jnt", [len(b.joints) for b in bodies]),
        ("dof", [b.dofnum for b in bodies]),
        ("geom", [len(b.geoms) for b in bodies]),
    ):
        v[f"body_{what}num"], v[f"body_{what}adr"] = _ints(counts), starts_or_none(counts)
    bits = [contact_bits(b) for b in bodies]
    v["body_contype"], v["body_conaffinity"] = _ints([b[0] for b in bits]), _ints([b[1] for b in bits])
    v["body_margin"] = np.array([b[2] for b in bits])
    v["body_sameframe"] = _ints([_sameframe(b.ipos, b.iquat, None) for b in bodies])
    for kind, prefix in (("joint", "jnt"), ("geom", "geom"), ("site", "site"), ("camera", "cam"), ("light", "light")):
        v[f"{prefix}_bodyid"] = _ints([o.body.id for o in draft.lists[kind]])
    for kind in ("geom", "site"):
        frames = [_sameframe(o.pos, o.quat, (o.body.ipos, o.body.iquat)) for o in draft.lists[kind]]
        v[f"{kind}_sameframe"] = _ints(frames)
    data = [g.mesh if g.mesh is not None else g.hfield for g in draft.lists.geom]
    v["geom_dataid"] = _ints([d.id if d is not None else -1 for d in data])


def _sameframe(pos, quat, inertial) -> SameFrame:
    """Return how a frame equals its body's frame or inertial frame: in pose, in orientation only, or not at all."""
    if same_quat(quat, IDENTITY):
        return SameFrame.BODY if same_vec(pos, _ZERO) else SameFrame.BODYROT
    if inertial is not None and same_quat(quat, inertial[1]):
        return SameFrame.INERTIA if same_vec(pos, inertial[0]) else SameFrame.INERTIAROT
    return SameFrame.NONE


def joint_tables(draft: Draft) -> None:
    """Set addresses in qpos and qvel, reference positions, and dof fields."""
    v, joints = draft.values, draft.lists.joint
    nq, nv = [j.nq for j in joints], [j.nv for j in joints]
    v["jnt_qposadr"] = starts(nq)
    v["jnt_dofadr"] = starts(nv)
    qpos0, spring = [], []
    for j in joints:
        if j.type == JointType.FREE:
            rest = [*j.body.pos, *j.body.quat]
        else:
            rest = list(IDENTITY) if j.type == JointType.BALL else [j.ref]
        qpos0 += rest
        spring += rest if j.nq > 1 else [j.springref]
    v["qpos0"], v["qpos_spring"] = np.array(qpos0, np.float64), np.array(spring, np.float64)
    v["nq"], v["nv"] = len(qpos0), sum(nv)
    dof = np.repeat(np.arange(len(joints)), nv)

    def spread(get, *row: int) -> np.ndarray:
        return np.array([get(j) for j in joints], np.float64).reshape(len(joints), *row)[dof]

    v["dof_jntid"] = dof.astype(np.int32)
    v["dof_bodyid"] = _ints([j.body.id for j in joints])[dof] if joints else np.zeros(0, np.int32)
    v["dof_solref"] = spread(lambda j: j.attrs["solreffriction"], 2)
    v["dof_solimp"] = spread(lambda j: j.attrs["solimpfriction"], 5)
    for name in ("frictionloss", "armature"):
        v[f"dof_{name}"] = spread(lambda j, name=name: j.attrs[name])
    damping = spread(lambda j: j.attrs["damping"], 3)
    v["dof_damping"], v["dof_dampingpoly"] = damping[:, 0], damping[:, 1:]
    v["dof_parentid"] = _dof_parents(draft)


def _dof_parents(draft: Draft) -> np.ndarray:
    """Return the parent of each dof: the nearest dof towards the world, -1 for the first dof of a tree."""
    parents, at = [], 0
    for body in draft.lists.body:
        last = body.parent.lastdof if body.parent is not None else -1
        for _ in range(body.dofnum):
            parents.append(last)
            last = at
            at += 1
        body.lastdof = last
    return _ints(parents)


def tree_tables(draft: Draft) -> None:
    """Set kinematic trees: tree ids of bodies and dofs, and addresses and sizes of trees."""
    v = draft.values
    v["dof_treeid"] = _ints(np.cumsum(v["dof_parentid"] == -1) - 1)
    weld = v["body_weldid"]
    moving = v["body_dofnum"][weld] > 0
    adr = np.where(moving, v["body_dofadr"][weld], 0)
    v["body_treeid"] = (
        np.where(moving, v["dof_treeid"][adr], -1).astype(np.int32) if v["nv"] else np.full_like(weld, -1)
    )
    ntree = v["ntree"] = int(np.sum(v["dof_parentid"] == -1))
    trees = np.arange(ntree)
    v["tree_bodynum"] = np.bincount(v["body_treeid"][v["body_treeid"] >= 0], minlength=ntree).astype(np.int32)
    v["tree_dofnum"] = np.bincount(v["dof_treeid"], minlength=ntree).astype(np.int32)
    v["tree_bodyadr"] = _ints([np.argmax(v["body_treeid"] == t) for t in trees])
    v["tree_dofadr"] = _ints([np.argmax(v["dof_treeid"] == t) for t in trees])


def simple_tables(draft: Draft) -> None:
    """Set body_simple: 1 for bodies with a diagonal inertia matrix of their own, 2 if all their joints slide."""
    v, bodies = draft.values, draft.lists.body
    simple = np.zeros(len(bodies), np.int32)
    for b in bodies:
        parent = b.parent
        fixed = parent is not None and parent.parent is not None and parent.parent.id == 0 and parent.dofnum == 0
        rooted = b.rootid == b.id or fixed
        simple[b.id] = v["body_sameframe"][b.id] == SameFrame.BODY and rooted
    for b in bodies:
        if b.parentid > 0:
            simple[b.parentid] = 0
    for b in bodies:
        if simple[b.id] and not _simple_joints(b):
            simple[b.id] = 0
        if simple[b.id] and b.dofnum:
            simple[b.id] = 2 if all(j.type == JointType.SLIDE for j in b.joints) else 1
    for tendon in draft.lists.tendon:
        if tendon.attrs["armature"]:
            for body in _path_bodies(tendon):
                simple[body] = 0
    v["body_simple"] = simple
    v["dof_simplenum"] = sparsity.simplenum(simple, v["dof_bodyid"])


def _simple_joints(body: Body) -> bool:
    turned = False
    for j in body.joints:
        aligned = sum(abs(x) > 1e-14 for x in j.axis) == 1
        scalar = j.type in (JointType.HINGE, JointType.SLIDE)
        if turned or not same_vec(j.pos, _ZERO) or (scalar and not aligned):
            return False
        turned |= j.type in (JointType.BALL, JointType.HINGE)
    return True


def _path_bodies(tendon: Tendon) -> list[int]:
    """Return the bodies of the sites and geoms of a tendon's path."""
    return [w.obj.body.id for w in tendon.path if w.obj is not None and w.type in (WrapType.SITE, *_GEOM_WRAPS)]


def tendon_tables(draft: Draft) -> None:
    """Set paths of tendons, the sparsity pattern of their Jacobian, and the trees that they connect."""
    v, tendons = draft.values, draft.lists.tendon
    num = [len(t.path) for t in tendons]
    v["tendon_num"], v["tendon_adr"] = _ints(num), starts(num)
    path = [wrap for t in tendons for wrap in t.path]
    v["nwrap"] = len(path)
    v["wrap_type"], v["wrap_objid"] = _ints([w.type for w in path]), _ints([w.objid for w in path])
    v["wrap_prm"] = np.array([w.prm for w in path], np.float64)
    rows = [_tendon_dofs(draft, t) for t in tendons]
    v["ten_J_rownnz"] = _ints([len(r) for r in rows])
    v["ten_J_rowadr"] = starts(len(r) for r in rows)
    v["ten_J_colind"] = _ints([c for r in rows for c in r])
    v["nJten"] = len(v["ten_J_colind"])
    treenum, treeid = [], []
    for t in tendons:
        trees = list(dict.fromkeys(_path_trees(draft, t)))
        t.trees = trees
        treenum.append(len(trees))
        treeid.append([*trees, -1, -1][:2])
    v["tendon_treenum"], v["tendon_treeid"] = _ints(treenum), _ints(treeid).reshape(-1, 2)


def _tendon_dofs(draft: Draft, tendon: Tendon) -> list[int]:
    if not tendon.spatial:
        return sorted(int(draft.values["jnt_dofadr"][w.objid]) for w in tendon.path)
    dofs: set[int] = set()
    for body in _path_bodies(tendon):
        dofs.update(body_chain(draft, body))
    return sorted(dofs)


def body_chain(draft: Draft, bodyid: int) -> list[int]:
    """Return the dofs that move a body, nearest first."""
    last = draft.lists.body[bodyid].lastdof
    return sparsity.dof_chain(draft.values["dof_parentid"], last) if last >= 0 else []


def _path_trees(draft: Draft, tendon: Tendon) -> list[int]:
    trees = draft.values["body_treeid"]
    bodies = [w.obj.body.id for w in tendon.path if w.obj is not None]
    return [int(trees[b]) for b in bodies if trees[b] >= 0]


def actuator_tables(draft: Draft) -> None:
    """Set addresses of activations and histories, actuators with damping or armature, size of the moment matrix."""
    v, actuators = draft.values, draft.lists.actuator
    dims = [a.actdim for a in actuators]
    v["actuator_actadr"], v["na"] = starts_or_none(dims), sum(dims)
    samples = [a.attrs["nsample"] for a in actuators]
    v["actuator_history"] = _ints(
        [[n, ENUMS["interp"][a.attrs["interp"]]] for n, a in zip(samples, actuators, strict=True)]
    )
    v["actuator_history"] = v["actuator_history"].reshape(-1, 2)
    sizes = [2 + 2 * n if n > 0 else 0 for n in samples]
    v["actuator_historyadr"], v["nhistory"] = starts_or_none(sizes), sum(sizes)
    v["jnt_actuatorid"] = np.full(len(draft.lists.joint), -1, np.int32)
    v["tendon_actuatorid"] = np.full(len(draft.lists.tendon), -1, np.int32)
    for i, a in enumerate(actuators):
        if any(a.damping) or a.attrs["armature"]:
            joint = a.trntype in (TrnType.JOINT, TrnType.JOINTINPARENT)
            ids = v["jnt_actuatorid"] if joint else v["tendon_actuatorid"]
            ids[a.trnid[0]] = i if ids[a.trnid[0]] == -1 else -2
    v["nJmom"] = sum(_moment_size(draft, a) for a in actuators)


def _moment_size(draft: Draft, a: Actuator) -> int:
    """Return the number of dofs on which an actuator can act."""
    if a.trntype in (TrnType.JOINT, TrnType.JOINTINPARENT):
        return a.target.nv
    if a.trntype == TrnType.TENDON:
        return int(draft.values["ten_J_rownnz"][a.trnid[0]])
    if a.trntype == TrnType.BODY:
        return draft.values["nv"]
    first = set(body_chain(draft, a.target.body.id))
    second = set(body_chain(draft, draft.lists.site[a.trnid[1]].body.id)) if a.trnid[1] >= 0 else set()
    return len(first | second if a.trntype == TrnType.SLIDERCRANK else first ^ second)


def sensor_tables(draft: Draft) -> None:
    """Set addresses of sensor data and of histories."""
    v, sensors = draft.values, draft.lists.sensor
    dims = [s.dim for s in sensors]
    v["sensor_adr"], v["nsensordata"] = starts(dims), sum(dims)
    v["sensor_history"] = _ints([[s.nsample, s.interp] for s in sensors]).reshape(-1, 2)
    sizes = [2 + s.nsample * (1 + s.dim) if s.nsample > 0 else 0 for s in sensors]
    start = starts_or_none(sizes)
    v["sensor_historyadr"] = np.where(start >= 0, start + v["nhistory"], -1).astype(np.int32)
    v["nhistory"] += sum(sizes)


def sleep_tables(draft: Draft) -> None:
    """Set tree_sleep_policy.

    It is the policy of the root body, else never if actuators, flexes or tendons with forces act on the tree.
    """
    v, bodies = draft.values, draft.lists.body
    policy = np.full(v["ntree"], SleepPolicy.AUTO, np.int32)
    for body in bodies[1:]:
        word = ENUMS["sleep"][body.attrs["sleep"]]
        if word != SleepPolicy.AUTO:
            tree = v["body_treeid"][body.id]
            if tree == -1 or tree == v["body_treeid"][body.id - 1]:
                raise body.error("'sleep' is only allowed in the root body of a moving tree")
            policy[tree] = word
    awake: set[int] = set()
    for a in draft.lists.actuator:
        awake.update(_driven_trees(draft, a))
    for i, t in enumerate(draft.lists.tendon):
        passive = not any(t.floats("stiffness")) and not any(t.floats("damping")) and v["tendon_actuatorid"][i] == -1
        if len(t.trees) > 2 or (len(t.trees) == 2 and not passive):
            for tree in t.trees:
                if policy[tree] in (SleepPolicy.ALLOWED, SleepPolicy.INIT):
                    raise t.error("the tendon connects trees, one of which is allowed to sleep")
            awake.update(t.trees)
    awake.update(_flex_trees(draft))
    auto = policy == SleepPolicy.AUTO
    driven = np.isin(np.arange(v["ntree"]), list(awake))
    policy[auto & driven], policy[auto & ~driven] = SleepPolicy.AUTO_NEVER, SleepPolicy.AUTO_ALLOWED
    v["tree_sleep_policy"] = policy


def _flex_trees(draft: Draft) -> set[int]:
    """Return the trees that move a flex: they do not sleep unless their root body allows it."""
    bodies = [f.nodebody if f.interpolated else f.body for f in (obj.flex for obj in draft.lists.flex)]
    return {int(t) for b in bodies for t in np.unique(draft.values["body_treeid"][b])} - {-1}


def _driven_trees(draft: Draft, a: Actuator) -> list[int]:
    if a.trntype == TrnType.TENDON:
        return a.target.trees
    body = a.target.id if a.trntype == TrnType.BODY else a.target.body.id
    tree = int(draft.values["body_treeid"][body])
    return [tree] if tree >= 0 else []


def bvh_tables(draft: Draft) -> None:
    """Set the bounding volume hierarchies of bodies, meshes and flexes, in one set of arrays."""
    v = draft.values
    trees = [_body_tree(body) for body in draft.lists.body]
    trees += [mesh.arrays.bvh for mesh in draft.lists.mesh]
    flexes = [flex.flex.bvh for flex in draft.lists.flex]
    sizes = [len(t.depth) for t in (*trees, *flexes)]
    nbody, nmesh = len(draft.lists.body), len(draft.lists.mesh)
    adr = starts_or_none(sizes)
    v["body_bvhadr"], v["body_bvhnum"] = adr[:nbody], _ints(sizes[:nbody])
    end = nbody + nmesh
    v["mesh_bvhadr"], v["mesh_bvhnum"] = adr[nbody:end], _ints(sizes[nbody:end])
    v["flex_bvhadr"], v["flex_bvhnum"] = adr[end:], _ints(sizes[end:])
    v["nbvhstatic"], v["nbvhdynamic"] = sum(sizes[:end]) + draft.spare_bvh, sum(sizes[end:])
    v["nbvh"] = v["nbvhstatic"] + v["nbvhdynamic"]
    for name in ("aabb", "child", "nodeid", "depth"):
        moving = () if name == "aabb" else flexes
        parts = [np.asarray(getattr(t, name)) for t in (*trees, *moving)]
        parts.append(np.zeros((draft.spare_bvh, *parts[0].shape[1:]), parts[0].dtype))
        v[f"bvh_{name}"] = np.concatenate(parts)


def _body_tree(body: Body) -> Bvh:
    """Return the bounding volume hierarchy of a body, with geom ids in its leaves."""
    tree = geom_tree(body)
    nodes = body.nodes or tree_geoms(body, tree)
    return replace(tree, nodeid=_ints([-1 if g is None else g.id for g in nodes[: len(tree.depth)]]))


def tree_geoms(body: Body, tree: Bvh) -> list[Geom | None]:
    """Return the geom at each node of a body's hierarchy, None at inner nodes."""
    return [body.geoms[i] if i >= 0 else None for i in tree.nodeid]


def geom_tree(body: Body) -> Bvh:
    """Return the bounding volume hierarchy of a body's geoms; `nodeid` indexes the list of its geoms."""
    geoms = body.geoms
    return body_bvh(
        np.array([g.pos for g in geoms]).reshape(-1, 3),
        np.array([g.quat for g in geoms]).reshape(-1, 4),
        np.array([g.aabb for g in geoms]).reshape(-1, 6),
        np.array([bool(g.attrs["contype"] or g.attrs["conaffinity"]) for g in geoms], dtype=bool),
        np.arange(len(geoms)),
        body.ipos,
        body.iquat,
    )


def sparse_tables(draft: Draft) -> None:
    """Set sparsity patterns M_*, D_* and B_*, and the maps between them."""
    v = draft.values
    v.update(sparsity.dof_tables(v["dof_parentid"], v["dof_simplenum"]))
    v.update(sparsity.body_table(v["body_parentid"], np.maximum(v["body_dofadr"], 0), v["body_dofnum"]))
    if v["nv"] == 0:
        v["nB"] = v["nC"] = v["nM"] = v["nD"] = 0
