"""MuJoCo's names of packed rows: what reading them costs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.core import data as module

XML = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
  <body pos="0 0 .09"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""


@pytest.fixture
def traces(monkeypatch):
    """The fields of packed rows that were traced, in order."""
    seen, values = [], module.slot_values

    def counted(efc, contact, cdof, field):
        seen.append(field)
        return values(efc, contact, cdof, field)

    monkeypatch.setattr(module, "slot_values", counted)
    module.packer.cache_clear()
    yield seen
    module.packer.cache_clear()


def test_packed_rows_are_compiled_once_for_a_shape(traces):
    m = jaxsim.load_model(XML)
    d = jax.jit(jaxsim.forward)(m, jaxsim.make_data(m))
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), d)
    for name in ("efc_force", "efc_J"):
        for x in (d, d.replace(time=1.0), batch, batch.replace(time=np.ones(2)), d):
            getattr(x, name)
    assert traces == ["force", "force", "J", "J"]  # one world, and a batch
    again = jaxsim.load_model(XML)
    jax.jit(jaxsim.forward)(again, jaxsim.make_data(again)).efc_force.block_until_ready()
    assert len(traces) == 4
    np.testing.assert_array_equal(batch.efc_J[1], d.efc_J)


def test_a_first_state_compiles_no_program(caplog):
    m = jaxsim.load_model("""<mujoco><worldbody><body name="hand" mocap="true" pos="0 0 1"><geom size=".1"/></body>
      <body><joint/><geom size=".123"/></body></worldbody></mujoco>""")
    with jax.log_compiles():
        d = jaxsim.make_data(m)
    assert not [x for x in caplog.messages if "Compiling" in x]
    np.testing.assert_array_equal(d.mocap_pos, [[0, 0, 1]])
    assert d.qpos.unsafe_buffer_pointer() != m.qpos0.unsafe_buffer_pointer()
