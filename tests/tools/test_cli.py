"""The command line: its output, its files, and one line for every mistake."""

import json
import re

import numpy as np
import pytest

from jaxsim.tools.cli import main
from tests.paths import MODELS

CARTPOLE = str(MODELS / "cartpole.xml")

MASS = """<mujoco model="mass"><option timestep="0.1"/><worldbody><body><joint name="j" type="slide"/>
  <geom size=".1" mass="1e-3"/></body></worldbody><actuator><motor joint="j" gear="1e9"/></actuator></mujoco>"""
PAIR = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .09"><joint type="slide" axis="0 0 1"/>
  <geom size=".1" condim="1"/><geom pos=".5 0 0" size=".1" condim="1"/></body></worldbody></mujoco>"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Folder of invalid files."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "broken.xml").write_text("<mujoco><worldbody>")
    (folder / "typo.xml").write_text('<mujoco>\n<worldbody>\n<geom sise="1"/></worldbody></mujoco>')
    (folder / "mass.xml").write_text(MASS)
    (folder / "pair.xml").write_text(PAIR)
    (folder / "text.npz").write_text("not an array")
    np.savez(folder / "narrow.npz", ctrl=np.zeros((5, 7)))
    np.savez(folder / "nameless.npz", control=np.zeros((5, 1)))
    np.savez(folder / "short.npz", ctrl=np.zeros((5, 1)))
    np.savez(folder / "nan.npz", ctrl=np.full((5, 1), np.nan))
    return folder


def run(capsys, *argv):
    status = main([str(a) for a in argv])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


MISTAKES = {
    "no such file": (["info", "nowhere.xml"], "nowhere.xml"),
    "a directory": (["info", MODELS], "directory"),
    "broken XML": (["info", "{files}/broken.xml"], "broken.xml"),
    "misspelt attribute": (["rollout", "{files}/typo.xml"], "did you mean 'size'"),
    "unknown command": (["simulate", CARTPOLE], "simulate"),
    "unknown option": (["rollout", CARTPOLE, "--worlds", "3"], "--worlds"),
    "missing model": (["rollout"], "MODEL"),
    "no worlds": (["rollout", CARTPOLE, "--nworld", "0"], "'0' is not a positive integer"),
    "worlds that are no number": (["bench", CARTPOLE, "--nworld", "many"], "'many' is not a positive integer"),
    "negative seed": (["rollout", CARTPOLE, "--seed", "-1"], "--seed"),
    "unknown keyframe": (["rollout", CARTPOLE, "--keyframe", "jump"], "the model has upright, hanging"),
    "unknown controls": (["rollout", CARTPOLE, "--controls", "clever"], "neither random, zero, keyframe nor a file"),
    "controls that are no array": (["rollout", CARTPOLE, "--controls", "{files}/text.npz"], "not a NumPy file"),
    "controls of the wrong shape": (["rollout", CARTPOLE, "--controls", "{files}/narrow.npz"], "expected (nstep, 1)"),
    "controls under another name": (["rollout", CARTPOLE, "--controls", "{files}/nameless.npz"], "no array 'ctrl'"),
    "controls that are not finite": (["rollout", CARTPOLE, "--controls", "{files}/nan.npz"], "not all finite"),
    "controls too short": (["rollout", CARTPOLE, "--controls", "{files}/short.npz", "--nstep", "9"], "has 5 steps"),
    "keyframe controls without one": (["rollout", CARTPOLE, "--controls", "keyframe"], "needs --keyframe"),
    "world out of range": (["rollout", CARTPOLE, "--nworld", "2", "--world", "2"], "counted from 0"),
    "unknown body to follow": (["rollout", CARTPOLE, "--follow", "horse"], "horse"),
    "output in no directory": (["rollout", CARTPOLE, "--out", "{files}/no/where.npz"], "does not exist"),
    "page in no directory": (["rollout", CARTPOLE, "--html", "{files}/no/where.html"], "does not exist"),
    "unknown scene": (["demo", "--scenes", "horse"], "'horse' is not one of humanoid"),
    "gallery in no directory": (["demo", "--out", "{files}/no/where.html"], "does not exist"),
    "unknown peer": (["bench", CARTPOLE, "--against", "mujoco,ode"], "'ode' is not one of"),
    "noise out of range": (["bench", CARTPOLE, "--noise", "3"], "not between 0 and 1"),
}


@pytest.mark.parametrize(("argv", "words"), MISTAKES.values(), ids=list(MISTAKES))
def test_mistake_gives_one_line_and_a_status(capsys, files, argv, words):
    status, out, err = run(capsys, *(str(a).replace("{files}", str(files)) for a in argv))
    assert status in (1, 2)
    assert out == "" and err.count("\n") == 1
    assert words in err and err.startswith("jaxsim") and "error: " in err


@pytest.mark.parametrize("argv", [[], ["--help"], ["info", "--help"], ["rollout", "--help"], ["bench", "--help"]])
def test_help_is_printed(capsys, argv):
    status, out, err = run(capsys, *argv)
    assert status == (0 if argv else 2) and "usage: jaxsim" in out and not err


def test_version_is_printed(capsys):
    status, out, _ = run(capsys, "--version")
    assert status == 0 and out.startswith("jaxsim ")


