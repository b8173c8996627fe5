"""Small models with flexes that make forces and no contacts: kinds of elements, dofs, elasticity, where they hang."""

NO_CONTACT = '<contact contype="0" conaffinity="0" selfcollide="none" internal="false"/>'
CLOTH = 'type="grid" dim="2" count="4 3 1" mass="1"'
SOLID = 'type="grid" dim="3" count="3 3 3" mass="1"'
ROPE = 'type="grid" dim="1" count="5 1 1" mass="1"'
MATERIAL = 'young="300" poisson=".2" damping=".02"'


def scene(macro, inside="", body='pos="0 0 1"', joint="", around="{}", top="", extra=""):
    """A body with a flexcomp that touches nothing."""
    comp = f'<flexcomp name="f" spacing=".1 .12 .15" {macro}>{NO_CONTACT}{inside}</flexcomp>'
    return f"""<mujoco><option>{top}<flag energy="enable"/></option><worldbody><body name="p" {body}>{joint}
      <inertial pos=".01 .02 .03" mass="2" diaginertia=".1 .2 .15"/>{around.format(comp)}</body>
      </worldbody>{extra}</mujoco>"""


def shell(kind, thickness=0.02):
    """The material of a cloth."""
    return f'<elasticity {MATERIAL} thickness="{thickness}" elastic2d="{kind}"/>'


FREE = {
    "rope with springs": scene(ROPE, '<edge stiffness="20" damping=".1"/>'),
    "rope pinned": scene(ROPE, '<edge stiffness="20" damping=".1"/><pin id="0"/>'),
    "rope on a moving body": scene(ROPE, '<edge stiffness="20" damping=".1"/><pin id="0"/>', joint="<freejoint/>"),
    "cloth with dampers": scene(CLOTH, '<edge damping=".1"/>'),
    "stretching": scene(CLOTH, shell("stretch")),
    "stretching without damping": scene(CLOTH, shell("stretch").replace('damping=".02"', "")),
    "bending": scene(CLOTH, shell("bend")),
    "both": scene(CLOTH, shell("both") + '<edge damping=".1"/>'),
    "pinned cloth": scene(CLOTH, shell("stretch") + '<pin id="0 3"/>'),
    "cloth on a hinge": scene(CLOTH, shell("stretch") + '<pin id="0 3"/>', joint='<joint axis="0 1 .3"/>'),
    "cloth on a moving body": scene(CLOTH, shell("both"), joint="<freejoint/>", body='euler="10 20 30"'),
    "cloth of 2d dofs": scene(CLOTH + ' dof="2d"', shell("stretch")),
    "curved cloth": scene('type="ellipsoid" dim="2" count="4 4 4" mass="1"', shell("both")),
    "solid": scene(SOLID, f"<elasticity {MATERIAL}/>"),
    "solid on a moving body": scene(SOLID, f'<elasticity {MATERIAL}/><pin id="0 1"/>', joint="<freejoint/>"),
    "radial ball": scene('type="ellipsoid" dim="3" count="4 4 4" mass="1" dof="radial"', f"<elasticity {MATERIAL}/>"),
    "rigid": scene(CLOTH + ' rigid="true"', shell("stretch"), joint="<freejoint/>"),
}
_CELLS = f"<elasticity {MATERIAL}/>"
LATTICES = {
    "trilinear": scene(SOLID + ' dof="trilinear"', _CELLS),
    "trilinear in a turned body": scene(SOLID + ' dof="trilinear"', _CELLS, body='euler="20 30 40"'),
    "trilinear pinned": scene(SOLID + ' dof="trilinear"', _CELLS + '<pin id="0 1"/>'),
    "trilinear on a moving body": scene(SOLID + ' dof="trilinear"', _CELLS + '<pin id="0 1"/>', joint="<freejoint/>"),
    "quadratic": scene(SOLID + ' dof="quadratic"', _CELLS),
    "cells": scene(SOLID + ' dof="trilinear" cellcount="2 1 3"', _CELLS),
    "quadratic cells": scene(SOLID + ' dof="quadratic" cellcount="2 1 1"', _CELLS),
    "ball in cells": scene('type="ellipsoid" dim="3" count="4 4 4" mass="1" dof="trilinear" cellcount="3 3 3"', _CELLS),
    "shell": scene(SOLID + ' dof="trilinear" cellcount="2 1 2"', shell("both", 0.01)),
    "bending shell": scene(SOLID + ' dof="trilinear" cellcount="2 1 2"', shell("bend", 0.02)),
    "quadratic shell": scene(SOLID + ' dof="quadratic" cellcount="1 1 2"', shell("both", 0.01)),
}

HELD = '<edge equality="{}" solref=".03 1" solimp=".8 .95 .01"/>'
STRAINED = 'type="grid" dim="3" count="3 3 3" mass="1" dof="{}" cellcount="2 1 1"'
CONSTRAINED = {
    "rope of held edges": scene(ROPE, HELD.format("true") + '<pin id="0"/>'),
    "cloth of held edges": scene(CLOTH, HELD.format("true") + '<pin id="0 3"/>'),
    "held edges on a moving body": scene(CLOTH, HELD.format("true") + '<pin id="0 3"/>', joint="<freejoint/>"),
    "large cloth of held edges": scene('type="grid" dim="2" count="9 8 1" mass="1"', HELD.format("true")),
    "held vertices": scene(CLOTH, HELD.format("vert")),
    "large cloth of held vertices": scene('type="grid" dim="2" count="9 8 1" mass="1"', HELD.format("vert")),
    "held strain": scene(STRAINED.format("trilinear"), HELD.format("strain")),
    "held strain pinned": scene(
        STRAINED.format("trilinear"), HELD.format("strain") + '<pin id="0 1"/>', joint="<freejoint/>"
    ),
    "held strain, quadratic": scene(STRAINED.format("quadratic"), HELD.format("strain")),
    "held strain of a shell": scene(
        STRAINED.format("trilinear"),
        HELD.format("strain") + '<elasticity poisson=".1" thickness=".1" elastic2d="stretch"/>',
    ),
    "large lattice of held strain": scene(
        STRAINED.format("trilinear").replace("2 1 1", "4 3 3"), HELD.format("strain")
    ),
}
CASES = {**FREE, **LATTICES}
