"""`load_model`: its arguments, its results, its errors."""

import pathlib
import warnings

import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.structure import refusals
from jaxsim.mjcf import read

XML = '<mujoco><worldbody><body name="a"><joint name="j"/><geom name="g" size=".1"/></body></worldbody></mujoco>'


def test_path_text_and_spec_give_one_structure(tmp_path):
    path = pathlib.Path(tmp_path) / "model.xml"
    path.write_text(XML)
    models = [jaxsim.load_model(source) for source in (str(path), path, XML, read(XML))]
    assert len({hash(m.structure) for m in models}) == 1
    assert all(m.structure == models[0].structure for m in models)


def test_two_loads_share_one_compilation():
    total = jax.jit(lambda m: m.body_mass.sum())
    total(jaxsim.load_model(XML))
    total(jaxsim.load_model(XML))
    assert total._cache_size() == 1


def test_leaves_have_the_precision_of_jax(float32):
    m = jaxsim.load_model(XML)
    assert {leaf.dtype for leaf in jax.tree.leaves(m)} == {np.dtype(np.float32)}


def test_assets_are_looked_up_by_name():
    text = '<mujoco><include file="other.xml"/></mujoco>'
    m = jaxsim.load_model(text, assets={"other.xml": XML.encode()})
    assert m.nbody == 2


def test_capacities_are_set():
    m = jaxsim.load_model(XML, max_contacts=3, max_constraints=5)
    assert (m.max_contacts, m.max_constraints) == (3, min(5, m.max_constraints))


def test_names_are_found_in_both_directions():
    m = jaxsim.load_model(XML)
    assert m.name2id("geom", "g") == 0
    assert m.id2name("joint", 0) == "j"


def test_missing_file_is_not_found():
    with pytest.raises(FileNotFoundError):
        jaxsim.load_model("nowhere.xml")


def test_a_folder_is_no_model_file(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        jaxsim.load_model(tmp_path)


def test_assets_that_are_text_are_refused_by_name():
    with pytest.raises(TypeError, match=r"assets\['m\.obj'\] is of type str, wanted bytes: use \.encode\(\)"):
        jaxsim.load_model(XML, assets={"m.obj": "v 0 0 0"})


@pytest.mark.parametrize(
    ("text", "feature"),
    [
        (
            '<mujoco><extension><plugin plugin="mujoco.elasticity.cable"/></extension><worldbody><replicate count="2">'
            '<body><plugin plugin="mujoco.elasticity.cable"/></body></replicate></worldbody></mujoco>',
            "plugins in a replicate",
        ),
    ],
)
def test_an_unsupported_feature_is_named(text, feature):
    with pytest.raises(jaxsim.UnsupportedError, match=feature):
        jaxsim.load_model(text)


@pytest.mark.slow
def test_a_tree_that_cannot_be_asleep_at_the_start_is_refused():
    text = """<mujoco><option><flag sleep="enable"/></option><worldbody><geom type="plane" size="1 1 1"/>
    <body name="low" pos="0 0 .0999" sleep="init"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    <body pos="0 0 .2998"><freejoint/><geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>"""
    with pytest.raises(ValueError, match="could be slept"):
        mujoco.MjModel.from_xml_string(text)
    with pytest.raises(jaxsim.ModelError, match="body 'low'"):
        jaxsim.load_model(text)


def loads_with_pgs(tmp_path):
    """Every way to a model that asks for PGS."""
    text = XML.replace("<worldbody>", '<option solver="PGS"/><worldbody>')
    path = str(tmp_path / "model.npz")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jaxsim.save_model(jaxsim.load_model(text), path)
    refusals.warn_once.cache_clear()
    return (
        lambda: jaxsim.load_model(text),
        lambda: jaxsim.load_model(read(text)),
        lambda: jaxsim.load_model(path),
        lambda: jaxsim.from_mujoco(mujoco.MjModel.from_xml_string(text)),
    )


def test_a_model_that_asks_for_pgs_warns_once_and_says_what_is_done(tmp_path):
    for load in loads_with_pgs(tmp_path):
        refusals.warn_once.cache_clear()
        with pytest.warns(jaxsim.ModelWarning, match="PGS.*Newton's method") as found:
            load()
            load()
        assert [pathlib.Path(w.filename).name for w in found] == ["test_load.py"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            load()


def test_cg_warns_where_rows_are_sparse_alone():
    ball = '<body pos="{} 0 1"><freejoint/><geom size=".1"/></body>'
    scene = '<mujoco><option solver="CG"/><worldbody>{}</worldbody></mujoco>'
    refusals.warn_once.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jaxsim.load_model(scene.format(ball.format(0)))
        jaxsim.load_model(XML)
    with pytest.warns(jaxsim.ModelWarning, match="CG.*without a Hessian"):
        jaxsim.load_model(scene.format("".join(ball.format(i) for i in range(40))))


@pytest.mark.parametrize("name", ["name='pair'", ""])
def test_a_tree_that_cannot_be_asleep_is_named_with_its_line(name):
    text = f"""<mujoco><option><flag sleep="enable"/></option><worldbody><geom type="plane" size="1 1 1"/>
    <body pos="0 0 .09"><freejoint/><geom size=".1"/></body>
    <body {name} pos="0 0 .27" sleep="init"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
    with pytest.raises(jaxsim.ModelError, match=r"its policy is sleep='init', and it cannot be asleep") as error:
        jaxsim.load_model(text)
    assert str(error.value).startswith("XML:3: body 'pair'" if name else "XML:3: body")
