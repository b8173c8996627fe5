"""Enumerations of the language and of the engine, with the integer values of MuJoCo 3.8.1."""

from enum import IntEnum, IntFlag

MINVAL = 1e-15  # below this a length or a mass counts as zero
MINMU = 1e-5  # least friction coefficient
MINIMP = 0.0001  # least constraint impedance
MAXIMP = 0.9999  # greatest constraint impedance
MAXVAL = 1e10  # a state beyond this has diverged
MAXCONPAIR = 50  # most contacts of one geom pair
MINAWAKE = 10  # steps at rest before a tree sleeps


class DisableBit(IntFlag):
    """Features that are enabled by default, mjtDisableBit: bits of `opt.disableflags`."""

    CONSTRAINT = 1
    EQUALITY = 2
    FRICTIONLOSS = 4
    LIMIT = 8
    CONTACT = 16
    SPRING = 32
    DAMPER = 64
    GRAVITY = 128
    CLAMPCTRL = 256
    WARMSTART = 512
    FILTERPARENT = 1024
    ACTUATION = 2048
    REFSAFE = 4096
    SENSOR = 8192
    MIDPHASE = 16384
    EULERDAMP = 32768
    AUTORESET = 65536
    NATIVECCD = 131072
    ISLAND = 262144
    MULTICCD = 524288


class EnableBit(IntFlag):
    """Features that are disabled by default, mjtEnableBit: bits of `opt.enableflags`."""

    OVERRIDE = 1
    ENERGY = 2
    FWDINV = 4
    INVDISCRETE = 8
    SLEEP = 16


class JointType(IntEnum):
    """Kinds of joints, mjtJoint."""

    FREE = 0
    BALL = 1
    SLIDE = 2
    HINGE = 3

    def qpos_width(self) -> int:
        """Return the number of entries in qpos of a joint of this type."""
        return (7, 4, 1, 1)[self]

    def dof_width(self) -> int:
        """Return the number of dofs of a joint of this type."""
        return (6, 3, 1, 1)[self]


class GeomType(IntEnum):
    """Shapes of geoms, mjtGeom."""

    PLANE = 0
    HFIELD = 1
    SPHERE = 2
    CAPSULE = 3
    ELLIPSOID = 4
    CYLINDER = 5
    BOX = 6
    MESH = 7
    SDF = 8
    ARROW = 100
    ARROW1 = 101
    ARROW2 = 102
    LINE = 103
    LINEBOX = 104
    FLEX = 105
    SKIN = 106
    LABEL = 107
    TRIANGLE = 108
    NONE = 1001


class CamLightType(IntEnum):
    """Motion of a camera or a light, mjtCamLight."""

    FIXED = 0
    TRACK = 1
    TRACKCOM = 2
    TARGETBODY = 3
    TARGETBODYCOM = 4


class LightType(IntEnum):
    """Kinds of lights, mjtLightType."""

    SPOT = 0
    DIRECTIONAL = 1
    POINT = 2
    IMAGE = 3


class ProjectionType(IntEnum):
    """Projections of cameras, mjtProjection."""

    PERSPECTIVE = 0
    ORTHOGRAPHIC = 1


class TextureType(IntEnum):
    """Kinds of textures, mjtTexture."""

    TEXTURE_2D = 0
    CUBE = 1
    SKYBOX = 2


class TextureRole(IntEnum):
    """Role of a texture in a material, mjtTextureRole."""

    USER = 0
    RGB = 1
    OCCLUSION = 2
    ROUGHNESS = 3
    METALLIC = 4
    NORMAL = 5
    OPACITY = 6
    EMISSIVE = 7
    RGBA = 8
    ORM = 9


class ColorSpace(IntEnum):
    """Colour spaces of textures, mjtColorSpace."""

    AUTO = 0
    LINEAR = 1
    SRGB = 2


class IntegratorType(IntEnum):
    """Integrators, mjtIntegrator."""

    EULER = 0
    RK4 = 1
    IMPLICIT = 2
    IMPLICITFAST = 3


class ConeType(IntEnum):
    """Friction cones, mjtCone."""

    PYRAMIDAL = 0
    ELLIPTIC = 1


