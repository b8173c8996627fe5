"""Sleep: trees at rest fall asleep island by island, and wake by contact with awake trees or by changes of their state.

`d.tree_asleep` (ntree,) is the state: negative for a tree that is awake, -(1 + MINAWAKE) when it moves, increasing to
-1 while it rests; for a sleeping tree the next tree of its island, in a cycle. A sleeping tree keeps its qpos, bit by
bit, and a zero qvel. The program has a fixed shape, so it computes sleeping trees too and masks the result: sleep stops
motion but saves no time. Sleep is compiled into the program only with the enable flag "sleep".
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.data import Data
from jaxsim.core.layout import Layout
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import (
    MINAWAKE,
    CamLightType,
    ConstraintType,
    DisableBit,
    EnableBit,
    EqType,
    ObjType,
    SensorType,
    SleepPolicy,
)
from jaxsim.core.types import TrnType as Trn
from jaxsim.engine.islands.island import tree_labels
from jaxsim.engine.tendon.tendon import jacobian_pattern
from jaxsim.interface.public import public
from jaxsim.math.arrays import take
from jaxsim.math.safe import Array

AWAKE = -(1 + MINAWAKE)
# fields of which sleeping trees keep their entries; all others follow from the state
FORCES = ("qfrc_spring", "qfrc_passive", "qfrc_smooth", "qacc_smooth")
KEPT = ("xpos", "xquat", "act_dot", "actuator_length", "sensordata", *FORCES)
VIEWS = {"cam": ("cam_xpos", "cam_xmat"), "light": ("light_xpos", "light_xdir")}
SAME_POSE = 64  # units in the last place by which poses of two programs may differ


def sleeps(m: Model) -> bool:
    """Return whether the model's program includes sleep."""
    return bool(m.opt.enableflags & EnableBit.SLEEP) and m.ntree > 0


def kept_names(m: Model) -> tuple[str, ...]:
    """Return the names of the fields of which sleeping trees keep entries."""
    return (*KEPT, *(name for kind, fields in VIEWS.items() if _views(m, kind)[1].any() for name in fields))


class ObjectTrees(NamedTuple):
    """The trees (k, 2) of objects, -1 for none, and whether an object always counts as awake. Static."""

    trees: np.ndarray
    always: np.ndarray


def _awake(of: ObjectTrees, asleep: Array) -> Array:
    """Return the mask of awake objects (k,): neither asleep nor static."""
    awake = jnp.concatenate([asleep < 0, jnp.zeros(1, bool)])
    return awake[np.where(of.trees < 0, len(asleep), of.trees)].any(1) | of.always


@per_structure
def _bodies(m) -> ObjectTrees:
    """Return bodies by their trees; mocap bodies and their descendants are awake."""
    trees = np.stack([m.body_treeid, np.full(m.nbody, -1)], axis=1)
    return ObjectTrees(trees, (m.body_treeid < 0) & (m.body_mocapid[m.body_rootid] >= 0))


@per_structure
def _views(m, kind: str) -> tuple[ObjectTrees, np.ndarray]:
    """Return cameras or lights by the trees of their bodies and targets, and which follow a centre of mass."""
    bodies = np.stack([getattr(m, f"{kind}_bodyid"), getattr(m, f"{kind}_targetbodyid")], axis=1)
    trees, always = _bodies(m)
    there = np.maximum(bodies, 0)
    of = ObjectTrees(np.where(bodies < 0, -1, trees[there, 0]), ((bodies >= 0) & always[there]).any(1))
    return of, np.isin(getattr(m, f"{kind}_mode"), (CamLightType.TRACKCOM, CamLightType.TARGETBODYCOM))


@per_structure
def _tendons(m) -> ObjectTrees:
    """Return tendons by their trees; tendons of more than two trees are always awake."""
    present = np.arange(2) < m.tendon_treenum[:, None]
    return ObjectTrees(np.where(present, m.tendon_treeid, -1), m.tendon_treenum > 2)


BODY_OF: dict[int, str] = {
    ObjType.JOINT: "jnt_bodyid",
    ObjType.SITE: "site_bodyid",
    ObjType.DOF: "dof_bodyid",
    ObjType.GEOM: "geom_bodyid",
    ObjType.CAMERA: "cam_bodyid",
    ObjType.LIGHT: "light_bodyid",
}


