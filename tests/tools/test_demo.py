"""The gallery of `jaxsim demo`: one page with a replay of each scene, which loads nothing from outside."""

import json
import re

import pytest

import jaxsim
from jaxsim.envs.base import model_path
from jaxsim.tools import cli, demo


@pytest.mark.parametrize("scene", demo.SCENES, ids=lambda s: s.name)
def test_scene_has_a_model_of_the_package_and_its_keyframe(scene):
    m = jaxsim.load_model(model_path(f"{scene.name}.xml"))
    assert m.name2id("key", scene.keyframe) >= 0


def test_page_holds_the_replay_of_the_simulated_scene(tmp_path, monkeypatch):
    (scene,) = (s for s in demo.SCENES if s.name == "double_pendulum")
    opened = []
    monkeypatch.setattr(cli.webbrowser, "open", opened.append)
    assert cli.main(["demo", "--scenes", scene.name, "--quiet", "--out", str(tmp_path / "demo.html")]) == 0
    page = (tmp_path / "demo.html").read_text(encoding="utf-8")
    assert not opened
    assert not re.search(r"(src|href)=\"?http", page)
    (entry,) = json.loads(re.search(r'<script id="pages" type="application/json">(.*?)</script>', page)[1])
    assert (entry["name"], entry["text"]) == (scene.name, scene.text)
    assert "<title>double_pendulum</title>" in entry["page"]
    replay = json.loads(re.search(r'<script id="scene" type="application/json">(.*?)</script>', entry["page"])[1])
    assert replay["nmoving"] == 3  # two capsules and a site


def test_page_is_opened_in_a_browser_where_no_file_is_named(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(demo, "replay", lambda scene, seed: f"<p>{scene.name}, {seed}</p>")
    monkeypatch.setattr(cli.tempfile, "mkdtemp", lambda prefix: str(tmp_path))
    opened = []
    monkeypatch.setattr(cli.webbrowser, "open", lambda address: opened.append(address))
    assert cli.main(["demo", "--seed", "3", "--quiet"]) == 0
    assert opened == [(tmp_path / "demo.html").as_uri()]
    assert "humanoid, 3" in (tmp_path / "demo.html").read_text(encoding="utf-8")
    assert "open the file" in capsys.readouterr().out
