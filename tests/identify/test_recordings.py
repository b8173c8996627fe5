"""Recordings from arrays and files: what is read, and what is refused with its place."""

import re

import numpy as np
import pandas as pd
import pytest

import jaxsim
from jaxsim import identify as ident

XML = """<mujoco><option timestep="0.01"/><worldbody>
  <body><joint name="j" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.4" size=".02" mass="1"/>
    <site name="s" pos="0 0 -.4"/>
    <body pos="0 0 -.4"><joint name="k" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02"/></body>
  </body></worldbody>
  <actuator><motor name="a" joint="j"/><motor name="b" joint="k"/></actuator>
  <sensor><jointpos name="p" joint="j"/><jointpos name="left:q" joint="k"/><accelerometer name="acc" site="s"/>
    <framequat name="quat" objtype="site" objname="s"/></sensor></mujoco>"""
N = 20
TIME = 0.01 * np.arange(N)
CTRL = np.stack([np.sin(3 * TIME), np.cos(5 * TIME)], 1)
ANGLE = 0.1 * TIME + TIME**2
HEAD = "time,ctrl:a,ctrl:b,p"
TABLE = np.column_stack([TIME, CTRL, ANGLE])


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(XML)


def write(path, head: str, rows) -> str:
    """A table as text, with the shortest numbers that read back."""
    lines = [",".join("" if x is None else repr(float(x)) for x in row) for row in rows]
    path.write_text("\n".join([head, *lines]), encoding="utf-8")
    return str(path)


def refused(m, path, words: str, **options) -> None:
    """Loading is refused with the name of the file and these words."""
    with pytest.raises(ValueError, match=words) as error:
        ident.load_recordings(m, path, **options)
    assert str(path) in str(error.value)


def test_columns_are_read_by_name_in_any_order(m, tmp_path):
    acc = np.arange(3 * N).reshape(N, 3)
    rows = np.column_stack([acc[:, ::-1], CTRL[:, ::-1], ANGLE, ANGLE + 1, TIME])
    path = write(tmp_path / "r.csv", " acc:2, acc:1,acc:0,ctrl:b,ctrl:a,left:q,p,time", rows)
    data = ident.load_recordings(m, path)
    assert data.names == ("acc", "left:q", "p")
    np.testing.assert_array_equal(data.measured[0], np.column_stack([acc, ANGLE, ANGLE + 1]))
    np.testing.assert_array_equal(data.ctrl[0], CTRL)


def test_files_may_have_their_columns_in_different_orders(m, tmp_path):
    first = write(tmp_path / "a.csv", "ctrl:a,ctrl:b,p,left:q", np.column_stack([CTRL, ANGLE, 2 * ANGLE]))
    np.savez(tmp_path / "b.npz", **{"left:q": 2 * ANGLE, "ctrl": CTRL, "p": ANGLE, "time": TIME + 5})
    data = ident.load_recordings(m, [first, tmp_path / "b.npz"])
    np.testing.assert_array_equal(data.measured[0], data.measured[1])


@pytest.mark.parametrize("prefix, ending", [("\ufeff", ""), ("", "\n\n"), ("", "\r\n,,,\r\n"), ("\n", "")])
def test_marks_and_blank_lines_are_passed_over(m, tmp_path, prefix, ending):
    path = write(tmp_path / "r.csv", prefix + HEAD, TABLE)
    with open(path, "a", encoding="utf-8", newline="") as file:
        file.write(ending)
    np.testing.assert_array_equal(ident.load_recordings(m, path).measured[0, :, 0], ANGLE)


def test_a_clock_that_jitters_is_read(m, tmp_path):
    jitter = 0.004 * np.random.default_rng(0).uniform(-1, 1, N)
    path = write(tmp_path / "r.csv", HEAD, np.column_stack([TIME + jitter, TABLE[:, 1:]]))
    np.testing.assert_array_equal(ident.load_recordings(m, path).measured[0, :, 0], ANGLE)


