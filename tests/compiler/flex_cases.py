"""Models with flexes: one vertex a body, nodes, constraints, elasticity, several in one model."""

import itertools

_POINTS = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0.2, 0.3, 1), (1, 1, 0.5), (0.4, 1.4, 0.7)]
_SLIDES = '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><joint type="slide" axis="0 0 1"/>'
BODIES = "b0 b1 b2 b3 b4 b5"
ELEMENTS = {1: "0 1 1 2 2 3 3 4 4 5", 2: "0 1 2 1 3 2 3 4 2 4 5 2", 3: "0 1 2 3 1 2 3 4 2 3 4 5"}
VERTEX = "0 0 0 .1 0 0 0 .1 0 0 0 .1 .1 .1 .1 0 .2 .2"
NO_SELF = '<contact selfcollide="none"/>'


def flex(dim, attrs="", inside="", name="f", bodies=BODIES, elements=None):
    """A flex element over the bodies of `explicit`."""
    return (
        f'<flex name="{name}" dim="{dim}" body="{bodies}" element="{elements or ELEMENTS[dim]}" {attrs}>{inside}</flex>'
    )


def explicit(flexes, joint=_SLIDES, extra="", top=""):
    """Six bodies, a free one and flexes over them."""
    bodies = "".join(
        f'<body name="b{i}" pos="{x} {y} {z}">{joint}'
        f'<inertial pos="0 0 0" mass="{1 + i / 10}" diaginertia="1 1 1"/></body>'
        for i, (x, y, z) in enumerate(_POINTS)
    )
    free = '<body name="q" pos="1 2 3" euler="10 20 30"><freejoint/><geom size=".1"/></body>'
    asset = '<asset><material name="m" rgba="1 0 0 1"/></asset>'
    return f"""<mujoco>{top}{asset}<worldbody>{bodies}{free}</worldbody>
      <deformable>{flexes}</deformable>{extra}</mujoco>"""


def grid(attrs, inside="", around="{}", body='pos="0 0 1"', top="", extra=""):
    """A body with a flexcomp."""
    macro = f'<flexcomp name="f" spacing=".1 .1 .1" {attrs}>{inside}</flexcomp>'
    return f"""<mujoco>{top}<asset><texture name="t" type="2d" builtin="flat" width="2" height="2"/>
      <material name="m" texture="t"/></asset><worldbody><body name="p" {body}><geom size=".1"/>{around.format(macro)}
      </body></worldbody>{extra}</mujoco>"""


_ELASTIC = 'young="1e3" poisson=".2" damping=".1"'
_ATTRIBUTES = {
    "plain": ("", ""),
    "look": ('radius=".1" material="m" rgba="1 .5 .3 .2" flatskin="true" group="4"', ""),
    "texture": ('texcoord="0 0 1 0 0 1 1 1 .5 .5 .3 .3"', ""),
    "texture of elements": ('texcoord="0 0 1 0 0 1 1 1" elemtexcoord="0 1 1 0 0 1 0 1"', ""),
    "vertices": (f'vertex="{VERTEX}"', ""),
    "cells without nodes": ('cellcount="2 3 4"', ""),
    "contact": (
        "",
        '<contact contype="3" conaffinity="2" condim="4" priority="2" friction="2 .1 .2" solmix="3" solref=".1 2" '
        'solimp=".1 .2 .3 .4 .5" margin=".1" gap=".2" internal="true" selfcollide="bvh" activelayers="2" '
        'passive="true"/>',
    ),
    "edges": ("", '<edge damping="2"/>'),
    "elastic": ("", f"<elasticity {_ELASTIC}/>"),
}
_SURFACES = {
    f"shell {kind}": ("", f'<elasticity {_ELASTIC} thickness=".1" elastic2d="{kind}"/>')
    for kind in ("bend", "stretch", "both")
}

