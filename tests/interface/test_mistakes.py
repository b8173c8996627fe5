"""Every message in the table of the docs is what jaxsim says to the mistake beside it."""

import re

import jax
import pytest

from tests.paths import DOCS, MODELS

PAGE = (DOCS / "mistakes.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(.*?)` \| (.*?) \|$", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the page's code defines."""
    folder = tmp_path_factory.mktemp("mistakes")
    (folder / "models").symlink_to(MODELS)
    names = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL).group(1), names)
    return names


def test_the_table_is_long_enough():
    assert len(ROWS) >= 40 and len({code for code, _ in ROWS}) == len(ROWS)


@pytest.mark.parametrize(("code", "message"), ROWS, ids=[code for code, _ in ROWS])
def test_what_is_said_is_what_the_page_says(names, code, message):
    if "mjx.put_model(mj_model)" in code and "jaxsim.mjx" not in code:
        names["mjx"] = pytest.importorskip("mujoco.mjx")
    with pytest.raises(Exception) as caught:
        exec(code, dict(names))
    assert f"{type(caught.value).__name__}: {caught.value}".replace("\n", " ") == message


def test_a_package_that_is_not_imported_yet_is_named_with_its_import(names):
    with pytest.raises(AttributeError, match=r"before it is imported: import jaxsim\.envs"):
        names["jaxsim"].__getattr__("envs")


@pytest.mark.parametrize("axes", [1, 2])
def test_checks_see_one_world_under_vmap(names, axes):
    jaxsim, m, worlds = (names[n] for n in ("jaxsim", "m", "worlds"))
    function, batch = jaxsim.kinematics, worlds
    for _ in range(axes):
        function = jax.vmap(function, in_axes=(None, 0))
    if axes == 2:
        batch = jax.tree.map(lambda x: x[None], worlds)
    lead = (1, 4)[2 - axes :]
    assert function(m, batch).xpos.shape == (*lead, 4, 3)
    with pytest.raises(ValueError, match=r"ctrl has shape \(2,\), wanted \(1,\)"):
        function(m, batch.replace(ctrl=jax.numpy.zeros((*lead, 2))))
