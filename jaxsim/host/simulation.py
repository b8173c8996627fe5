"""`Simulation`: a simulation that owns its state, for loops in Python."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.errors import did_you_mean
from jaxsim.core.model import Model
from jaxsim.core.struct import build
from jaxsim.engine.step import forward
from jaxsim.engine.step.derived import CARRIED, carried_names
from jaxsim.engine.step.initial import make_data
from jaxsim.host.packing import Packing
from jaxsim.host.programs import Progress, ahead
from jaxsim.interface.arguments import check_data, check_model, check_worlds
from jaxsim.interface.overflow import warn_of_overflow
from jaxsim.math.safe import Array

STATE = tuple(name for name in CARRIED if name != "ctrl")
DERIVED = tuple(name for name in Data.LEAVES if name not in CARRIED)
CHECKED_EVERY = 256  # steps after which dropped contacts are looked for: to look waits for the device


class Simulation:
    """One world, or a batch of worlds, whose state changes in place.

    Args:
        m: the model.
        nworld: number of worlds; None for one without an axis of worlds.
        keyframe: the initial state, by name or index; None for qpos0.

    `sim.qpos`, `sim.sensordata`, `sim.contact` and every other field of `Data` are NumPy arrays, with an axis of worlds
    first in a batch. Each is the value at the moment of reading, and cannot be written to: `set` changes the state.
    After a step, derived fields are those that the step computed, at the state before it, as after MuJoCo's `mj_step`.
    After `reset`, `set` and a new model they are those of `forward` at the state.

    A loop that reads only the state does not compute sensors or other fields that the state does not need. The first
    read of a derived field compiles a second program, which later steps use.
    """

    def __init__(self, m: Model, nworld: int | None = None, keyframe: str | int | None = None):
        check_model(m, "Simulation", None)
        if not isinstance(nworld, int | np.integer | None):
            raise TypeError(f"Simulation: nworld is of type {type(nworld).__name__}; a state is set by sim.data = d")
        if nworld is not None and nworld < 1:
            raise ValueError(f"nworld is {nworld}, wanted None or a positive number of worlds")
        self.nworld = nworld
        self._lead = () if nworld is None else (nworld,)
        self._m = jax.tree.map(jnp.asarray, m)
        self._set_up(make_data(self._m))
        self._keep_derived = False
        self._nstep = 0
        self.reset(keyframe)

    def _set_up(self, one: Data) -> None:
        worlds = jax.tree.map(lambda x: jax.ShapeDtypeStruct((*self._lead, *x.shape), x.dtype), one)
        self._key = jax.tree.structure((self._m, one)), self._m.qpos0.dtype, self.nworld
        self._parts = _parts(*self._key, _Worlds(self._m, worlds))
        self._model = self._parts.pack_model(self._m)
        self._ctrl_like = worlds.ctrl

    @property
    def model(self) -> Model:
        """The model; it can be replaced by one of the same structure, with other numbers."""
        return self._m

    @model.setter
    def model(self, m: Model) -> None:
        check_model(m, "Simulation", None)
        m = jax.tree.map(jnp.asarray, m)
        if jax.tree.structure(m) != jax.tree.structure(self._m):
            raise ValueError("the new model has another structure: make a new Simulation of it")
        self._m, self._model = m, self._parts.pack_model(m)
        self._before = self._derived = None

    @property
    def data(self) -> Data:
        """The state with its derived fields, as a `Data` of JAX arrays; assigning one sets the state."""
        self._need_derived()
        d = self._parts.unpack(self._state, self._derived, self._ctrl)
        warn_of_overflow(self._m, d, wait=True)
        return d

    @data.setter
    def data(self, d: Data) -> None:
        if self.nworld is None:
            check_data(self._m, d, "Simulation.data")
        else:
            check_worlds(self._m, d, "Simulation.data", self.nworld)
        self._ctrl = np.array(d.ctrl)
        self._state = self._parts.pack_state(d)
        self._before = self._derived = None

    def reset(self, keyframe: str | int | None = None, worlds: Sequence[int] | np.ndarray | None = None) -> None:
        """Return to qpos0 or a keyframe, with clean counters; in a batch, only those of `worlds` (ids or a mask)."""
        d = make_data(self._m, keyframe, self.nworld)
        if worlds is None:
            self.data = d
            return
        if self.nworld is None:
            raise ValueError("this simulation has one world: reset() has no worlds to choose from")
        chosen = np.zeros(self.nworld, bool)
        chosen[np.asarray(worlds)] = True
        self.data = jax.tree.map(
            lambda new, old: jnp.where(chosen.reshape(-1, *[1] * (old.ndim - 1)), new, old), d, self.data
        )

    def set(self, **fields: Any) -> None:
        """Set fields of the state; in a batch, a value without an axis of worlds is that of all of them."""
        for name, value in fields.items():
            if name == "ctrl":
                self._ctrl = self._as_ctrl(value)
                continue
            if name not in STATE or name == "warning":
                raise TypeError(self._why_not_set(name))
            like = getattr(self, name)
            self._state = self._parts.state.written(self._state, name, self._fitted(name, value, like.shape))
        if fields.keys() != {"ctrl"}:  # controls alone leave what a step computed as it is
            self._before = self._derived = None

    def step(self, ctrl: Any = None, n: int = 1) -> None:
        """Make `n` steps under these controls; without controls, the last ones are kept."""
        if ctrl is not None:
            self._ctrl = self._as_ctrl(ctrl)
        before = self._state, self._ctrl, n
        self._state, derived = self._advance(*before, self._keep_derived)
        self._before, self._derived = before, derived or None
        self._nstep += 1
        if self._nstep % CHECKED_EVERY == 0:
            warn_of_overflow(self._m, self, wait=True)

    def block_until_ready(self) -> None:
        """Wait until all steps are done; reading a field waits too."""
        jax.block_until_ready(self._state)

    def __getattr__(self, name: str) -> Any:
        parts = self.__dict__.get("_parts")
        if parts is not None and not name.startswith("_"):
            if name == "ctrl":
                return self._ctrl
            if name in STATE:
                return parts.state.read(self._state, name)
            if name in parts.derived:
                self._need_derived()
                return parts.derived.read(self._derived, name)
            if hasattr(Data, name):  # objects by name, rows by MuJoCo's names
                return getattr(self.data, name)
        known = (*Data.LEAVES, *(x for x in dir(type(self)) if not x.startswith("_")))
        raise AttributeError(f"a Simulation has no {name!r}{did_you_mean(name, known)}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name[0] != "_" and name in Data.LEAVES:
            raise AttributeError(f"fields are read-only: use sim.set({name}=...)")
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        worlds = "one world" if self.nworld is None else f"{self.nworld} worlds"
        return f"Simulation of {self._m.modelname!r}, {worlds}, time {np.max(self.time):.6g} s"

    def __reduce__(self) -> Any:
        state = tuple(np.asarray(x) for x in self._state)
        return _restored, (jax.tree.map(np.asarray, self._m), self.nworld, state, np.asarray(self._ctrl))

    def _advance(self, state: Any, ctrl: Any, n: int, derived: bool) -> tuple[Any, Any]:
        if n == 1:
            return self._parts.program(False, derived)(self._model, state, ctrl)
        if n < 1 or n != int(n):
            raise ValueError(f"n is {n}, wanted a positive number of steps")
        return self._parts.program(True, derived)(self._model, state, ctrl, np.int32(n))

    def _need_derived(self) -> None:
        """Compute the derived fields of the last step anew if it left them out, or those of the state."""
        if self._derived is not None:
            return
        if self._before is None:
            self._derived = self._parts.forward(self._model, self._state, self._ctrl)[1]
            return
        self._keep_derived = True
        self._derived = self._advance(*self._before, True)[1]

    def _as_ctrl(self, value: Any) -> np.ndarray:
        like = self._ctrl_like
        new = np.array(value, like.dtype)  # a copy: the caller may write over it
        return new if new.shape == like.shape else np.array(self._fitted("ctrl", new, like.shape))

    def _fitted(self, name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
        """A value of one world for all of them, or one of each."""
        new = np.asarray(value)
        if new.shape == shape[len(self._lead) :]:
            return np.broadcast_to(new, shape)
        if new.shape != shape:
            raise ValueError(f"{name} has shape {new.shape}, wanted {shape}")
        return new

    def _why_not_set(self, name: str) -> str:
        if name in self._parts.derived:
            return f"{name} follows from the state, which alone can be set: {', '.join((*STATE, 'ctrl'))}"
        return f"Data has no field {name!r}{did_you_mean(name, (*STATE, 'ctrl'))}"


def _restored(m: Model, nworld: int | None, state: tuple, ctrl: np.ndarray) -> Simulation:
    sim = Simulation(m, nworld)
    sim._state, sim._ctrl = state, ctrl
    return sim


class _Worlds:
    """Example arguments for what is made once for a key; equal to any other, since they follow from the key."""

    def __init__(self, m: Model, d: Data):
        self.m, self.d = m, d

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Worlds)


class _Parts:
    """Data shared by simulations of one structure: positions of fields, and compiled programs."""

    def __init__(self, m: Model, d: Data, nworld: int | None):
        self.m, self.nworld = m, nworld
        self.model = Packing(dict(enumerate(jax.tree.leaves(m))))
        self.model_tree = jax.tree.structure(m)
        self.carried = tuple(name for name in carried_names(m) if name != "ctrl")
        self.state = Packing({name: getattr(d, name) for name in self.carried})
        self.derived = Packing({name: getattr(d, name) for name in DERIVED})
        self.ctrl = d.ctrl
        self.static = {name: getattr(d, name) for name in Data.STATIC}
        self.programs: dict[tuple[bool, bool], Callable[..., Any]] = {}
        self.shapes = {name: getattr(d, name) for name in DERIVED}

    def pack_model(self, m: Model) -> tuple[Array, ...]:
        return self.model.pack(dict(enumerate(jax.tree.leaves(m))))

    def pack_state(self, d: Data) -> tuple[Array, ...]:
        return self.state.pack({name: getattr(d, name) for name in self.carried})

    @functools.cached_property
    def unpack(self) -> Callable[..., Data]:
        """A compiled function from buffers of state and derived fields, and controls, to `Data`."""
        return jax.jit(lambda state, derived, ctrl: self._data(state, ctrl, self.derived.unpack(derived)))

    @functools.cached_property
    def forward(self) -> Callable[..., Any]:
        """A compiled function from model, state and controls to buffers of derived fields."""

        def run(model: Any, state: Any, ctrl: Array) -> Any:
            return (), self._pack(self._over(forward.forward)(self._model(model), self._data(state, ctrl)))[1]

        return self._compiled("forward", run)

    def program(self, many: bool, derived: bool) -> Callable[..., Any]:
        """Return a compiled function (model, state, ctrl) to buffers of state and, if wanted, of derived fields.

        With `many` it takes a number of steps as well; derived fields are those of the last.
        """
        if (many, derived) not in self.programs:
            self.programs[many, derived] = self._make_program(many, derived)
        return self.programs[many, derived]

    def _make_program(self, many: bool, derived: bool) -> Callable[..., Any]:
        step = self._over(forward.step)

        def run(model: Any, state: Any, ctrl: Array, n: Array | int = 1) -> Any:
            m = self._model(model)
            once = lambda _, state: self._pack(step(m, self._data(state, ctrl)))[0]  # noqa: E731
            if many and not derived:
                return jax.lax.fori_loop(0, n, once, state), ()
            if many:
                state = jax.lax.fori_loop(0, n - 1, once, state)
            state, rest = self._pack(step(m, self._data(state, ctrl)))
            return state, rest if derived else ()

        what = f"{'steps' if many else 'step'}{' with derived fields' if derived else ''}"
        return self._compiled(what, run, *([jax.ShapeDtypeStruct((), np.int32)] if many else []))

    def _compiled(self, what: str, function: Callable[..., Any], *more: Any) -> Callable[..., Any]:
        """The function, which gives buffers of state and of derived fields, compiled and kept on disk."""
        args = (self.model.shapes, self.state.shapes, self.ctrl, *more)
        worlds = "one world" if self.nworld is None else f"{self.nworld} worlds"
        title = f"{self.m.modelname or 'model'}, {worlds}, {what}"
        one_world = self.nworld is None
        program = ahead(function, args, self.m, ("Simulation", what), Progress(title, None), one_world)
        count = len(jax.tree.unflatten(program.results, range(program.results.num_leaves))[0])  # buffers of state

        def call(model: Any, state: Any, ctrl: Array, *n: Any) -> tuple[Any, Any]:
            out = tuple(program(*model, *state, ctrl, *n))
            return (out, ()) if len(out) == count else (out[:count], out[count:])

        return call

    def _over(self, function: Callable[..., Data]) -> Callable[..., Data]:
        return function if self.nworld is None else jax.vmap(function, in_axes=(None, 0))

    def _model(self, buffers: Any) -> Model:
        found = self.model.unpack(buffers)
        return self.model_tree.unflatten([found[i] for i in range(len(found))])

    def _data(self, state: Any, ctrl: Array, derived: dict[str, Any] | None = None) -> Data:
        """Data of a state, whose derived fields are zero if they are not given."""
        zero = {name: jax.tree.map(_zeros, x) for name, x in self.shapes.items()} if derived is None else {}
        return build(Data, {**self.static, **zero, **self.state.unpack(state), **(derived or {}), "ctrl": ctrl})

    def _pack(self, d: Data) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        return (
            self.pack_state(d),
            self.derived.pack({name: getattr(d, name) for name in DERIVED}),
        )


def _zeros(x: jax.ShapeDtypeStruct) -> Array:
    return jnp.zeros(x.shape, x.dtype)


@functools.lru_cache(maxsize=16)
def _parts(tree: Any, dtype: Any, nworld: int | None, example: _Worlds) -> _Parts:
    del tree, dtype
    return _Parts(example.m, example.d, nworld)
