"""The reader of GMSH files: what is broken is an error, in bounded time."""

import re
import struct

import numpy as np
import pytest

from jaxsim.core.errors import ModelError
from jaxsim.mjcf.flexcomp.gmsh import read_gmsh
from tests.mjcf.flex_files import GMSH, POINTS, TETRAHEDRA


@pytest.mark.parametrize("name", ["text22.msh", "binary22.msh", "ftetwild.msh", "text41.msh", "binary41.msh"])
def test_every_format_gives_the_same_points_and_elements(name):
    points, elements, dim = read_gmsh(GMSH[name])
    np.testing.assert_array_equal(points, POINTS)
    np.testing.assert_array_equal(elements, TETRAHEDRA)
    assert dim == 3


@pytest.mark.parametrize("name", GMSH)
def test_a_file_that_is_cut_anywhere_is_an_error(name):
    data = GMSH[name]
    for length in np.linspace(0, len(data) - 16, 60).astype(int):
        with pytest.raises(ModelError, match="GMSH file"):
            read_gmsh(data[:length])


@pytest.mark.parametrize("name", GMSH)
def test_a_file_with_wrong_bytes_is_read_or_an_error_and_never_anything_else(name):
    rng = np.random.default_rng(len(name))
    for _ in range(150):
        data = bytearray(GMSH[name])
        for at in rng.integers(12, len(data), rng.integers(1, 8)):
            data[at] = rng.integers(256)
        try:
            points, elements, dim = read_gmsh(bytes(data))
        except ModelError:
            continue
        assert points.shape[1] == 3 and elements.shape[1] == dim + 1


@pytest.mark.parametrize(
    "change, words",
    [
        ((b"$MeshFormat", b"$MeshFormet"), "a GMSH file begins with $MeshFormat"),
        ((b"2.2 0", b"3.0 0"), "only the GMSH formats 2.2 and 4.1 are read"),
        ((b"$EndNodes", b"$EndNodez"), "the GMSH file has no complete section $Nodes"),
        ((b"$Elements\n", b"$Elements\n-"), "GMSH file: the line of the number of elements holds more than a number"),
        ((b"$Nodes\n14", b"$Nodes\n99999999999999"), "the GMSH file ends within its nodes"),
        ((b"$Nodes\n14", b"$Nodes\n14 "), "GMSH file: the line of the number of nodes holds more than a number"),
        ((b" 4 2 0 1 ", b" 5 2 0 1 "), "GMSH file: elements of type 5 are not read, only triangles (2) and"),
    ],
)
def test_what_the_reader_does_not_know_is_an_error(change, words):
    data = GMSH["text22.msh"]
    with pytest.raises(ModelError, match=re.escape(words)):
        read_gmsh(data.replace(*change, 1) if change[0] in data else data.replace(b"$Elements\n", b"$Elements\n-", 1))


def test_absurd_counts_are_refused_before_anything_is_made():
    data = GMSH["binary41.msh"]
    at = data.index(b"$Nodes\n") + 7
    lying = struct.pack("<4Q3iQ", 1, 2**40, 1, 2**40, 3, 1, 0, 2**40)
    with pytest.raises(ModelError, match="complete"):
        read_gmsh(data[:at] + lying + data[at + len(lying) :])