class JacobianType(IntEnum):
    """Forms of the constraint Jacobian, mjtJacobian; they have no effect here."""

    DENSE = 0
    SPARSE = 1
    AUTO = 2


class Backend(IntEnum):
    """Programs that compute a step, `opt.backend`: an option of jaxsim's own."""

    AUTO = 0  # native programs where possible, else XLA, with a warning
    NATIVE = 1  # native programs, or an error
    XLA = 2


class SolverType(IntEnum):
    """Constraint solvers, mjtSolver."""

    PGS = 0
    CG = 1
    NEWTON = 2


class EqType(IntEnum):
    """Kinds of equality constraints, mjtEq."""

    CONNECT = 0
    WELD = 1
    JOINT = 2
    TENDON = 3
    FLEX = 4
    FLEXVERT = 5
    FLEXSTRAIN = 6
    DISTANCE = 7


class WrapType(IntEnum):
    """Kinds of path objects of tendons, mjtWrap."""

    NONE = 0
    JOINT = 1
    PULLEY = 2
    SITE = 3
    SPHERE = 4
    CYLINDER = 5


class TrnType(IntEnum):
    """Transmissions of actuators, mjtTrn."""

    JOINT = 0
    JOINTINPARENT = 1
    SLIDERCRANK = 2
    TENDON = 3
    SITE = 4
    BODY = 5
    UNDEFINED = 1000


class DynType(IntEnum):
    """Activation dynamics of actuators, mjtDyn."""

    NONE = 0
    INTEGRATOR = 1
    FILTER = 2
    FILTEREXACT = 3
    MUSCLE = 4
    DCMOTOR = 5
    USER = 6


class GainType(IntEnum):
    """Gains of actuators, mjtGain."""

    FIXED = 0
    AFFINE = 1
    MUSCLE = 2
    DCMOTOR = 3
    USER = 4


class BiasType(IntEnum):
    """Biases of actuators, mjtBias."""

    NONE = 0
    AFFINE = 1
    MUSCLE = 2
    DCMOTOR = 3
    USER = 4


class ObjType(IntEnum):
    """Kinds of objects, mjtObj: for `object_velocity` and the fields of sensors."""

    UNKNOWN = 0
    BODY = 1
    XBODY = 2
    JOINT = 3
    DOF = 4
    GEOM = 5
    SITE = 6
    CAMERA = 7
    LIGHT = 8
    FLEX = 9
    MESH = 10
    SKIN = 11
    HFIELD = 12
    TEXTURE = 13
    MATERIAL = 14
    PAIR = 15
    EXCLUDE = 16
    EQUALITY = 17
    TENDON = 18
    ACTUATOR = 19
    SENSOR = 20
    NUMERIC = 21
    TEXT = 22
    TUPLE = 23
    KEY = 24
    PLUGIN = 25
    FRAME = 100
    DEFAULT = 101
    MODEL = 102


class SensorType(IntEnum):
    """Kinds of sensors, mjtSensor."""

    TOUCH = 0
    ACCELEROMETER = 1
    VELOCIMETER = 2
    GYRO = 3
    FORCE = 4
    TORQUE = 5
    MAGNETOMETER = 6
    RANGEFINDER = 7
    CAMPROJECTION = 8
    JOINTPOS = 9
    JOINTVEL = 10
    TENDONPOS = 11
    TENDONVEL = 12
    ACTUATORPOS = 13
    ACTUATORVEL = 14
    ACTUATORFRC = 15
    JOINTACTFRC = 16
    TENDONACTFRC = 17
    BALLQUAT = 18
    BALLANGVEL = 19
    JOINTLIMITPOS = 20
    JOINTLIMITVEL = 21
    JOINTLIMITFRC = 22
    TENDONLIMITPOS = 23
    TENDONLIMITVEL = 24
    TENDONLIMITFRC = 25
    FRAMEPOS = 26
    FRAMEQUAT = 27
    FRAMEXAXIS = 28
    FRAMEYAXIS = 29
    FRAMEZAXIS = 30
    FRAMELINVEL = 31
    FRAMEANGVEL = 32
    FRAMELINACC = 33
    FRAMEANGACC = 34
    SUBTREECOM = 35
    SUBTREELINVEL = 36
    SUBTREEANGMOM = 37
    INSIDESITE = 38
    GEOMDIST = 39
    GEOMNORMAL = 40
    GEOMFROMTO = 41
    CONTACT = 42
    E_POTENTIAL = 43
    E_KINETIC = 44
    CLOCK = 45
    TACTILE = 46
    PLUGIN = 47
    USER = 48


