"""The public interface: names follow one rule, every export is on an API page with a description."""

import enum
import importlib
import re
import warnings

import mujoco
import pytest

import jaxsim
from jaxsim import parallel, stages, support, xla
from jaxsim.core import types
from tests.names import snake_case
from tests.paths import ROOT

PAGE = ROOT / "docs" / "api.md"
TOPICS = sorted((ROOT / "docs" / "api").glob("*.md"))
MODULES = {"jaxsim": jaxsim, "jaxsim.parallel": parallel, "jaxsim.xla": xla}
MODULES |= {"jaxsim.stages": stages, "jaxsim.support": support}
THEIRS = {snake_case(name): name for name in dir(mujoco) if re.match("mjd?_", name)}
OURS = {"rungekutta4": "mj_RungeKutta, by the name that MJX has", "update_sleep": "MuJoCo does not export it"}


def documented():
    """The names on the API pages, with those that their entries list as members."""
    names, text = [], "".join(page.read_text() for page in TOPICS)
    for entry, members in re.findall(r"^::: (jaxsim[\w.]*)\n(?: +options:\n +members: (.*)\n)?", text, re.MULTILINE):
        names.append(entry)
        if isinstance(resolve(entry), type(jaxsim)) and members.startswith("["):
            names += [f"{entry}.{member.strip()}" for member in members.strip("[]").split(",")]
    return names


def resolve(name):
    """The object of a dotted name."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            out = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            out = getattr(out, part)
        return out
    raise ModuleNotFoundError(name)


def exports():
    """The public names, each at the highest place where it stands."""
    names = [f"{path}.{name}" for path, module in MODULES.items() for name in module.__all__]
    return [n for n in names if n.count(".") == 1 or n.split(".")[-1] not in jaxsim.__all__]


def test_every_export_stands_in_the_reference_once():
    listed = documented()
    assert len(listed) == len(set(listed))
    assert set(exports()) <= set(listed), sorted(set(exports()) - set(listed))


def test_the_reference_names_nothing_that_is_not_there():
    for name in documented():
        home, _, last = name.rpartition(".")
        resolve(name)
        if home in MODULES and not isinstance(resolve(name), type(jaxsim)):
            assert last in MODULES[home].__all__, name


@pytest.mark.parametrize("name", exports())
def test_an_export_is_described(name):
    thing = resolve(name)
    text = vars(thing)["__doc__"] if isinstance(thing, type) else thing.__doc__  # not a parent's
    assert text and text.split("\n\n")[0].rstrip().endswith((".", ":")), name


def test_what_is_listed_is_what_is_exported():
    for module in MODULES.values():
        assert len(module.__all__) == len(set(module.__all__))
    assert dir(jaxsim) == sorted(jaxsim.__all__)


def test_no_object_is_exported_in_two_spellings():
    seen = {}
    for path, module in MODULES.items():
        for name in module.__all__:
            key = id(getattr(module, name))
            assert seen.setdefault(key, name) == name, f"{path}.{name} is {seen[key]}"
    folded = [n.split(".")[-1].replace("_", "").lower() for n in exports()]
    assert len(folded) == len(set(folded))


def test_functions_of_mujoco_have_its_names_in_snake_case():
    for name in (*stages.__all__, *support.__all__):
        assert name in THEIRS or name in OURS, name
    for module in MODULES.values():
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing) and not isinstance(thing, type):
                assert name == name.lower(), name
    assert snake_case("mj_local2Global") == "local2global"


def test_stages_and_support_functions_are_reachable_at_the_top_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for module in (stages, support, xla):
            for name in module.__all__:
                assert getattr(jaxsim, name) is getattr(module, name)
        from jaxsim import fwd_position
    assert fwd_position is stages.fwd_position


def test_names_in_mujocos_spelling_get_ours():
    for name in ("jacBodyCom", "getState", "setTotalmass"):
        with pytest.raises(AttributeError, match=f"did you mean '{snake_case(name)}'"):
            getattr(jaxsim, name)


def test_enumerations_are_exported_with_mujocos_values():
    assert mujoco.mjtGeom.mjGEOM_BOX == jaxsim.GeomType.BOX and mujoco.mjtSensor.mjSENS_GYRO == jaxsim.SensorType.GYRO
    enumerations = [name for name, x in vars(types).items() if isinstance(x, type) and issubclass(x, enum.Enum)]
    found = {name for name in enumerations if vars(types)[name].__module__ == types.__name__}
    assert len(found) > 30 and found <= set(jaxsim.__all__)


def test_a_misspelt_name_gets_the_nearest():
    with pytest.raises(AttributeError, match="'kinematic'; did you mean 'kinematics'"):
        jaxsim.kinematic  # noqa: B018
    with pytest.raises(AttributeError, match=r"'zzz'$"):
        jaxsim.zzz  # noqa: B018
    assert not hasattr(jaxsim, "__wrapped__")


def test_the_table_of_names_follows_the_rule():
    rows = [line.split("|")[1:3] for line in PAGE.read_text().splitlines() if line.startswith("| `mj_")]
    assert len(rows) > 20
    for left, right in rows:
        names = [name.split(".")[-1] for name in re.findall(r"`((?:stages\.|support\.)?\w+)\(", right)]
        theirs = re.findall(r"`(mj_\w+)`", left)
        assert set(theirs) <= set(THEIRS.values())
        assert set(names) <= {snake_case(name) for name in theirs} | set(OURS), right
        for name in names:
            assert name in jaxsim.__all__ or hasattr(jaxsim, name)


def test_every_page_of_the_reference_is_in_the_table_of_pages():
    listed = re.findall(r"\(api/(\w+\.md)\)", PAGE.read_text())
    assert sorted(listed) == [page.name for page in TOPICS]
