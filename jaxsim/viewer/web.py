"""Interactive viewer in the browser: orbit, pause, step, reset, drag bodies, set controls, plot sensors.

Based on viser, which serves the page and updates it. The machine of the browser needs no installation, so that it works
over SSH with a forwarded port. `Viewer.run` calls `advance` and `draw` in real time.
"""

import threading
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.types import GeomType
from jaxsim.engine.actuation.forces import control_range
from jaxsim.engine.dynamics.rne import contact_forces
from jaxsim.math.safe import Array
from jaxsim.viewer.deformables import surface_triangles, surfaces
from jaxsim.viewer.frames import FLEX, TENDON, place
from jaxsim.viewer.glb import glb_bytes
from jaxsim.viewer.html import quaternions, sky_colours
from jaxsim.viewer.shapes import geom_material, geom_triangles, joint_axes, tendon_segments, visible

try:
    import viser
    from viser import uplot
except ImportError as error:
    raise ImportError("the viewer needs viser: pip install 'jaxsim-mjcf[viewer]'") from error

# numbers along the axis: by default they are dates
SECONDS = {"scales": {"x": uplot.Scale(time=False)}, "axes": (uplot.Axis(label="time, s"), uplot.Axis())}
HISTORY = 300  # samples of a plot
DRAWN = ("time", "qpos", "sensordata", "xpos", "xmat", "geom_xpos", "geom_xmat", "xanchor", "xaxis", "ncon")
DRAWN += ("cam_xpos", "cam_xmat")
KEYS = {
    "space": "run or pause",
    "n": "one step",
    "backspace": "back to the keyframe",
    "c": "next camera",
    "Ctrl and left drag on a body": "pull it",
    "left drag, right drag, wheel": "rotate, move, zoom",
}
DRAG_STIFFNESS = 200.0  # 1/s^2: acceleration of a dragged body per metre