class Stage(IntEnum):
    """Stages of a step that sensors need, mjtStage."""

    NONE = 0
    POS = 1
    VEL = 2
    ACC = 3


class DataType(IntEnum):
    """Kinds of sensor values, mjtDataType."""

    REAL = 0
    POSITIVE = 1
    AXIS = 2
    QUATERNION = 3


class ConDataField(IntEnum):
    """Values of contact sensors, mjtConDataField."""

    FOUND = 0
    FORCE = 1
    TORQUE = 2
    DIST = 3
    POS = 4
    NORMAL = 5
    TANGENT = 6


class RayDataField(IntEnum):
    """Values of rangefinders, mjtRayDataField."""

    DIST = 0
    DIR = 1
    ORIGIN = 2
    POINT = 3
    NORMAL = 4
    DEPTH = 5


class SameFrame(IntEnum):
    """Relation of an object's frame and its body's, mjtSameFrame."""

    NONE = 0
    BODY = 1
    INERTIA = 2
    BODYROT = 3
    INERTIAROT = 4


class SleepPolicy(IntEnum):
    """When a kinematic tree may sleep, mjtSleepPolicy."""

    AUTO = 0
    AUTO_NEVER = 1
    AUTO_ALLOWED = 2
    NEVER = 3
    ALLOWED = 4
    INIT = 5


class LRMode(IntEnum):
    """Actuators whose length range is computed, mjtLRMode."""

    NONE = 0
    MUSCLE = 1
    MUSCLEUSER = 2
    ALL = 3


class FlexSelf(IntEnum):
    """Self-collision of a flex, mjtFlexSelf."""

    NONE = 0
    NARROW = 1
    BVH = 2
    SAP = 3
    AUTO = 4


class State(IntFlag):
    """Parts of the state, mjtState: bits for `get_state`, `set_state` and related functions, joined by `|`."""

    TIME = 1
    QPOS = 2
    QVEL = 4
    ACT = 8
    HISTORY = 16
    WARMSTART = 32
    CTRL = 64
    QFRC_APPLIED = 128
    XFRC_APPLIED = 256
    EQ_ACTIVE = 512
    MOCAP_POS = 1024
    MOCAP_QUAT = 2048
    USERDATA = 4096
    PLUGIN = 8192
    PHYSICS = 30
    FULLPHYSICS = 8223
    USER = 8128
    INTEGRATION = 16383


class ConstraintType(IntEnum):
    """Kinds of constraint rows, mjtConstraint."""

    EQUALITY = 0
    FRICTION_DOF = 1
    FRICTION_TENDON = 2
    LIMIT_JOINT = 3
    LIMIT_TENDON = 4
    CONTACT_FRICTIONLESS = 5
    CONTACT_PYRAMIDAL = 6
    CONTACT_ELLIPTIC = 7


class ConstraintState(IntEnum):
    """Part of the cost of a row, mjtConstraintState."""

    SATISFIED = 0
    QUADRATIC = 1
    LINEARNEG = 2
    LINEARPOS = 3
    CONE = 4


class WarningType(IntEnum):
    """Kinds of warnings, mjtWarning: rows of `d.warning`."""

    INERTIA = 0
    CONTACTFULL = 1
    CNSTRFULL = 2
    BADQPOS = 3
    BADQVEL = 4
    BADQACC = 5
    BADCTRL = 6


DIVERGED = (WarningType.BADQPOS, WarningType.BADQVEL, WarningType.BADQACC)  # a world with one is reset


class CamOutBit(IntFlag):
    """Kinds of images of a camera, mjtCamOutBit."""

    RGB = 1
    DEPTH = 2
    DIST = 4
    NORMAL = 8
    SEG = 16
