"""PNG files written without Pillow, read back by it."""

import io

import numpy as np
import pytest
from PIL import Image

from jaxsim.viewer.png import png_bytes, reduced


@pytest.mark.parametrize("shape", [(1, 1, 3), (5, 7, 3), (64, 3, 3)])
def test_pillow_reads_what_is_written(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    with Image.open(io.BytesIO(png_bytes(pixels))) as image:
        image.verify()
    with Image.open(io.BytesIO(png_bytes(pixels))) as image:
        assert image.mode == "RGB" and np.array_equal(np.asarray(image), pixels)


@pytest.mark.parametrize("pixels", [np.zeros((2, 2, 4), np.uint8), np.zeros((2, 2, 3))])
def test_other_arrays_are_refused(pixels):
    with pytest.raises(ValueError, match="uint8"):
        png_bytes(pixels)


def test_large_images_are_means_of_blocks():
    pixels = np.random.default_rng(0).integers(0, 256, (9, 4, 3), dtype=np.uint8)
    assert reduced(pixels, 9) is pixels
    assert np.array_equal(reduced(pixels, 4)[1, 0], pixels[3:6, :3].mean((0, 1)).round())
    assert reduced(np.zeros((100, 1, 3), np.uint8), 10).shape == (10, 1, 3)
