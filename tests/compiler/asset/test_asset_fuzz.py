"""Damaged files give an array or an error of ours, never another exception; within bounded time and memory."""

import contextlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxsim.compiler.asset.hfield import HFieldInput, compile_hfield
from jaxsim.compiler.asset.mesh import MeshInput, compile_mesh
from jaxsim.compiler.asset.skin import SkinInput, compile_skin
from jaxsim.compiler.asset.texture import TextureInput, compile_texture
from jaxsim.core.errors import ModelError, UnsupportedError
from tests.compiler.asset.test_skin import inline, skn
from tests.compiler.asset.test_texture import image, png
from tests.compiler.mesh_cases import l_shape, msh, obj, stl

VERTEX, FACE = l_shape()
FILES = {
    "stl": (stl(VERTEX[FACE]), lambda data: compile_mesh(MeshInput(file=data, filename="a.stl"))),
    "obj": (obj(VERTEX, FACE), lambda data: compile_mesh(MeshInput(file=data, filename="a.obj"))),
    "msh": (msh(VERTEX, FACE), lambda data: compile_mesh(MeshInput(file=data, filename="a.msh"))),
    "png": (png(image(9, 7)), lambda data: compile_texture(TextureInput(type="2d", file=data, filename="a.png"))),
    "hfield": (
        np.array([2, 3], "<i4").tobytes() + np.arange(6, dtype="<f4").tobytes(),
        lambda data: compile_hfield(HFieldInput(size=(1, 1, 1, 1), file=data, filename="a.bin")),
    ),
    "skn": (skn(inline()), lambda data: compile_skin(SkinInput(file=data, filename="a.skn"))),
}
EDITS = st.lists(st.tuples(st.floats(0, 0.999), st.binary(min_size=1, max_size=4)), min_size=1, max_size=4)


@pytest.mark.parametrize("kind", FILES)
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(edits=EDITS, length=st.sampled_from([1.0, 1.0, 1.0, 0.97, 0.5, 1.1]))
def test_damaged_files_are_read_or_refused(kind, edits, length):
    good, read = FILES[kind]
    data = bytearray((good + good)[: int(len(good) * length)])
    for place, value in edits:
        at = int(place * len(data))
        data[at : at + len(value)] = value
    with np.errstate(all="ignore"), contextlib.suppress(ModelError, UnsupportedError):
        read(bytes(data))


@pytest.mark.parametrize("kind", FILES)
def test_files_of_noise_are_refused(kind):
    rng = np.random.default_rng(0)
    for size in (1, 8, 100, 1000):
        with pytest.raises((ModelError, UnsupportedError)):
            FILES[kind][1](rng.bytes(size))
