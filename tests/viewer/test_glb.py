"""glTF files of textured triangles, read back by trimesh, which viser brings."""

import io

import numpy as np
import trimesh

from jaxsim.viewer.glb import glb_bytes


def test_trimesh_reads_what_is_written():
    rng = np.random.default_rng(0)
    corner = rng.normal(size=(6, 8))
    corner[:, 3:6] /= np.linalg.norm(corner[:, 3:6], axis=1, keepdims=True)
    image = rng.integers(0, 256, (5, 7, 3), dtype=np.uint8)
    written = glb_bytes(corner, image, np.array([1.0, 0.5, 0.0, 0.5]))
    (mesh,) = trimesh.load(
        io.BytesIO(written), file_type="glb", process=False, merge_primitives=False
    ).geometry.values()
    assert np.allclose(mesh.vertices[mesh.faces.ravel()], corner[:, :3], atol=1e-6)
    assert np.allclose(mesh.vertex_normals[mesh.faces.ravel()], corner[:, 3:6], atol=1e-6)
    assert np.allclose(mesh.visual.uv[mesh.faces.ravel()], corner[:, 6:], atol=1e-6)
    material = mesh.visual.material
    assert np.array_equal(np.asarray(material.baseColorTexture.convert("RGB")), image)
    assert material.alphaMode == "BLEND" and np.allclose(material.baseColorFactor / 255, [1, 0.5, 0, 0.5], atol=0.01)