EXPLICIT = {
    **{
        f"{n} {dim}d": explicit(flex(dim, *parts))
        for (n, parts), dim in itertools.product(_ATTRIBUTES.items(), (1, 2, 3))
    },
    **{n: explicit(flex(2, *parts)) for n, parts in _SURFACES.items()},
    "stiff edges": explicit(flex(1, "", '<edge stiffness="1"/>')),
    "rigid": explicit(flex(2, f'vertex="{VERTEX}"', bodies="q")),
    "in the world": explicit(flex(3, f'vertex="{VERTEX}"', bodies="world")),
    "on a ball": explicit(flex(2, f'vertex="{VERTEX}"', '<edge damping="1"/>'), joint='<joint type="ball"/>'),
    "partly in the world": explicit(flex(2, "", '<edge damping="1"/>', bodies=BODIES.replace("b5", "world"))),
    "all mass": explicit(flex(2, "", '<edge damping="1"/>'), top='<compiler settotalmass="7"/>'),
    "constraints": explicit(
        flex(2), extra='<equality><flex flex="f" solref=".1 1"/><flexvert flex="f" active="false"/></equality>'
    ),
    "strain without nodes": explicit(flex(3), extra='<equality><flexstrain flex="f" cell="1 2 3"/></equality>'),
    "rows that begin again": explicit(
        flex(3, f'vertex="{VERTEX}"', "<elasticity young='10' damping='1'/>", "one", BODIES.replace("b0", "q"))
        + flex(2, "", "", "two")
        + flex(1, "", '<edge damping="1"/>', "three")
    ),
}

_SHAPES = {
    "line": 'type="grid" dim="1" count="5 1 1"',
    "surface": 'type="grid" dim="2" count="4 3 1"',
    "solid": 'type="grid" dim="3" count="3 3 4"',
    "closed box": 'type="box" dim="1" count="3 3 3"',
    "ball": 'type="ellipsoid" dim="3" count="4 4 4"',
}
_NODES = f'{NO_SELF}<elasticity {_ELASTIC} thickness=".01"'

MACROS = {
    **{
        f"{shape} {dof}": grid(f'{attrs} dof="{dof}" euler="10 50 20"', NO_SELF, body='euler="20 30 40"')
        for (shape, attrs), dof in itertools.product(
            _SHAPES.items(), ("full", "radial", "2d", "trilinear", "quadratic")
        )
        if not (shape in ("line", "surface") and dof in ("radial", "trilinear", "quadratic"))
    },
    "moving and pinned": grid(
        'dim="2" count="4 4 1"', '<pin id="0 2"/><edge damping="1"/><elasticity young="1e3" damping="1"/>', "<joint/>{}"
    ),
    "edges held": grid('dim="2" count="4 4 1"', '<edge equality="true" solref=".1 1"/>'),
    "vertices held": grid('dim="2" count="4 4 1" euler="0 0 37"', '<edge equality="vert"/>'),
    "vertices held upside down": grid('dim="2" count="4 4 1" euler="180 0 30"', '<edge equality="vert"/>'),
    "cells": grid('dim="3" count="3 3 3" dof="trilinear" cellcount="2 1 3"', f"{_NODES}/>"),
    "quadratic cells": grid('dim="3" count="3 3 3" dof="quadratic" cellcount="2 1 2"', f"{_NODES}/>"),
    "shell of cells": grid(
        'dim="3" count="3 3 3" dof="trilinear" cellcount="2 1 2"', f'{_NODES} elastic2d="both"/>', body='euler="9 8 7"'
    ),
    "quadratic shell": grid('dim="3" count="3 3 3" dof="quadratic" cellcount="1 1 2"', f'{_NODES} elastic2d="bend"/>'),
    "strained cells": grid(
        'dim="3" count="3 3 4" dof="trilinear" euler="10 20 30" cellcount="3 2 2"',
        f'{NO_SELF}<edge equality="strain"/>',
        body='euler="40 50 60"',
    ),
    "strained faces": grid(
        'dim="3" count="3 3 3" dof="trilinear" cellcount="2 1 2"',
        f'{NO_SELF}<edge equality="strain"/><elasticity poisson=".1" thickness=".1" elastic2d="stretch"/>',
    ),
    "cells with nothing in them": grid(
        'type="direct" dim="2" point="0 0 0 .1 0 0 0 .1 .1 1 1 1 .9 1 1 1 .9 1" element="0 1 2 3 4 5" dof="trilinear" '
        'cellcount="3 2 3"',
        f"{_NODES}/>",
        "<freejoint/>{}",
        'euler="40 10 20"',
    ),
    "pinned nodes": grid('dim="3" count="4 4 4" dof="trilinear"', f'{_NODES}/><pin id="0 1 5"/>', "<joint/>{}"),
    "asleep": grid('dim="2" count="3 3 1"', top='<option><flag sleep="enable"/></option>'),
    "a plugin": grid(
        'dim="2" count="3 3 1"',
        '<plugin plugin="mujoco.elasticity.cable"/>',
        top='<extension><plugin plugin="mujoco.elasticity.cable"/></extension>',
    ),
}

