"""Environments of the user's own modules, by `module:name`."""

import pytest

from jaxsim import envs
from jaxsim.envs import registry
from jaxsim.envs.tasks.stub import Stub, StubConfig

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


OWN = """
from jaxsim import envs
from jaxsim.envs.tasks.stub import Stub, StubConfig
class Own(Stub):
    def observe(self, data, info): return super().observe(data, info)
envs.register("of_twice", Own, StubConfig(nobs=7))
"""


def test_what_is_registered_from_the_same_file_twice_is_one(tmp_path, monkeypatch):
    path = tmp_path / "twice_tasks.py"
    path.write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    assert type(envs.make(f"{path}:of_twice")) is not type(envs.make("twice_tasks:of_twice"))


def test_a_name_of_another_is_refused():
    with pytest.raises(ValueError, match="an environment named 'cartpole_balance' is registered already"):
        envs.register("cartpole_balance", Stub, StubConfig())
    with pytest.raises(ValueError, match="an environment named 'stub' is registered already"):
        envs.register("stub", Stub, StubConfig(nobs=99))


def test_those_that_follow_are_told_as_well():
    told = []
    registry.for_each_name(told.append)
    assert set(told) == set(envs.names())
    envs.register("follows", Stub, StubConfig())
    assert told[-1] == "follows"


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file 'no\.py'"):
        envs.make("no.py:spin")
    with pytest.raises(ImportError, match="no_such_module"):
        envs.make("no_such_module:spin")
    with pytest.raises(KeyError, match="did you mean 'stub'"):
        envs.make("jaxsim.envs:stubb")