def test_info_describes_the_model(capsys):
    status, out, _ = run(capsys, "info", MODELS / "humanoid.xml")
    assert status == 0
    assert "nv 27" in out and "21 hinge, 1 free" in out and "21 motor on joint" in out
    assert "keyframes" in out and "stand" in out
    assert "41 contacts (222 if all pairs of geoms touched)" in out
    assert out.splitlines()[-1].split() == ["unsupported", "nothing"]


UNSUPPORTED = {
    "by the engine": (
        '<option><flag sleep="enable"/></option><worldbody><geom type="plane" size="1 1 1"/>'
        '<flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" mass="1" radius=".01"/></worldbody>',
        "sleep",
        "sizes",
    ),
    "by the compiler": (
        '<extension><plugin plugin="mujoco.elasticity.cable"/></extension><worldbody>'
        '<replicate count="2"><body><plugin plugin="mujoco.elasticity.cable"/></body></replicate></worldbody>',
        "plugins in a replicate",
        "elements",
    ),
}


@pytest.mark.parametrize(("body", "feature", "row"), UNSUPPORTED.values(), ids=list(UNSUPPORTED))
def test_info_names_an_unsupported_feature(capsys, tmp_path, body, feature, row):
    (tmp_path / "m.xml").write_text(f"<mujoco>{body}</mujoco>")
    status, out, err = run(capsys, "info", tmp_path / "m.xml")
    assert status == 1 and not err
    assert row in out and feature in out.splitlines()[-1] and out.splitlines()[-1].startswith("unsupported")


@pytest.mark.parametrize("body", [body for body, *_ in UNSUPPORTED.values()], ids=list(UNSUPPORTED))
def test_rollout_of_an_unsupported_model_prints_one_line(capsys, tmp_path, body):
    (tmp_path / "m.xml").write_text(f"<mujoco>{body}</mujoco>")
    status, _, err = run(capsys, "rollout", tmp_path / "m.xml", "--quiet")
    assert status == 1 and err.count("\n") == 1 and "not supported yet" in err


@pytest.fixture(scope="module")
def rolled(tmp_path_factory):
    """Status, trajectories, HTML page and controls of a rollout of two worlds."""
    folder = tmp_path_factory.mktemp("rolled")
    given = np.linspace(-1, 1, 7 * 2).reshape(7, 2, 1)
    np.savez(folder / "ctrl.npz", ctrl=given)
    argv = ["--nworld", "2", "--every", "2", "--keyframe", "hanging", "--controls", str(folder / "ctrl.npz"), "--quiet"]
    files = ["--out", str(folder / "out.npz"), "--html", str(folder / "page.html")]
    status = main(["rollout", CARTPOLE, *argv, *files])
    return status, np.load(folder / "out.npz"), (folder / "page.html").read_text(), given


def test_rollout_records_every_nth_step_and_the_last(rolled):
    status, frames, _, _ = rolled
    assert status == 0
    assert frames["qpos"].shape == (4, 2, 2) and frames["sensordata"].shape == (4, 2, 7)
    np.testing.assert_allclose(frames["time"][:, 0], [0.02, 0.04, 0.06, 0.07], rtol=1e-5)


def test_rollout_follows_given_controls_from_the_keyframe(rolled):
    _, frames, _, given = rolled
    np.testing.assert_allclose(frames["ctrl"], given[[1, 3, 5, 6]], rtol=1e-6)
    assert np.abs(frames["qpos"][..., 1]).min() > 3


def test_rollout_writes_a_page(rolled):
    assert rolled[2].startswith("<!doctype html>") and "cartpole" in rolled[2]


def test_dropped_contacts_are_reported_with_the_remedy(capsys, files):
    argv = ["--nworld", 2, "--nstep", 3, "--max-contacts", 1, "--quiet"]
    status, out, err = run(capsys, "rollout", files / "pair.xml", *argv)
    assert status == 0 and "no capacity overflowed" not in out
    assert "warning: " in err and "contacts were dropped in 2 of 2 worlds" in err
    assert int(re.search(r"--max-contacts (\d+)", err).group(1)) >= 2


def test_divergence_is_reported(capsys, files, tmp_path):
    np.savez(tmp_path / "ctrl.npz", ctrl=np.full((4, 1), 1e6))
    argv = ["--nworld", 2, "--controls", tmp_path / "ctrl.npz", "--quiet"]
    status, _, err = run(capsys, "rollout", files / "mass.xml", *argv)
    assert status == 0 and "2 of 2 worlds diverged" in err


def test_bench_writes_json(capsys, files, tmp_path):
    argv = ["--nworld", 2, "--nstep", 2, "--settle", 0, "--against", "mujoco,mjwarp", "--json", tmp_path / "b.json"]
    status, out, _ = run(capsys, "bench", files / "mass.xml", *argv)
    assert status == 0 and "jaxsim's speed over mujoco's" in out
    report = json.loads((tmp_path / "b.json").read_text())
    own = report["jaxsim"]
    for name in ("load_s", "trace_s", "compile_s", "operations", "dispatch_ms", "peak_rss_mb"):
        assert own[name] > 0
    assert own["operations"] > own["stages"]["kinematics"] > 10
    assert own["one_world"]["nworld"] == 1 and own["batches"][0]["nworld"] == 2
    assert all(row["steps_per_s"] > 0 for row in (own["one_world"], *own["batches"]))
    assert report["peers"]["mujoco"]["one_world"] > 0 and report["ratios"]["mujoco"]["one_world"] > 0
    assert report["model"]["name"] == "mass" and report["machine"]["jax"]