WRONG = {
    "no element": (flex(2, elements=" "), "flex 'f': the attribute 'element' is required"),
    "half an element": (flex(2, elements="0 1 2 3"), "flex 'f': 'element' needs 3 vertices for each element"),
    "element beyond": (flex(2, elements="0 1 6"), "flex 'f': 'element' names vertex 6"),
    "negative element": (flex(2, elements="0 1 -1"), "flex 'f': 'element' names vertex -1"),
    "corner twice": (flex(2, elements="0 1 1"), "flex 'f': element 0 has a vertex twice"),
    "dim 0": (flex(2).replace('dim="2"', 'dim="0"'), "flex 'f': 'dim' must be 1, 2 or 3"),
    "too few bodies": (
        flex(2, f'vertex="{VERTEX}"', bodies="b0 b1"),
        "flex 'f': 'body' needs one name, or one for each of the 6 vertices",
    ),
    "unknown body": (
        flex(2, bodies=BODIES.replace("b1", "b9")),
        "flex 'f': body names the body 'b9', which does not exist",
    ),
    "half a vertex": (flex(2, 'vertex="0 0"'), "flex 'f': 'vertex' needs three numbers for each vertex"),
    "texture of other length": (
        flex(2, 'texcoord="0 0 1"'),
        "flex 'f': 'texcoord' needs two numbers for each of the 6 vertices",
    ),
    "unknown material": (
        flex(2, 'material="nope"'),
        "flex 'f': material names the material 'nope', which does not exist",
    ),
    "stiff edges of a surface": (flex(2, "", '<edge stiffness="1"/>'), "flex 'f': stiffness of edges is for dim 1"),
    "poisson": (
        flex(3, "", '<elasticity young="1" poisson=".5"/>'),
        "flex 'f': poisson must be 0 or more and less than 0.5",
    ),
    "thin shell": (
        flex(2, "", '<elasticity young="1" elastic2d="both"/>'),
        "flex 'f': elastic2d needs a positive thickness",
    ),
    "shell of a solid": (
        flex(3, "", '<elasticity young="1" thickness=".1" elastic2d="both"/>'),
        "flex 'f': elastic2d is for flexes of dim 2",
    ),
    "nodes without dof": (
        flex(2, f'vertex="{VERTEX}" node="b0 b1"', NO_SELF),
        "flex 'f': a flex with nodes needs 'dof', trilinear or quadratic",
    ),
    "dof without nodes": (
        flex(2, f'vertex="{VERTEX}" dof="trilinear"', NO_SELF),
        "flex 'f': 'cellcount' and 'dof' need 8 nodes",
    ),
    "nodes that collide": (
        flex(2, f'vertex="{VERTEX}" node="{BODIES} b0 b1" dof="trilinear"'),
        "flex 'f': a flex with nodes cannot collide with itself",
    ),
    "nodes askew": (
        flex(2, f'vertex="{VERTEX}" node="{BODIES} b0 b1" dof="trilinear"', NO_SELF),
        "flex 'f': the nodes must form a regular grid with axes at right angles",
    ),
    "two contacts": (flex(2, "", "<contact/><contact/>"), "contact: flex can have only one contact"),
}