def _object(m: Any, kind: int, index: int) -> tuple[list[int], bool]:
    """Return the trees of one object, and whether it always counts as awake."""
    if kind in (ObjType.BODY, ObjType.XBODY):
        of, at = _bodies(m), index
    elif kind in BODY_OF:
        of, at = _bodies(m), getattr(m, BODY_OF[kind])[index]
    elif kind == ObjType.TENDON:
        of, at = _tendons(m), index
    elif kind == ObjType.ACTUATOR:
        of, at = _actuators(m), index
    else:
        return [-1, -1], True
    return of.trees[at].tolist(), bool(of.always[at])


@per_structure
def _actuators(m) -> ObjectTrees:
    """Return actuators by the trees of their targets."""
    kind = {Trn.JOINT: ObjType.JOINT, Trn.JOINTINPARENT: ObjType.JOINT, Trn.TENDON: ObjType.TENDON}
    kind |= {Trn.SITE: ObjType.SITE, Trn.SLIDERCRANK: ObjType.SITE, Trn.BODY: ObjType.BODY}
    trees, always = np.full((m.nu, 2), -1), np.zeros(m.nu, bool)
    for i in range(m.nu):
        trees[i], always[i] = _object(m, kind.get(m.actuator_trntype[i], ObjType.UNKNOWN), m.actuator_trnid[i, 0])
        if m.actuator_trntype[i] == Trn.SLIDERCRANK:
            other, also = _object(m, ObjType.SITE, m.actuator_trnid[i, 1])
            trees[i, 1], always[i] = other[0], always[i] or also
    return ObjectTrees(trees, always)


@per_structure
def _sensors(m) -> ObjectTrees:
    """Return sensors by the trees of their objects and reference objects: (nsensor, 4)."""
    trees, always = np.full((m.nsensor, 4), -1), np.zeros(m.nsensor, bool)
    for i in range(m.nsensor):
        kinds = (m.sensor_objtype[i], m.sensor_reftype[i])
        known = [k != ObjType.UNKNOWN for k in kinds]
        site = m.sensor_type[i] == SensorType.CONTACT and ObjType.SITE in kinds
        live = m.sensor_type[i] in (SensorType.USER, SensorType.PLUGIN, SensorType.RANGEFINDER)
        always[i] = site or live or not any(known)
        for side, (kind, index) in enumerate(zip(kinds, (m.sensor_objid[i], m.sensor_refid[i]), strict=True)):
            if known[side] and not always[i]:
                found, awake = _object(m, kind, index)
                trees[i, 2 * side : 2 * side + 2] = found
                always[i] |= awake
        always[i] |= sum(known) == 1 and (trees[i] < 0).all()  # static, without a reference object
    return ObjectTrees(trees, always)


def awake_sensors(m: Model, d: Data) -> Array:
    """Return the mask of sensors to compute (nsensor,)."""
    return _awake(_sensors(m), d.tree_asleep) | (d.tree_asleep < 0).all()


def awake_actuators(m: Model, d: Data) -> Array:
    """Return the mask of active actuators (nu,)."""
    of = _actuators(m)
    static = (of.trees < 0).all(1) & (m.actuator_trntype != Trn.SLIDERCRANK)
    return _awake(of, d.tree_asleep) | static


def awake_tendons(m: Model, d: Data) -> Array:
    """Return the mask of tendons of an awake tree (ntendon,)."""
    return _awake(_tendons(m), d.tree_asleep)


def keep_views(m: Model, before: Data, d: Data) -> Data:
    """Return `d` with views of a centre of mass, from and at bodies asleep or static, as they were if a tree sleeps."""
    sleepers = (d.tree_asleep >= 0).any()
    for kind, fields in VIEWS.items():
        of, central = _views(m, kind)
        if central.any():
            kept = (sleepers & central & ~_awake(of, d.tree_asleep))[:, None]
            d = d.replace(**{x: jnp.where(kept, getattr(before, x), getattr(d, x)) for x in fields})
    return d


def keep_forces(m: Model, before: Data, d: Data, *names: str) -> Data:
    """Return `d` with these of the `FORCES` of sleeping trees as they were."""
    awake = take(d.tree_asleep < 0, m.dof_treeid)
    return d.replace(**{x: jnp.where(awake, getattr(d, x), getattr(before, x)) for x in names})


def keep_actuators(m: Model, before: Data, d: Data) -> Data:
    """Return `d` with the lengths of sleeping actuators as they were, and with zero moments."""
    awake = awake_actuators(m, d) | (d.tree_asleep < 0).all()
    return d.replace(
        actuator_length=jnp.where(awake, d.actuator_length, before.actuator_length),
        actuator_moment=jnp.where(awake[:, None], d.actuator_moment, 0),
    )