def _changed(column: int, row: int, value) -> list:
    rows = [list(r) for r in TABLE]
    rows[row][column] = value
    return rows


WRONG = {
    "another rate": (HEAD, TABLE * [5, 1, 1, 1], r"line 3: rows are 0\.05 s apart .* 0\.01 s.*resample=True"),
    "milliseconds": (HEAD, TABLE * [1e3, 1, 1, 1], "line 3: rows are 10 s apart"),
    "a gap": (HEAD, np.delete(TABLE, 7, 0), r"line 9: .*off by 1 steps"),
    "time falls": (HEAD, np.column_stack([TIME[::-1], TABLE[:, 1:]]), "line 3: the time does not rise"),
    "time stands": (HEAD, _changed(0, 4, TIME[3]), "line 6: the time does not rise: 0.03 after 0.03"),
    "no time": (HEAD, _changed(0, 4, None), "line 6: the time is missing"),
    "no control": (HEAD, _changed(2, 4, None), "line 6: the control b is nan; fill in"),
    "infinite": (HEAD, _changed(3, 4, np.inf), "line 6: sensor 'p' is infinite"),
    "a control missing": ("time,ctrl:a,p", TABLE[:, [0, 1, 3]], "no column ctrl:b: .*zero_ctrl=True"),
    "unknown actuator": ("time,ctrl:a,ctrl:c,p", TABLE, "no actuator named 'c'"),
    "unknown sensor": ("time,ctrl:a,ctrl:b,pp", TABLE, "no sensor named 'pp'; did you mean 'p'"),
    "no sensor": ("time,ctrl:a,ctrl:b", TABLE[:, :3], "no sensor is measured"),
    "a part of a vector": ("ctrl:a,ctrl:b,acc:0,acc:2", TABLE, "no column acc:1"),
    "a vector in one column": ("time,ctrl:a,ctrl:b,acc", TABLE, "'acc': the sensor has 3 values: acc:0 to acc:2"),
    "an entry too many": ("time,ctrl:a,ctrl:b,p:1", TABLE, "'p:1': the sensor has 1 value, counted from 0"),
    "twice": ("time,ctrl:a,ctrl:b,ctrl:b", TABLE, "the header has 'ctrl:b' 2 times"),
    "no rows": (HEAD, [], "the file has no rows below the header"),
    "a short row": (HEAD, [TABLE[0], TABLE[1, :3]], "line 3: 3 cells, and the header has 4"),
    "semicolons": (HEAD.replace(",", ";"), [], "separated by semicolons; separate them by commas"),
    "empty": ("", [], "the file is empty"),
}


@pytest.mark.parametrize("head, rows, words", WRONG.values(), ids=WRONG)
def test_a_table_that_is_wrong_is_refused_with_its_place(m, tmp_path, head, rows, words):
    refused(m, write(tmp_path / "r.csv", head, rows), words)


def test_a_cell_that_is_no_number_is_named(m, tmp_path):
    (tmp_path / "r.csv").write_text("ctrl:a,ctrl:b,p\n0,0,0\n0,o,0\n")
    refused(m, tmp_path / "r.csv", "line 3, column 'ctrl:b': 'o' is not a number")


def test_controls_without_a_column_are_zero_on_request_and_with_a_warning_where_there_are_none(m, tmp_path):
    path = write(tmp_path / "r.csv", "ctrl:b,p", TABLE[:, 2:])
    np.testing.assert_array_equal(ident.load_recordings(m, path, zero_ctrl=True).ctrl[0, :, 0], 0)
    path = write(tmp_path / "s.csv", "time,p", TABLE[:, [0, 3]])
    with pytest.warns(UserWarning, match=re.escape(path) + " has no columns ctrl:NAME: all controls are taken as zero"):
        assert not ident.load_recordings(m, path).ctrl.any()


