"""Length ranges of actuators: `set_length_ranges` is the only entry.

MuJoCo finds a range by pulling the actuator to both ends, in a thousand steps of a model with its limits as the only
constraints. A step of this search is the smooth dynamics, implemented here again in NumPy for all motions at once,
because the engine's own stages are too slow on the host. Measured with 12 hinges and 60 muscles that wrap (2 busy
cores, float64):

- this package: 20 s;
- the engine's step, compiled by XLA for this one search: 198 s;
- the engine's stages on NumPy arrays, one motion at a time: 9 ms a step, 1,100 s in all.

`ranges` selects the actuators and checks the results, `pull` simulates, `wrapping` measures lengths, and `limits`
solves for accelerations under limits and joint couplings. The formulas come from `jaxsim.math` and the engine wherever
these accept batches of NumPy arrays. A test compares both methods of pulling.
"""

from jaxsim.compiler.lengthrange.ranges import set_length_ranges

__all__ = ["set_length_ranges"]