def awake_rows(m: Model, d: Data, layout: Layout) -> Array:
    """Return the mask of constraint slots before those of contacts that may be active."""
    general = _general_trees(m)[layout.general.type, layout.general.id] if layout.ngeneral else np.zeros((0, 3), int)
    of = ObjectTrees(general[:, :2], general[:, 2] > 0)
    trees = np.concatenate([m.dof_treeid, np.tile(m.dof_treeid[layout.limit_dof], 2)])
    single = take(d.tree_asleep < 0, trees)
    return jnp.concatenate([_awake(of, d.tree_asleep), single])


@per_structure
def _general_trees(m) -> np.ndarray:
    """Return the trees of objects of general rows by type and id, with a flag for always awake: (types, ids, 3)."""
    out = np.full((len(ConstraintType), max(m.neq, m.ntendon, m.njnt, 1), 3), -1)
    pairs = equality_trees(m)
    out[ConstraintType.EQUALITY, : m.neq] = np.concatenate([pairs.trees, pairs.always[:, None]], axis=1)
    of = _tendons(m)
    tendons = np.concatenate([of.trees, (of.always | (m.tendon_treenum == 0))[:, None]], axis=1)
    out[ConstraintType.FRICTION_TENDON, : m.ntendon] = out[ConstraintType.LIMIT_TENDON, : m.ntendon] = tendons
    joints = m.body_treeid[m.jnt_bodyid]
    out[ConstraintType.LIMIT_JOINT, : m.njnt] = np.stack([joints, joints * 0 - 1, joints * 0], axis=1)
    return out


@per_structure
def equality_trees(m) -> ObjectTrees:
    """Return equalities by the trees of their two objects."""
    trees, always = np.full((m.neq, 2), -1), np.zeros(m.neq, bool)
    for i in range(m.neq):
        rigid = m.eq_type[i] in (EqType.CONNECT, EqType.WELD)
        kind = m.eq_objtype[i] if rigid else ObjType.JOINT
        if not rigid and m.eq_type[i] != EqType.JOINT:
            always[i] = True
            continue
        for side, index in enumerate((m.eq_obj1id[i], m.eq_obj2id[i])):
            if index >= 0:
                found, awake = _object(m, kind, index)
                trees[i, side] = found[0]
                always[i] |= awake
    return ObjectTrees(trees, always)


def _cycles(asleep: Array) -> Array:
    """Return the smallest tree of each sleeping tree's cycle, by pointer jumping; an awake tree itself."""
    n = len(asleep)
    label = jnp.arange(n, dtype=jnp.int32)
    successor = jnp.where(asleep >= 0, asleep, label)
    for _ in range(max(1, int(np.ceil(np.log2(n))) + 1)):
        label, successor = jnp.minimum(label, label[successor]), successor[successor]
    return label


def _rouse(asleep: Array, tree: Array, value: Array, on: Array) -> Array:
    """Wake the sleeping trees `tree` (k,) where `on`, in order, with the states `value` (k,) of their causes.

    The whole island takes the state of the first; a tree that occurs again takes the least.
    """
    n, k = len(asleep), len(on)
    if not k:
        return asleep
    label = _cycles(asleep)
    tree = jnp.where(on, tree, n)
    where = jnp.where(on, label[jnp.minimum(tree, n - 1)], n)
    first = jnp.full(n, k, jnp.int32).at[where].min(jnp.arange(k, dtype=jnp.int32), mode="drop")[label]
    woken = (asleep >= 0) & (first < k)
    new = jnp.where(woken, value[jnp.minimum(first, k - 1)], asleep)
    least = jnp.zeros(n, new.dtype).at[tree].min(value, mode="drop")
    return jnp.where(woken, jnp.minimum(new, jnp.where(least < 0, least, new)), new)


def _at_rest(m: Model, d: Data, tolerance: Array) -> Array:
    """Return the mask of trees that may sleep (ntree,): by policy, without applied forces, slower than the tolerance.

    With tolerance 0 they must be at rest.
    """
    slow = jnp.where(tolerance > 0, m.dof_length * abs(d.qvel) < tolerance, d.qvel == 0)
    still = slow & (d.qfrc_applied == 0)
    free = (d.xfrc_applied == 0).all(1)
    own = np.where(m.body_treeid < 0, m.ntree, m.body_treeid)
    ok = jnp.ones(m.ntree, bool).at[m.dof_treeid].min(still).at[own].min(free, mode="drop")
    return ok & ~np.isin(m.tree_sleep_policy, (SleepPolicy.NEVER, SleepPolicy.AUTO_NEVER))