def test_other_rates_are_resampled_on_request(m, tmp_path):
    slow = np.arange(0, N, 2)
    time = TIME[slow]
    turn = np.column_stack([np.cos(time), np.sin(time), 0 * time, 0 * time])
    turn[1::2] *= -1  # the same orientations
    measured = {"p": 3 * time + 1, "quat": turn}
    data = ident.recordings(m, CTRL[slow], measured, time=time, resample=True)
    grid = TIME[: 2 * len(slow) - 1]
    np.testing.assert_allclose(data.measured[0, :, 0], 3 * grid + 1, atol=1e-6)
    np.testing.assert_array_equal(data.ctrl[0], CTRL[(np.arange(len(grid)) // 2) * 2])
    exact = np.column_stack([np.cos(grid), np.sin(grid)])
    turned = data.measured[0, :, 1:3] * np.sign(data.measured[0, :, 1:2])
    np.testing.assert_allclose(turned, exact, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(data.measured[0, :, 1:], axis=-1), 1, atol=1e-12)


def test_resampling_keeps_what_is_missing_missing(m):
    p = 3 * TIME
    p[4] = np.nan
    data = ident.recordings(m, CTRL, {"p": p}, time=2 * TIME, resample=True)
    assert np.flatnonzero(np.isnan(data.measured[0, :, 0])).tolist() == [7, 8, 9]


ACC = np.zeros((N, 3))
ARRAYS = {
    "turned sensor": ({"acc": ACC.T}, {}, r"shape \(3, 20\); expected \(1, 20, 3\) or \(20, 3\).*swap the last two"),
    "reshaped sensor": ({"acc": ACC.ravel()}, {}, r"shape \(60,\); expected"),
    "two trajectories": ({"p": np.zeros((2, N))}, {}, r"shape \(2, 20\); expected"),
    "infinite": ({"p": np.where(TIME[3] == TIME, np.inf, 0)}, {}, "step 3 of trajectory 0: sensor 'p' is infinite"),
    "sigma zero": ({"p": ANGLE}, {"sigma": 0.0}, "sigma of 'p' is 0; a standard deviation is positive"),
    "sigma negative": ({"p": ANGLE}, {"sigma": {"p": -1.0}}, "sigma of 'p' is -1"),
    "sigma not a number": ({"p": ANGLE}, {"sigma": np.nan}, "sigma of 'p' is nan"),
    "sigma missing": ({"p": ANGLE}, {"sigma": {"acc": 1.0}}, "sigma has no entry for the sensor 'p'; it has acc"),
    "sigma unknown": ({"p": ANGLE}, {"sigma": {"p": 1.0, "acc": 1.0}}, "sigma names acc; measured are p"),
    "initial state": ({"p": ANGLE}, {"qpos": np.zeros(3)}, r"qpos has shape \(3,\); expected \(1, 2\), or \(2,\)"),
    "initial velocity": ({"p": ANGLE}, {"qvel": [np.nan, 0]}, "qvel has entries that are not finite"),
    "a turn": ({"p": ANGLE + 2 * np.pi * (TIME > 0.1)}, {}, "jumps by a turn: .* use np.unwrap"),
    "norm": ({"quat": np.tile([0.7, 0.7, 0.7, 0.7], (N, 1))}, {}, "a quaternion of norm 1.4"),
    "times": ({"p": ANGLE}, {"time": TIME[:3]}, r"time has shape \(3,\); expected \(20,\)"),
    "nothing": ({}, {}, "no sensor is measured"),
}


@pytest.mark.parametrize("measured, options, words", ARRAYS.values(), ids=ARRAYS)
def test_arrays_that_are_wrong_are_refused(m, measured, options, words):
    with pytest.raises(ValueError, match=words):
        ident.recordings(m, CTRL, measured, **options)


def test_turned_or_missing_controls_are_refused(m):
    with pytest.raises(
        ValueError, match=r"shape \(2, 20\); expected \(trajectories, steps, 2\); swap the last two axes"
    ):
        ident.recordings(m, CTRL.T, {"p": ANGLE})
    with pytest.raises(ValueError, match="step 2 of trajectory 0: the control a is nan"):
        ident.recordings(m, np.where(TIME[:, None] == TIME[2], np.nan, CTRL), {"p": ANGLE})


def test_an_archive_that_is_wrong_is_refused_with_its_name(m, tmp_path):
    path = tmp_path / "r.npz"
    np.savez(path, p=ANGLE)
    refused(m, path, r"no array 'ctrl' \(n, nu\), only p")
    np.savez(path, ctrl=CTRL, p=ANGLE, time=TIME[::-1])
    refused(m, path, "row 1: the time does not rise")
    np.savez(path, ctrl=CTRL, acc=ACC.T)
    refused(m, path, r"shape \(3, 20\)")
    np.savez(path, ctrl=CTRL, speed=ANGLE)
    refused(m, path, "no sensor named 'speed'")


def test_recordings_of_different_lengths_are_refused_with_both_files(m, tmp_path):
    first = write(tmp_path / "a.csv", HEAD, TABLE)
    second = write(tmp_path / "b.csv", HEAD, TABLE[:5])
    with pytest.raises(ValueError, match=re.escape(f"{second} has 5 steps, and {first} 20")):
        ident.load_recordings(m, [first, second])
    third = write(tmp_path / "c.csv", "ctrl:a,ctrl:b,left:q", TABLE[:, 1:])
    with pytest.raises(ValueError, match=re.escape(f"{third} has the sensors left:q, and {first} p")):
        ident.load_recordings(m, [first, third])


def test_columns_that_are_not_of_the_model_are_left_out_on_request(m, tmp_path):
    head, rows = HEAD + ",temperature", np.column_stack([TABLE, np.full(N, 21.0)])
    path = write(tmp_path / "r.csv", head, rows)
    refused(m, path, r"no sensor named 'temperature' \(ignore=\[\.\.\.\] leaves out")
    np.testing.assert_array_equal(ident.load_recordings(m, path, ignore=["temperature"]).measured[0, :, 0], ANGLE)
    np.savez(tmp_path / "r.npz", ctrl=CTRL, p=ANGLE, temperature=np.full(N, 21.0))
    assert ident.load_recordings(m, tmp_path / "r.npz", ignore=["temperature"]).names == ("p",)


def test_a_gap_is_named_and_resampled_to_missing_measurements(m, tmp_path):
    path = write(tmp_path / "r.csv", HEAD, np.delete(TABLE, [7, 8, 9], 0))
    refused(m, path, r"line 9: rows are missing before time 0\.1, .*off by 3 steps.*resample=True")
    data = ident.load_recordings(m, path, resample=True)
    assert np.flatnonzero(np.isnan(data.measured[0, :, 0])).tolist() == [7, 8, 9]
    np.testing.assert_allclose(data.measured[0, 10:, 0], ANGLE[10:], atol=1e-9)
    np.testing.assert_array_equal(data.ctrl[0, 7:10], CTRL[[6, 6, 6]])


def test_recordings_without_a_measurement_are_refused(m):
    with pytest.raises(ValueError, match=r"all measurements of p are missing \(NaN\)"):
        ident.recordings(m, CTRL, {"p": np.full(N, np.nan)})


def test_frames_are_read_as_tables(m):
    frame = pd.DataFrame(TABLE, columns=HEAD.split(","))
    found = ident.load_recordings(m, [frame, frame.assign(note="text")], ignore=["note"])
    assert found.measured.shape == (2, N, 1) and found.names == ("p",)
    np.testing.assert_allclose(found.ctrl[1], CTRL)
    frame["p"] = frame["p"].astype("Float64").where(frame.index != 3)
    assert np.isnan(ident.load_recordings(m, frame).measured[0, 3, 0])
    with pytest.raises(ValueError, match="frame 0: column 'note' does not hold numbers"):
        ident.load_recordings(m, frame.assign(note="text"))
