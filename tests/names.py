"""The rule that turns MuJoCo's names into ours."""

import re


def snake_case(name: str) -> str:
    """A MuJoCo name without its prefix in snake case: mj_jacBodyCom is jac_body_com, mj_applyFT is apply_ft."""
    name = re.sub(r"^mjd?_", "", name)
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