def wake(m: Model, before: Data, d: Data) -> Data:
    """Wake trees that were moved, pushed or given a velocity while asleep; runs after kinematics."""
    near = SAME_POSE * jnp.finfo(d.xpos.dtype).eps
    moved = (abs(d.xpos - before.xpos) > near * (1 + abs(d.xpos))).any(1)
    moved = (moved | (abs(d.xquat - before.xquat) > near).any(1)) & (m.body_jntnum > 0)
    own = np.where(m.body_treeid < 0, m.ntree, m.body_treeid)
    changed = jnp.zeros(m.ntree, bool).at[own].max(moved, mode="drop") | ~_at_rest(m, d, jnp.zeros_like(d.time))
    on = (d.tree_asleep >= 0) & changed
    trees = np.arange(m.ntree)
    return d.replace(tree_asleep=_rouse(d.tree_asleep, trees, jnp.full_like(d.tree_asleep, AWAKE), on))


def _rouse_pairs(asleep: Array, t1: Array, t2: Array, on: Array) -> Array:
    """Wake the sleeping tree of each pair (k,) whose other tree is awake, where `on`; -1 is no tree."""
    there = on & (t1 >= 0) & (t2 >= 0)
    s1, s2 = asleep[jnp.maximum(t1, 0)], asleep[jnp.maximum(t2, 0)]
    up1, up2 = s1 < 0, s2 < 0
    return _rouse(asleep, jnp.where(up1, t2, t1), jnp.where(up1, s1, s2), there & (up1 != up2))


def wake_tendons(m: Model, d: Data) -> Data:
    """Set lengths and Jacobians of sleeping tendons to zero, and wake trees that a tendon at its limit wakes.

    It couples them to an awake tree. A tendon whose trees wake later in the step stays zero, as in MuJoCo. Runs after
    the inertia, which has the armature of sleeping tendons.
    """
    here = awake_tendons(m, d) | (m.tendon_treenum == 0)
    entries = take(here, jacobian_pattern(m)[0])
    d = d.replace(ten_length=jnp.where(here, d.ten_length, 0), ten_J=jnp.where(entries, d.ten_J, 0))
    two = np.flatnonzero((m.tendon_treenum == 2) & m.tendon_limited.astype(bool))
    if not len(two):
        return d
    length, margin = take(d.ten_length, two), take(m.tendon_margin, two)
    low, high = take(m.tendon_range, two).T
    on = (length - low < margin) | (high - length < margin)
    t1, t2 = jnp.asarray(m.tendon_treeid[two]).T
    return d.replace(tree_asleep=_rouse_pairs(d.tree_asleep, t1, t2, on))


def wake_equalities(m: Model, d: Data) -> Data:
    """Wake trees that an active equality couples to an awake tree, or to another sleeping island.

    Runs after collision.
    """
    if not m.neq:
        return d
    of, asleep = equality_trees(m), d.tree_asleep
    joined = (of.trees >= 0).all(1) & (of.trees[:, 0] != of.trees[:, 1])
    t1, t2 = np.maximum(of.trees, 0).T
    label = _cycles(asleep)
    down1, down2 = asleep[t1] >= 0, asleep[t2] >= 0
    on = d.eq_active & joined & ((down1 != down2) | (down1 & down2 & (label[t1] != label[t2])))
    woken = jnp.zeros(m.ntree, bool).at[label[t1]].max(on & down1).at[label[t2]].max(on & down2)
    return d.replace(tree_asleep=jnp.where((asleep >= 0) & woken[label], AWAKE, asleep))


def wake_and_filter(m: Model, d: Data, pairs: Any, found: list[Any]) -> tuple[Data, list[Any]]:
    """Wake trees that touch an awake geom, then drop the contacts of pairs without an awake geom."""
    geom = jnp.asarray(pairs.geom)
    bodies = jnp.asarray(m.geom_bodyid)[geom]
    trees = jnp.asarray(m.body_treeid)[bodies]
    hit = jnp.zeros(geom.shape[0], bool)
    for f in found:
        hit = hit.at[jnp.asarray(f.candidate)].max(f.contacts.valid.any(1))
    asleep = _rouse_pairs(d.tree_asleep, trees[:, 0], trees[:, 1], hit)
    # a mocap body wakes trees only by explicit pairs
    mocap = jnp.asarray(_bodies(m).always)[bodies] & (jnp.asarray(pairs.pair) >= 0)[:, None]
    moved = hit & mocap.any(1)
    asleep = _rouse(asleep, trees.max(1), jnp.full(len(hit), AWAKE, asleep.dtype), moved & (asleep[trees.max(1)] >= 0))
    awake = (jnp.concatenate([asleep < 0, jnp.zeros(1, bool)])[trees] | mocap).any(1)
    kept = []
    for f in found:
        valid = f.contacts.valid & awake[jnp.asarray(f.candidate)][:, None]
        kept.append(f._replace(contacts=f.contacts._replace(valid=valid)))
    return d.replace(tree_asleep=asleep), kept


