"""Environments of the user's own modules, by `module:name`."""

import pytest

from jaxsim import envs

TASK = """
from jaxsim import envs
from jaxsim.envs.tasks.stub import Stub, StubConfig
envs.register("{0}", Stub, StubConfig(nobs=7))
"""


def test_a_name_may_say_its_module(tmp_path, monkeypatch):
    (tmp_path / "own_tasks.py").write_text(TASK.format("of_a_module"))
    monkeypatch.syspath_prepend(tmp_path)
    for _ in range(2):
        assert envs.make("own_tasks:of_a_module", naction=3).observation_size == 7


def test_a_name_may_say_its_file(tmp_path):
    path = tmp_path / "tasks.py"
    path.write_text(TASK.format("of_a_file"))
    for _ in range(2):
        assert envs.make(f"{path}:of_a_file").observation_size == 7
    assert envs.default_config(f"{path}:of_a_file").nobs == 7


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file 'no\.py'"):
        envs.make("no.py:spin")
    with pytest.raises(ImportError, match="no_such_module"):
        envs.make("no_such_module:spin")
    with pytest.raises(KeyError, match="did you mean stub"):
        envs.make("jaxsim.envs:stubb")
