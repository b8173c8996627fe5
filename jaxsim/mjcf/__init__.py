"""The front end: text to `Spec`, without JAX and without physics.

- `read(path_or_xml, assets=None) -> Spec` reads and checks MJCF (and URDF).
- `Spec`: `.root`, `.worldbody`, `.section(tag)`, `.elements(kind)`, `.find(kind, name)`, `.body(name)`,
  `.add(section, tag, **attrs)`, `.modelfiledir`, `.assets`, `.modelname`.
- `Element`: `.tag`, `.type` (an `ElementType`: `.kind`, `.attributes`, `.children`), `.attrs` (written ones only),
  `.children`, `.parent`, `.source`, `.name`, `.get(attr)`, `.set(**attrs)`, `.add(tag, **attrs)`, `.delete()`,
  `.all(*tags)`, `.error(what) -> ModelError`.
- `expand(spec) -> Spec` runs every macro (replicate, attach, composite, flexcomp) and returns a new Spec of plain
  elements, to be compiled and no longer edited: its default classes are tabulated once.
  Frames stay: their poses are composed by the compiler. In keyframes of attached and replicated models NaN in qpos,
  mpos and mquat means the value in the initial state of the compiled model.
- `resolve(spec, element) -> Resolved`, a dict of effective attributes (arrays at full length, None where undefined)
  with `.given(attr)` (written by the element or its class) and `.count(attr)` (leading entries written).
- `resolve_actuator(spec, element) -> Resolved`, the general record of any actuator, see `jaxsim.mjcf.actuator`.
- `compiler_of(spec, element) -> dict` returns the compiler settings of an element (they differ from the root's
  where the element was attached from another model), with all defaults filled in.
- `ENUMS[set][word]` gives MuJoCo's number of a word; `element.type.attributes[name].words` names the set.
- `asset_path(spec, element, attr)` and `read_file(spec, path)` find the files that a model names.
- `save_mjcf(spec, path=None) -> str` writes canonical MJCF.
"""

from jaxsim.mjcf.defaults import class_name, resolve, resolve_actuator
from jaxsim.mjcf.macro.expand import expand
from jaxsim.mjcf.reader import asset_path, check, read, read_file
from jaxsim.mjcf.resolved import Resolved
from jaxsim.mjcf.schema.values import ENUMS
from jaxsim.mjcf.spec import Element, Spec, compiler_of, object_name
from jaxsim.mjcf.writer import save_mjcf

__all__ = [
    "ENUMS",
    "Element",
    "Resolved",
    "Spec",
    "asset_path",
    "check",
    "class_name",
    "compiler_of",
    "expand",
    "object_name",
    "read",
    "read_file",
    "resolve",
    "resolve_actuator",
    "save_mjcf",
]