def fall_asleep(m: Model, d: Data) -> Array:
    """Compute `tree_asleep` at the end of a step, from the velocities at its start and its islands."""
    rest = _at_rest(m, d, m.opt.sleep_tolerance)
    old = d.tree_asleep
    risen = jnp.where(rest, old + (old < -1), AWAKE)
    state = _by_islands(m, d, jnp.where(old >= 0, old, risen))
    if m.opt.disableflags & DisableBit.ISLAND:
        return jnp.where(d.nefc > 0, old, state)
    return state


def _by_islands(m: Model, d: Data, state: Array) -> Array:
    """Put islands to sleep whose trees are all ready (-1): each tree names the next of its island."""
    label, _ = tree_labels(m, d)
    ready = jnp.ones(m.ntree, bool).at[label].min(state == -1)[label]
    tree = np.arange(m.ntree)
    later = (label[:, None] == label[None, :]) & (tree[None, :] > tree[:, None])
    following = jnp.where(later.any(1), jnp.argmax(later, axis=1), label).astype(state.dtype)
    return jnp.where(ready & (state < 0), following, state)


def settle(m: Model, d: Data, new: Data, evaluate: Any) -> Data:
    """Return `new`, the state after a step from `d`, with sleeping trees at rest.

    If a tree has just fallen asleep, `evaluate(m, d)` computes velocities, forces and sensors again without its
    velocity, so that its stored values are those at rest.
    """
    asleep = fall_asleep(m, d)
    down = asleep >= 0
    dofs = take(down, m.dof_treeid)
    fresh = down & (d.tree_asleep < 0)
    halted = jnp.where(take(fresh, m.dof_treeid), 0, d.qvel)
    start = new.replace(qpos=d.qpos, qvel=halted, time=d.time, qacc_warmstart=d.qacc_warmstart)
    again = lax.cond(fresh.any(), lambda x: evaluate(m, x), lambda x: x, start)
    joints = np.searchsorted(m.jnt_qposadr, np.arange(m.nq), side="right") - 1  # of the entries of qpos
    return again.replace(
        tree_asleep=asleep,
        qpos=jnp.where(take(down, m.body_treeid[m.jnt_bodyid[joints]]), d.qpos, new.qpos),
        qvel=jnp.where(dofs, 0, new.qvel),
        qacc_warmstart=jnp.where(fresh.any(), again.qacc, new.qacc_warmstart),
        time=new.time,
    )


def starts_asleep(m: Model) -> bool:
    """Return whether some trees are asleep at the start."""
    return sleeps(m) and bool((m.tree_sleep_policy == SleepPolicy.INIT).any())


@public
def update_sleep(m: Model, d: Data) -> dict[str, Array]:
    """Compute fields derived from `tree_asleep`, by mjData's names: tree_awake, body_awake, counts, and index lists.

    The lists have full length. The first entries, as many as the count, are valid; the others are -1.
    """
    of = _bodies(m)
    body = jnp.where(_awake(of, d.tree_asleep), 1, jnp.where(m.body_treeid < 0, -1, 0))
    tree = (d.tree_asleep < 0).astype(jnp.int32)
    parent = (body[m.body_parentid] != 0) & (np.arange(m.nbody) > 0)
    dof = take(tree, m.dof_treeid) > 0
    out = {"tree_awake": tree, "body_awake": body, "ntree_awake": tree.sum()}
    for name, count, mask in (
        ("body_awake_ind", "nbody_awake", body != 0),
        ("parent_awake_ind", "nparent_awake", parent),
        ("dof_awake_ind", "nv_awake", dof),
    ):
        out[name] = jnp.nonzero(mask, size=len(mask), fill_value=-1)[0].astype(jnp.int32)
        out[count] = mask.sum()
    return out