class Viewer:
    """Interactive viewer of a model, served as a page.

    Args:
        m: the model.
        keyframe: initial state, also of the button Reset; None for qpos0.
        host: address to listen on.
        port: port to listen on, or the next free one.
        paused: start with the simulation paused.
        server: a viser server to draw in, instead of a new one.
    """

    def __init__(
        self,
        m: Model,
        keyframe: int | None = None,
        host: str = "127.0.0.1",
        port: int = 8080,
        paused: bool = False,
        server: Any = None,
    ):
        self.m, self.keyframe = m, keyframe
        self.shown = jax.device_get(m)  # of which single numbers are read
        self.server = server or viser.ViserServer(host=host, port=port, label=m.modelname or "jaxsim", verbose=False)
        self.lock = threading.Lock()
        self.size = float(m.stat.extent)
        self._step, self._forward = jaxsim.jit(_steps), jaxsim.jit(jaxsim.forward)
        self.ready = threading.Event()  # set when the step is compiled
        self._target: np.ndarray | None = None  # point to which the dragged body is pulled
        self._pulled = 0  # body that the mouse pulls
        self._times: list[float] = []
        self._values: list[np.ndarray] = []
        self.geoms = self._add_geoms()
        self.surfaces = surfaces(self.shown)
        self._add_view()
        self._add_panel(paused)
        self.reset()
        threading.Thread(target=self._compile, daemon=True).start()

    @property
    def port(self) -> int:
        """Port in use."""
        return self.server.get_port()

    # Simulation.

    def reset(self) -> None:
        """Return to the keyframe, or qpos0."""
        with self.lock:
            chosen = self.keyframes.value if self.m.nkey else "qpos0"
            d = jaxsim.make_data(self.m, None if chosen == "qpos0" else int(chosen.split()[0]))
            for slider, value in zip(self.sliders, np.asarray(d.ctrl), strict=True):
                slider.value = float(np.clip(value, slider.min, slider.max))
            # until `forward` is compiled, poses by NumPy
            self.data = self._forward(self.m, d) if self.ready.is_set() else place(self.shown, jax.device_get(d))
            self._times, self._values = [], []
        self.draw()

    def _compile(self) -> None:
        """Compile `forward` and the step, while the model is already shown; then compute contacts and sensors."""
        d = jax.block_until_ready(self._forward(self.m, self.data))
        none = np.zeros(3)
        ctrl = np.array([slider.value for slider in self.sliders])
        jax.block_until_ready(self._step(self.m, d, ctrl, 0, none, False, 0))
        with self.lock:
            self.data = self._forward(self.m, self.data)
            self.ready.set()
        self.draw()

    def advance(self, nstep: int) -> None:
        """Make `nstep` physics steps with the controls of the sliders and the force on the dragged body.

        Waits until the step is compiled.
        """
        self.ready.wait()
        with self.lock:
            body = self._dragged()
            pull = np.zeros(3) if self._target is None else self._target
            ctrl = np.array([slider.value for slider in self.sliders])
            self.data = self._step(self.m, self.data, ctrl, body, pull, self._target is not None, nstep)
            self._times.append(float(self.data.time))
            self._values.append(np.asarray(self.data.sensordata))
            del self._times[:-HISTORY], self._values[:-HISTORY]

    def _advance_and_draw(self) -> None:
        self.advance(1)
        self.draw()

    def run(self, seconds: float = np.inf, fps: float = 30.0) -> None:
        """Simulate and draw at the chosen multiple of real time, until interrupted or for `seconds`."""
        begin = time.perf_counter()
        owed = 0.0
        while time.perf_counter() - begin < seconds:
            start = time.perf_counter()
            if self.playing.value and self.ready.is_set():
                owed += self.speed.value / fps / float(self.m.opt.timestep)
                if int(owed):
                    self.advance(int(owed))
                owed -= int(owed)
                self.draw()
            time.sleep(max(0.0, 1 / fps - (time.perf_counter() - start)))

    # Scene.

    def draw(self) -> None:
        """Update the page to the current state."""
        with self.lock:
            names = DRAWN + (TENDON if self.m.ntendon else ()) + (FLEX if self.m.nflex else ())
            frame = jax.device_get({n: getattr(self.data, n) for n in names})
            contact = jax.device_get({n: getattr(self.data.contact, n) for n in ("pos", "frame")})
            force = np.asarray(self._contact_forces(self.data)) if self.show["contact forces"].value else None
        quat = quaternions(frame["geom_xmat"]) if self.m.ngeom else np.zeros((0, 4))
        with self.server.atomic():
            for g, handle in self.geoms.items():
                handle.position, handle.wxyz = frame["geom_xpos"][g], quat[g]
            self._draw_surfaces(frame)
            self._draw_lines(frame, contact, force)
        self._look()
        self._draw_panel(frame)

    def _draw_surfaces(self, frame: dict) -> None:
        """Draw flexes and skins, whose triangles move: meshes of one colour that replace those of the last frame."""
        for i, s in enumerate(self.surfaces):
            rows = surface_triangles(self.shown, s, frame)
            points, faces = _merge_vertices(rows[:, :3])
            colour = tuple(round(255 * c) for c in np.clip(s.rgba[:3], 0, 1))
            opacity = float(s.rgba[3]) if s.rgba[3] < 1 else None
            name = f"/surfaces/{i}"
            self.server.scene.add_mesh_simple(
                name, points, faces, color=colour, opacity=opacity, flat_shading=not s.smooth, side="double"
            )

    def _add_geoms(self) -> dict[int, Any]:
        """Add a mesh for each visible geom, textured where the geom shows an image; returns the handles by geom id."""
        m, scene = self.shown, self.server.scene
        scene.set_up_direction("+z")
        handles = {}
        for g in range(m.ngeom):
            if not visible(m, g, tuple(range(6))):
                continue
            name, material = f"/geoms/{g}_{m.id2name('geom', g)}", geom_material(m, g)
            rows = geom_triangles(m, g, 10 * self.size + 5)
            faces = np.arange(len(rows)).reshape(-1, 3)
            if material.image is None:
                colour = tuple(round(255 * c) for c in np.clip(material.rgba[:3], 0, 1))
                opacity = float(material.rgba[3]) if material.rgba[3] < 1 else None
                points, faces = _merge_vertices(rows[:, :3])
                flat = m.geom_type[g] in (GeomType.BOX, GeomType.CYLINDER, GeomType.PLANE)
                handles[g] = scene.add_mesh_simple(
                    name, points, faces, color=colour, opacity=opacity, flat_shading=flat, side="double"
                )
                continue
            rows[:, 6:8] *= material.repeat
            handles[g] = scene.add_glb(name, glb_bytes(rows, material.image, material.rgba))
        for g, handle in handles.items():
            handle.visible = visible(m, g)
            self._pull_with_mouse(handle, int(m.geom_bodyid[g]))
        return handles

    def _pull_with_mouse(self, handle: Any, body: int) -> None:
        """Let Ctrl and a drag of the left button pull a geom's body by the point that was taken."""
        if not self.m.body_weldid[body] or not hasattr(handle, "on_drag"):
            return

        @handle.on_drag("left", modifier="cmd/ctrl")
        def _(event: Any) -> None:
            if event.phase == "end":
                self._target, self._pulled = None, 0
                return
            change = np.subtract(event.end_position, event.start_position)
            self._target, self._pulled = np.asarray(self.data.xpos[body]) + change, body

    def _add_view(self) -> None:
        """Set the sky, lights that cast shadows and the initial camera."""
        self.server.scene.configure_default_lights(enabled=True, cast_shadow=True)
        colour = np.round(255 * np.array(sky_colours(self.shown))[::-1]).astype(np.uint8)
        rows = np.linspace(1, 0, 64)[:, None]
        sky = colour[0] * (1 - rows) + colour[1] * rows
        self.server.scene.set_background_image(np.repeat(sky[:, None], 8, 1).astype(np.uint8))
        view, center = self.m.vis.global_, np.asarray(self.m.stat.center)
        turn, lift = np.deg2rad([float(view.azimuth), float(view.elevation)])
        ahead = np.array([np.cos(lift) * np.cos(turn), np.cos(lift) * np.sin(turn), np.sin(lift)])
        camera = self.server.initial_camera
        camera.position, camera.look_at = tuple(center - 1.8 * self.size * ahead), tuple(center)
        camera.fov = float(np.deg2rad(view.fovy))

    def _draw_lines(self, frame: dict, contact: dict, force: np.ndarray | None) -> None:
        """Draw contact points and forces, joint axes, tendons and the line to the target of the dragged body."""
        ncon, none = int(frame["ncon"]), np.zeros((0, 2, 3))
        points = contact["pos"][:ncon]
        normal = contact["frame"].reshape(-1, 3, 3)[:ncon, 0]
        normals = np.stack([points, points + 0.04 * self.size * normal], 1) if ncon else none
        self._lines("contacts", normals if self.show["contact points"].value else none, (255, 200, 40))
        arrows = none
        if force is not None and ncon:
            scale = 0.3 * self.size / max(float(self.m.stat.meanmass) * 9.81 * self.m.nbody, 1e-9)
            arrows = np.stack([points, points + scale * force[:ncon]], 1)
        self._lines("forces", arrows, (240, 60, 60))
        axes = joint_axes(self.m, frame, 0.15 * self.size) if self.show["joint axes"].value else none
        self._lines("axes", axes, (60, 120, 240))
        tendons = tendon_segments(self.m, frame) if self.show["tendons"].value else []
        for t in range(self.m.ntendon):
            colour = tuple(int(255 * c) for c in np.clip(self.shown.tendon_rgba[t, :3], 0, 1))
            self._lines(f"tendon_{t}", tendons[t] if tendons else none, colour)
        pull = none
        if self._target is not None:
            pull = np.stack([frame["xpos"][self._dragged()], self._target])[None]
        self._lines("pull", pull, (40, 220, 120))

    def _lines(self, name: str, segments: np.ndarray, colour: tuple[int, ...]) -> None:
        """Show segments (n, 2, 3) under a name, or hide them if there are none."""
        handle = self._handles.get(name)
        if not len(segments):
            if handle is not None:
                handle.visible = False
            return
        segments = np.asarray(segments, np.float32)
        if handle is None:
            self._handles[name] = self.server.scene.add_line_segments(
                f"/lines/{name}", segments, np.array(colour), thickness=0.006 * self.size
            )
            return
        handle.points, handle.visible = segments, True

    @staticmethod
    @jax.jit
    def _contact_forces(d: Data) -> Array:
        """Force (ncontact, 3) of each contact on its second geom, in the world frame."""
        return jnp.einsum("ci,cij->cj", contact_forces(d)[:, :3], d.contact.frame.reshape(-1, 3, 3))

    # Panel.

    def _add_panel(self, paused: bool) -> None:
        """Add the buttons, sliders and plots."""
        gui, m = self.server.gui, self.shown
        self._handles: dict[str, Any] = {}
        self.status = gui.add_markdown("")
        self.playing = gui.add_checkbox("Run", not paused)
        keys = ["qpos0"] + [f"{i} {m.id2name('key', i)}".strip() for i in range(m.nkey)]
        at = keys[0] if self.keyframe is None else keys[1 + self.keyframe]
        self.keyframes = gui.add_dropdown("Keyframe", keys, initial_value=at, visible=m.nkey > 0)
        self.keyframes.on_update(lambda _: self.reset())
        cameras = ["free"] + [f"{i} {m.id2name('camera', i)}".strip() for i in range(m.ncam)]
        self.camera = gui.add_dropdown("Camera", cameras, initial_value="free", visible=m.ncam > 0)
        self.camera.on_update(lambda _: self._look())
        self.speed = gui.add_slider("Speed", 0.05, 4.0, 0.05, 1.0, hint="simulated seconds per second")
        gui.add_button("Step").on_click(lambda _: self._advance_and_draw())
        gui.add_button("Reset").on_click(lambda _: self.reset())
        with gui.add_folder("Drag"):
            self._names = ["none"] + [f"{b} {m.id2name('body', b)}".strip() for b in range(1, m.nbody)]
            self.drag = gui.add_dropdown("Body", self._names, initial_value="none")
            self.drag.on_update(lambda _: self._grab())
        with gui.add_folder("Show"):
            off = ("contact points", "contact forces", "joint axes")
            self.show = {name: gui.add_checkbox(name.capitalize(), False) for name in off}
            self.show["tendons"] = gui.add_checkbox("Tendons", True, visible=m.ntendon > 0)
            used = sorted({int(np.clip(m.geom_group[g], 0, 5)) for g in self.geoms})
            self.groups = {i: gui.add_checkbox(f"Group {i}", i < 3) for i in used}
            for box in self.groups.values():
                box.on_update(lambda _: self._show_groups())
            for box in self.show.values():
                box.on_update(lambda _: self.draw())
        with gui.add_folder("Keys", expand_by_default=False):
            gui.add_markdown("\n".join(f"- {key}: {what}" for key, what in KEYS.items()))
        self._add_hotkeys()
        low, high = control_range(m)
        self.sliders = []
        with gui.add_folder("Controls", visible=m.nu > 0, expand_by_default=m.nu <= 12):
            for i in range(m.nu):
                name = m.id2name("actuator", i) or f"actuator {i}"
                start = float(np.clip(0.0, low[i], high[i]))
                step = max(float(high[i] - low[i]) / 200, 1e-6)
                self.sliders.append(gui.add_slider(name, float(low[i]), float(high[i]), step, start))
        self.sensor: Any = None
        self.plot: Any = None
        if m.nsensor:
            with gui.add_folder("Sensors"):
                names = [f"{i} {m.id2name('sensor', i)}".strip() for i in range(m.nsensor)]
                self.sensor = gui.add_dropdown("Sensor", names, initial_value=names[0])
                self.sensor.on_update(lambda _: self._new_plot())
                self._plots = gui.add_folder("Plot")
            self._new_plot()

    def _add_hotkeys(self) -> None:
        """Bind keys, where viser has commands."""
        gui = self.server.gui
        if not hasattr(gui, "add_command"):
            return
        actions: dict[str, tuple[Any, Any]] = {
            "Run or pause": ("space", lambda _: setattr(self.playing, "value", not self.playing.value)),
            "One step": ("N", lambda _: self._advance_and_draw()),
            "Reset": ("backspace", lambda _: self.reset()),
            "Next camera": ("C", lambda _: self._next_camera()),
        }
        for label, (key, act) in actions.items():
            gui.add_command(label, hotkey=key).on_trigger(act)

    def _next_camera(self) -> None:
        options = list(self.camera.options)
        self.camera.value = options[(options.index(self.camera.value) + 1) % len(options)]
        self._look()

    def _look(self) -> None:
        """Place the cameras of all pages at the chosen camera of the model; the free one stays where it is."""
        if self.camera.value == "free":
            return
        i = int(self.camera.value.split()[0])
        eye, mat = np.asarray(self.data.cam_xpos[i]), np.asarray(self.data.cam_xmat[i]).reshape(3, 3)
        for client in self.server.get_clients().values():
            with client.atomic():
                client.camera.up_direction = tuple(mat[:, 1])
                client.camera.position, client.camera.look_at = tuple(eye), tuple(eye - self.size * mat[:, 2])
                client.camera.fov = float(np.deg2rad(self.m.cam_fovy[i]))

    def _show_groups(self) -> None:
        """Show the geoms of the chosen groups."""
        shown = tuple(i for i, box in self.groups.items() if box.value)
        for g, handle in self.geoms.items():
            handle.visible = visible(self.shown, g, shown)

    def _rows(self) -> np.ndarray:
        """Indices in `sensordata` of the chosen sensor."""
        i = int(self.sensor.value.split()[0])
        return np.arange(self.m.sensor_adr[i], self.m.sensor_adr[i] + self.m.sensor_dim[i])

    def _new_plot(self) -> None:
        """Replace the plot by one with a line for each value of the chosen sensor."""
        if self.plot is not None:
            self.plot.remove()
        rows = self._rows()
        colours = ("#d1495b", "#2e86ab", "#3c9d5d", "#8e5aa8", "#c98a1b", "#555555")
        lines = (uplot.Series(label=str(k), stroke=colours[k % len(colours)], width=2) for k in range(len(rows)))
        empty = tuple(np.zeros(1) for _ in range(len(rows) + 1))
        with self._plots:
            self.plot = self.server.gui.add_uplot(empty, (uplot.Series(label="time, s"), *lines), aspect=1.6, **SECONDS)

    def _draw_panel(self, frame: dict) -> None:
        """Update status and plot."""
        compiling = "" if self.ready.is_set() else "compiling the step; the model stands still until then\n\n"
        self.status.content = f"{compiling}time {float(frame['time']):.3f} s, {int(frame['ncon'])} contacts"
        if self.plot is not None and len(self._times) > 1:
            values = np.array(self._values)[:, self._rows()]
            self.plot.data = (np.array(self._times), *values.T)

    def _dragged(self) -> int:
        """Id of the dragged body, 0 for none."""
        if self._pulled:
            return self._pulled
        return 0 if self.drag.value == "none" else int(self.drag.value.split()[0])

    def _grab(self) -> None:
        """Put a movable handle on the chosen body, which is pulled to the handle."""
        if (old := self._handles.pop("grip", None)) is not None:
            old.remove()
        self._target = None
        body = self._dragged()
        if not body:
            return
        position = np.asarray(self.data.xpos[body])
        grip = self.server.scene.add_transform_controls(
            "/grip", scale=0.2 * self.size, disable_rotations=True, position=position
        )
        self._handles["grip"], self._target = grip, position

        @grip.on_update
        def _(_: Any) -> None:
            self._target = np.asarray(grip.position)


def _steps(m: Model, d: Data, ctrl: Array, body: Array, target: Array, pulled: Array, nstep: Array) -> Data:
    """Data after `nstep` steps, where `pulled` with a damped spring from the origin of a body to a target.

    The stiffness is `DRAG_STIFFNESS` times the mass of the body's subtree.
    """
    d = d.replace(ctrl=ctrl)

    def one(_: Array, d: Data) -> Data:
        acceleration = (target - d.xpos[body]) * DRAG_STIFFNESS - 2 * np.sqrt(DRAG_STIFFNESS) * d.cvel[body, 3:]
        force = jnp.where(pulled, m.body_subtreemass[body] * acceleration, 0)
        wrench = jnp.concatenate([force, jnp.zeros_like(force)])
        return jaxsim.step(m, d.replace(xfrc_applied=jnp.zeros_like(d.xfrc_applied).at[body].set(wrench)))

    return jax.lax.fori_loop(0, nstep, one, d)


def _merge_vertices(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct vertices (n, 3) of triangle corners (3 nface, 3), and the faces (nface, 3)."""
    rounded, index = np.unique(np.round(points, 9), axis=0, return_inverse=True)
    return rounded.astype(np.float32), index.reshape(-1, 3).astype(np.uint32)
