"""Pairs of geoms of which one at least is a signed distance field."""

from validation.models.geoms import ASSETS, GEOMS

# plugin, half sizes of its box, attributes
FIELDS = {
    "torus": ((0.5, 0.5, 0.15), ""),
    "bowl": ((0.43, 0.43, 0.43), "height .15 radius .4 thickness .03"),
    "gear": ((0.5, 0.5, 0.12), "diameter .8 teeth 12 thickness .2 alpha .1"),
    "bolt": ((0.6, 0.6, 1), ""),
    "nut": ((0.6, 0.6, 1), "radius .25"),
    "octree": ((0.3, 0.2, 0.25), None),
}
PAIRS = (
    *(("sphere", "torus"), ("capsule", "bowl"), ("ellipsoid", "torus"), ("cylinder", "gear"), ("box", "bolt")),
    *(("sphere", "nut"), ("nut", "bolt"), ("torus", "gear"), ("box", "octree"), ("octree", "torus"), ("plane", "nut")),
)


def mesh(name):
    x, y, z = FIELDS[name][0]
    corners = [f"{i * x} {j * y} {k * z}" for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]
    return f'<mesh name="{name}" vertex="{" ".join(corners)}"/>'


def geom(kind, rest="", plugin=True):
    if kind not in FIELDS:
        return f"<geom {GEOMS[kind]} {rest}/>"
    words = FIELDS[kind][1]
    if words is None or not plugin:
        return f'<geom type="sdf" mesh="{kind}" {rest}/>'
    pairs = zip(words.split()[::2], words.split()[1::2], strict=True)
    config = "".join(f'<config key="{key}" value="{value}"/>' for key, value in pairs)
    return f'<geom type="sdf" mesh="{kind}" {rest}><plugin plugin="mujoco.sdf.{kind}">{config}</plugin></geom>'


def xml(pairs, plugin=True, iterations=8, starts=12):
    kinds = {kind for pair in pairs for kind in pair if kind in FIELDS}
    used = "".join(f'<plugin plugin="mujoco.sdf.{k}"/>' for k in sorted(kinds) if FIELDS[k][1] is not None)
    bodies, contacts = "", ""
    for i, pair in enumerate(pairs):
        for side, kind in enumerate(pair):
            made = geom(kind, f'name="{i}.{side}" contype="0" conaffinity="0"', plugin)
            bodies += made if kind == "plane" else f"<body><freejoint/>{made}</body>"
        contacts += f'<pair geom1="{i}.0" geom2="{i}.1"/>'
    return f"""<mujoco><option sdf_initpoints="{starts}" sdf_iterations="{iterations}"/>
      <extension>{used if plugin else ""}</extension><asset>{ASSETS}{"".join(map(mesh, sorted(kinds)))}</asset>
      <worldbody>{bodies}</worldbody><contact>{contacts}</contact></mujoco>"""
