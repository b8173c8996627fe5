"""Pictures of jaxsim beside those of MuJoCo's renderer: `MUJOCO_GL=osmesa python -m validation.pictures [FOLDER]`.

For every camera of twelve models of `models/` and ten of other collections, and for the free camera: the mean
difference of colours in percent of full scale, the part of pixels that show the same object, and the mean difference
of the pictures that `jaxsim render` and Gymnasium's `rgb_array` make. With a folder, pictures are written there.
MuJoCo draws without reflections and lines of rangefinders. Needs `mujoco`, `dm_control`, `gymnasium` and OSMesa.
"""

import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import jax
import mujoco
import numpy as np

import jaxsim
from jaxsim.viewer import raycast, render
from jaxsim.viewer.frames import place
from jaxsim.viewer.png import png_bytes

WIDTH, HEIGHT = 160, 120
OWN = ("humanoid", "ant", "arm_hulls", "kitchen", "flag", "hand", "jelly_cube", "quadruped_rough", "soft_gripper")
OWN += ("tablecloth", "rope_bridge", "mesh_gripper")
SUITE = ("cheetah", "dog", "fish", "humanoid_CMU", "quadruped", "swimmer", "finger")
GYM = ("humanoid", "pusher_v5", "walker2d_v5")


def models() -> dict[str, Path]:
    """Models by name."""
    found = {f"models/{n}": Path(__file__).parents[1] / "models" / f"{n}.xml" for n in OWN}
    for package, names, inside in (("dm_control", SUITE, "suite"), ("gymnasium", GYM, "envs/mujoco/assets")):
        spec = find_spec(package)
        if spec is not None and spec.origin:
            found |= {f"{package}/{n}": Path(spec.origin).parent / inside / f"{n}.xml" for n in names}
    return found


def mujoco_pictures(
    model: mujoco.MjModel, data: mujoco.MjData, cameras: list[int]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Colours (h, w, 3), bytes, and segmentation (h, w, 2) by MuJoCo."""
    found = []
    option = mujoco.MjvOption()
    option.flags[mujoco.mjtVisFlag.mjVIS_RANGEFINDER] = 0
    with mujoco.Renderer(model, HEIGHT, WIDTH) as renderer:
        for camera in cameras:
            renderer.update_scene(data, camera, option)
            renderer.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
            colours = renderer.render()
            renderer.enable_segmentation_rendering()
            found.append((colours, renderer.render()))
            renderer.disable_segmentation_rendering()
    return found


def compare(path: Path) -> list[tuple[str, float, float, float, np.ndarray]]:
    """For each camera its name, difference of colours, part of pixels of the same object, difference of `render`."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    if model.nhfield:  # models come with flat ground, which lies in another plane
        model.hfield_data[:] = 0.5 + 0.5 * np.sin(0.7 * np.arange(len(model.hfield_data)))
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    cameras = [-1, *range(model.ncam)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m = jaxsim.load_model(path)
        m = m.replace(hfield_data=np.asarray(model.hfield_data)) if m.nhfield else m
        d = jax.jit(place)(m, jaxsim.make_data(m, 0 if m.nkey else None))
    own = jax.jit(lambda m, d: raycast.render_many(m, d, cameras, WIDTH, HEIGHT))(m, d)
    out = []
    for camera, (colours, objects), image in zip(cameras, mujoco_pictures(model, data, cameras), own, strict=True):
        rgb = np.asarray(image.rgb) * 255
        state = {name: np.asarray(getattr(d, name))[None] for name in render.STATE}
        drawn = render.render(m, state, camera, WIDTH, HEIGHT)[0]
        same = (np.asarray(image.segmentation) == objects).all(-1)
        name = "free" if camera < 0 else m.id2name("camera", camera) or str(camera)
        pair = np.concatenate(
            [colours, rgb.round().astype(np.uint8), np.repeat((~same * 255).astype(np.uint8)[..., None], 3, -1)], 1
        )
        error = [100 * np.abs(x.astype(float) - colours).mean() / 255 for x in (rgb, drawn)]
        out.append((name, error[0], 100 * same.mean(), error[1], pair))
    return out


def main(folder: str | None = None, only: str = "") -> None:
    worst = [0.0, 100.0, 0.0]
    for name, path in models().items():
        if only not in name:
            continue
        for camera, colour, same, drawn, pair in compare(path):
            marks = "".join(" <-" if bad else "" for bad in (colour > 3 or same < 98 or drawn > 3,))
            print(
                f"{name:32s} {camera:16s} colours {colour:5.2f} %  same object {same:6.2f} %  "
                f"render {drawn:5.2f} %{marks}",
                flush=True,
            )
            worst = [max(worst[0], colour), min(worst[1], same), max(worst[2], drawn)]
            if folder:
                file = Path(folder) / f"{name.replace('/', '_')}_{camera.replace('/', '_')}.png"
                file.write_bytes(png_bytes(pair))
        jax.clear_caches()
    print(f"worst: colours {worst[0]:.2f} %, same object {worst[1]:.2f} %, render {worst[2]:.2f} %")


if __name__ == "__main__":
    main(*sys.argv[1:])
