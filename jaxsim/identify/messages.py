"""Signals from logs of messages: MCAP files and folders of rosbag2. Needs mcap, and mcap-ros2-support for ROS 2."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from jaxsim.core.errors import did_you_mean
from jaxsim.core.extras import require

NEED = "logs of messages need mcap and mcap-ros2-support"
Signal = tuple[np.ndarray, np.ndarray]  # times (n,) and values (n, width)
STEP = re.compile(r"([A-Za-z_]\w*)|\[([^\]]*)\]|\.")


def is_log(path: Path | str) -> bool:
    """Return whether a path is a log of messages, not a table. Raises ValueError for a rosbag2 without .mcap files."""
    if isinstance(path, str) or not (path.is_dir() or path.suffix in (".mcap", ".db3", ".bag")):
        return False
    if path.suffix in (".db3", ".bag") or (path.is_dir() and not any(path.glob("*.mcap"))):
        raise ValueError(f"{path} has no .mcap file; convert it with `ros2 bag convert` (storage_id: mcap)")
    return True


def read_log(path: Path, channels: Mapping[str, str], width: Mapping[str, int]) -> dict[str, Signal]:
    """Read signals of a log by name, in the order of their times, from channels "TOPIC:FIELD" of so many numbers.

    Times are those of the messages' headers, if all that are read have one, otherwise those of the log. Raises
    ValueError for a topic without messages, or a field that they do not have; ImportError without the packages.
    """
    wanted: dict[str, tuple[str, str]] = {}
    for name, channel in channels.items():
        topic, colon, field = channel.rpartition(":")
        if not colon or not topic or not field:
            raise ValueError(f"the channel of {name} is {channel!r}; expected 'TOPIC:FIELD'")
        wanted[name] = topic, field
    topics, known = {topic for topic, _ in wanted.values()}, set()
    logged, stamped = ({name: [] for name in wanted} for _ in range(2))
    values: dict[str, list[np.ndarray]] = {name: [] for name in wanted}
    for topic, time, message in _messages(path, topics, known):
        stamp = _stamp(message)
        for name, (own, field) in wanted.items():
            if own == topic:
                values[name].append(_numbers(message, field, width[name], f"{name}: {topic}"))
                logged[name].append(time)
                stamped[name].append(stamp)
    for name, (topic, _) in wanted.items():
        if not values[name]:
            raise ValueError(f"{name}: no messages of {topic!r}{did_you_mean(topic, sorted(known))}")
    times = logged if any(None in found for found in stamped.values()) else stamped
    origin = min(min(found) for found in times.values())  # a float of seconds since 1970 has steps of 0.2 us
    seconds = {name: 1e-9 * (np.array(times[name], np.int64) - origin) for name in wanted}
    return {name: _sorted(seconds[name], np.stack(values[name])) for name in wanted}


def common_times(signals: Mapping[str, Signal], timestep: float) -> np.ndarray:
    """Return the times (n,) of steps within all signals. Raises ValueError where there is no such time."""
    begin, end = max(t[0] for t, _ in signals.values()), min(t[-1] for t, _ in signals.values())
    if end < begin:
        spans = ", ".join(f"{name} {t[0]:.6g} to {t[-1]:.6g} s" for name, (t, _) in signals.items())
        raise ValueError(f"channels have no time in common: {spans}")
    return begin + timestep * np.arange(int((end - begin) / timestep + 1e-9) + 1)


def _messages(path: Path, topics: set[str], known: set[str]) -> Iterator[tuple[str, int, Any]]:
    """Topic, time of the log in ns and decoded message of each message; adds all topics to `known`."""
    reader = require("mcap.reader", NEED, "logs")
    decoders = [_Json()]
    for file in sorted(path.glob("*.mcap")) if path.is_dir() else [path]:
        with file.open("rb") as stream, _named_errors(file):
            opened = reader.make_reader(stream, decoder_factories=decoders)
            summary = opened.get_summary()
            for channel in summary.channels.values() if summary else ():
                known.add(channel.topic)
                if channel.topic in topics and channel.message_encoding == "cdr" and len(decoders) == 1:
                    decoders.append(require("mcap_ros2.decoder", NEED, "logs").DecoderFactory())
            opened = reader.make_reader(stream, decoder_factories=decoders)
            for _, channel, record, message in opened.iter_decoded_messages(topics=sorted(topics)):
                yield channel.topic, record.log_time, message


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    """Raise ValueError with the name of the file in place of errors of mcap."""
    try:
        yield
    except require("mcap.exceptions", NEED, "logs").McapError as error:
        raise ValueError(f"{path.name}: {error}") from None


class _Json:
    """Decoder of messages in JSON."""

    def decoder_for(self, message_encoding: str, schema: Any) -> Any:
        return json.loads if message_encoding == "json" else None


def _stamp(message: Any) -> int | None:
    """Time of a message's header in ns, or None."""
    stamp = _of(_of(message, "header"), "stamp")
    seconds, nanoseconds = _of(stamp, "sec"), _of(stamp, "nanosec")
    return None if seconds is None or (seconds == 0 and not nanoseconds) else seconds * 10**9 + (nanoseconds or 0)


def _of(message: Any, name: str) -> Any:
    """A field of a message, or None."""
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)


def _numbers(message: Any, field: str, width: int, what: str) -> np.ndarray:
    """Numbers (width,) of a field. `[NAME]` is the entry at the place of NAME in the list `name` of the message."""
    found = message
    for name, entry in STEP.findall(field):
        parent, found = found, found
        if name:
            found = _of(parent, name)
        elif entry.isdecimal():
            found = parent[int(entry)] if int(entry) < len(parent) else None
        elif entry:
            names = list(_of(message, "name") or ())
            place = names.index(entry) if entry in names else -1
            if place < 0:
                raise ValueError(f"{what} has no {entry!r} in its names {', '.join(map(str, names))}")
            found = parent[place] if place < len(parent) else None
        if found is None:
            raise ValueError(f"{what} has no field {field!r}")
    parts = [_of(found, x) for x in "wxyz"[width == 3 :]] if width in (3, 4) else [None]
    numbers = np.ravel(np.asarray(found if parts[-1] is None else parts, float))
    if numbers.shape != (width,):
        raise ValueError(f"{what}: {field!r} has {numbers.size} numbers; expected {width}")
    return numbers


def _sorted(times: np.ndarray, values: np.ndarray) -> Signal:
    """A signal in the order of its times; of messages of one time the last."""
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    last = np.append(np.diff(times) > 0, True)
    return times[last], values[last]
