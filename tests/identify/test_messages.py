"""Logs of messages: MCAP files and folders of rosbag2, in the encodings of ROS 2 and JSON."""

import json

import numpy as np
import pytest
from mcap.writer import Writer
from mcap_ros2.writer import Writer as RosWriter

import jaxsim
from jaxsim import identify as ident
from jaxsim.identify import messages

XML = """<mujoco><option timestep="0.01"/><worldbody>
  <body><joint name="j" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.4" size=".02" mass="1"/>
    <site name="s" pos="0 0 -.4"/></body></worldbody><actuator><motor name="a" joint="j"/></actuator>
  <sensor><jointpos name="p" joint="j"/><gyro name="w" site="s"/>
    <framequat name="quat" objtype="site" objname="s"/></sensor></mujoco>"""
JOINTS = """std_msgs/Header header
string[] name
float64[] position
===
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
===
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
""".replace("===", "=" * 80)
N, SINCE = 40, 1_700_000_000 * 10**9  # rows, ns since 1970
ANGLE, CTRL = 0.1 * np.sin(0.3 * np.arange(N)), np.cos(0.2 * np.arange(N))
CHANNELS = {"ctrl:a": "/command:data[0]", "p": "/joints:position[j]"}


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(XML)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A log in which the stamps of headers are 3 ms older than the times of the log."""
    path = tmp_path_factory.mktemp("log") / "log.mcap"
    with path.open("wb") as file:
        writer = RosWriter(file)
        joints = writer.register_msgdef("sensor_msgs/msg/JointState", JOINTS)
        command = writer.register_msgdef("std_msgs/msg/Float64MultiArray", "float64[] data")
        for i in range(N):
            at = SINCE + 10**7 * i
            stamp = {"sec": at // 10**9, "nanosec": at % 10**9}
            state = {"header": {"stamp": stamp, "frame_id": ""}, "name": ["k", "j"], "position": [9.0, ANGLE[i]]}
            writer.write_message("/joints", joints, state, log_time=at, publish_time=at)
            writer.write_message("/command", command, {"data": [CTRL[i]]}, log_time=at, publish_time=at)
        writer.finish()
    return path


def test_a_log_of_ros_is_read_by_topics_fields_and_names(m, log):
    for path in (log, log.parent):
        found = ident.load_recordings(m, path, channels=CHANNELS)
        np.testing.assert_allclose(found.measured[0, :, 0], ANGLE, atol=1e-9)
        np.testing.assert_allclose(found.ctrl[0, :, 0], CTRL)


@pytest.mark.parametrize(
    ("channels", "words"),
    [
        ({"p": "/joint:position[j]"}, "no messages of '/joint'; did you mean '/joints'"),
        ({"p": "/joints:position[q]"}, "has no 'q' in its names k, j"),
        ({"p": "/joints:velocity[j]"}, "has no field"),
        ({"p": "/joints:position"}, "has 2 numbers; expected 1"),
        ({"p": "position"}, "expected 'TOPIC:FIELD'"),
        ({"x": "/joints:position[j]"}, "no sensor named 'x'"),
        ({"ctrl:x": "/command:data[0]"}, "no actuator named 'x'"),
    ],
)
def test_channels_that_are_wrong_are_refused(m, log, channels, words):
    with pytest.raises(ValueError, match=words):
        ident.load_recordings(m, log, channels=CHANNELS | channels)


def test_a_log_without_channels_or_controls_is_refused(m, log, tmp_path):
    with pytest.raises(ValueError, match="channels="):
        ident.load_recordings(m, log)
    with pytest.raises(ValueError, match="no channel ctrl:a"):
        ident.load_recordings(m, log, channels={"p": CHANNELS["p"]})
    assert not ident.load_recordings(m, log, channels={"p": CHANNELS["p"]}, zero_ctrl=True).ctrl.any()
    (tmp_path / "bad.mcap").write_text("nothing of the kind")
    with pytest.raises(ValueError, match=r"bad\.mcap"):
        ident.load_recordings(m, tmp_path / "bad.mcap", channels=CHANNELS)
    (tmp_path / "old").mkdir()
    with pytest.raises(ValueError, match="ros2 bag convert"):
        ident.load_recordings(m, tmp_path / "old", channels=CHANNELS)


def test_signals_of_other_rates_are_interpolated_where_all_are_known(m, tmp_path):
    path = tmp_path / "log.mcap"
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        topics = {t: writer.register_channel(t, "json", 0) for t in ("/imu", "/joints", "/command")}

        def write(topic, seconds, message):
            at = SINCE + round(1e9 * seconds)
            writer.add_message(topics[topic], at, json.dumps(message).encode(), at)

        for i in reversed(range(30)):  # not in order of time
            write("/imu", 0.003 + 0.01 * i, {"w": {"x": i, "y": 0, "z": 1}, "q": {"x": 0, "y": 0, "z": 0, "w": 1}})
        for i in range(10):
            write("/joints", 0.02 + 0.02 * i, {"q": [0.5 * i]})
            write("/command", 0.05 * i, {"u": float(i)})
        writer.finish()
    channels = {"ctrl:a": "/command:u", "p": "/joints:q[0]", "w": "/imu:w", "quat": "/imu:q"}
    found = ident.load_recordings(m, path, channels=channels)
    t = 0.02 + 0.01 * np.arange(found.ctrl.shape[1])  # from the first time of the joints to their last
    assert found.ctrl.shape[1] == 19
    np.testing.assert_allclose(found.ctrl[0, :, 0], np.floor(t / 0.05 + 1e-6))
    by_name = dict(zip(found.names, np.split(found.measured[0], [1, 4], axis=-1), strict=True))
    np.testing.assert_allclose(by_name["p"][:, 0], 25 * (t - 0.02), atol=1e-6)
    np.testing.assert_allclose(by_name["w"], np.stack([100 * (t - 0.003), 0 * t, 0 * t + 1], 1), atol=1e-4)
    np.testing.assert_allclose(by_name["quat"], np.tile([1.0, 0, 0, 0], (19, 1)))


def test_channels_without_a_common_time_are_refused():
    signals = {"p": (np.array([0.0, 1.0]), np.zeros((2, 1))), "q": (np.array([2.0, 3.0]), np.zeros((2, 1)))}
    with pytest.raises(ValueError, match="no time in common: p 0 to 1 s, q 2 to 3 s"):
        messages.common_times(signals, 0.01)
