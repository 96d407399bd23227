"""Answers of the service as dataclasses. `raw` has the whole JSON, also keys that this version does not know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

Json = dict[str, Any]
"""An object of JSON."""


class State(StrEnum):
    """State of the service."""

    IDLE = "idle"
    CONFIGURED = "configured"
    WAITING = "waiting"
    ARMED = "armed"
    RECORDING = "recording"
    FAILED = "failed"


@dataclass(frozen=True)
class FrameFile:
    """The file with the frames of a recording, as a reader opens it."""

    paths: tuple[Path, ...]
    """The HDF5 file, or the directories if there are several files or none in HDF5."""
    master: Path | None
    """The file that shows the frames of all files, written when the recording has ended. `None` if one file has all."""
    dataset: str | None
    """Path of the frames in the file. `None` if the recording is not HDF5."""
    scan: tuple[int, ...]
    """Dimensions between the number of a frame and its pixels: the channels of a detector. Empty without any."""
    shape: tuple[int, ...] | None
    """Shape of one frame. `None` if the recorder does not know it."""
    dtype: str | None
    """Type of a pixel, as NumPy writes it: `<u4`. `None` if NumPy has no such type."""
    chunk: tuple[int, ...] | None
    """Shape of a chunk of the dataset. `None` if the recording is not HDF5."""
    series_id: int | None
    """Id of the series that the sender gave. `None` without one."""
    frames_acknowledged: int
    """Frames that readers can read, and that survive the death of the recorder."""
    frames_durable: int
    """Frames that survive a loss of power."""
    files: tuple[Path, ...]
    """Files of frames without a number in their names; after the end all complete files, at most 1000."""

    @classmethod
    def of(cls, json: Json | None) -> FrameFile | None:
        """Read the object `file` of a recording. `None` if there is none."""
        if not json:
            return None
        paths = json["path"]
        shape, chunk, master = json.get("shape"), json.get("chunk"), json.get("master")
        return cls(
            paths=tuple(Path(path) for path in ([paths] if isinstance(paths, str) else paths)),
            master=Path(master) if master else None,
            dataset=json.get("dataset"),
            scan=tuple(json.get("scan") or ()),
            shape=tuple(shape) if shape else None,
            dtype=json.get("dtype"),
            chunk=tuple(chunk) if chunk else None,
            series_id=json.get("series_id"),
            frames_acknowledged=json.get("frames_acknowledged", 0),
            frames_durable=json.get("frames_durable", 0),
            files=tuple(Path(path) for path in json.get("files") or ()),
        )

    @property
    def readable(self) -> Path | None:
        """The HDF5 file that a reader opens: the master, or the only file. `None` if the recording is not HDF5."""
        if self.dataset is None:
            return None
        return self.master or self.paths[0]


@dataclass(frozen=True)
class Recording:
    """Figures of the recording that runs, or of the one before. Counts are in the unit of `counted_in`."""

    counted_in: str
    """`packets`, or `frames` of a series over TCP."""
    received: int
    """Packets or frames that are at least in memory."""
    acknowledged: int
    """Those that survive the death of the recorder."""
    durable: int
    """Those that survive a loss of power."""
    missing: int
    """Those missing between received ones."""
    announced: int | None
    """Frames that the sender announced. `None` if it did not, or if packets are counted."""
    damaged: int
    """Frames that cannot be unpacked."""
    fault: str | None
    """Why the recording goes wrong. `None` if it does not."""
    seconds: float
    """Time since its begin."""
    bytes_per_second: float
    """Rate of the last moments, in bytes a second."""
    buffer_in_use: float
    """Used part of the buffer, from 0 to 1."""
    free_bytes: int | None
    """Free space of the fullest directory. `None` if unknown."""
    file: FrameFile | None
    """The file with the frames. `None` if the recording is not HDF5, or the service is older than this object."""
    raw: Json = field(repr=False)
    """The whole object."""

    @classmethod
    def of(cls, json: Json | None) -> Recording | None:
        """Read the object `recording` of `/status`."""
        if not json:
            return None
        ring = json.get("ring") or {}
        free = [lane["free_bytes"] for lane in json.get("lanes", []) if lane.get("free_bytes") is not None]
        return cls(
            counted_in=json.get("counted_in", "packets"),
            received=json.get("received_packets", 0),
            acknowledged=json.get("acknowledged_packets", 0),
            durable=json.get("durable_packets", 0),
            missing=(json.get("lost") or {}).get("packets", 0),
            announced=json.get("announced_frames"),
            damaged=json.get("damaged_frames", 0),
            fault=json.get("fault"),
            seconds=json.get("seconds", 0.0),
            bytes_per_second=(json.get("came") or {}).get("bytes_per_second", 0.0),
            buffer_in_use=ring.get("in_use", 0) / max(1, ring.get("slots", 1)),
            free_bytes=min(free, default=None),
            file=FrameFile.of(json.get("file")),
            raw=json,
        )


@dataclass(frozen=True)
class EndedRecording:
    """A recording that has ended."""

    name: str
    """Its name."""
    counted_in: str
    """`packets` or `frames`."""
    count: int
    """Packets or frames recorded."""
    missing: int
    """Those missing, announced frames that did not come included."""
    fault: str | None
    """Why it did not end well. `None` if it did."""
    paths: tuple[Path, ...]
    """Its directories."""
    seconds: float
    """Its length."""
    raw: Json = field(repr=False)
    """The whole object."""

    @classmethod
    def of(cls, json: Json | None) -> EndedRecording | None:
        """Read the object `last` of `/status`, or the data of the event `recording_ended`."""
        if not json:
            return None
        return cls(
            name=json["name"],
            counted_in=json.get("counted_in", "packets"),
            count=json.get("packets", 0),
            missing=json.get("missing_packets", 0),
            fault=json.get("fault"),
            paths=tuple(Path(path) for path in json.get("paths", [])),
            seconds=json.get("seconds", 0.0),
            raw=json,
        )


@dataclass(frozen=True)
class Status:
    """State of a recorder at one moment."""

    state: State
    """State of the service."""
    name: str | None
    """Name of the recording that is armed or runs. `None` between two."""
    fault: str | None
    """Why the last recording failed. `None` if it did not."""
    awaits: str | None
    """Address from which the service awaits a series. `None` if it awaits none."""
    missing: str | None
    """Setting that is missing before the service can be armed. `None` if nothing is."""
    recording: Recording | None
    """Figures of the recording that runs, or of the one before."""
    last: EndedRecording | None
    """The recording that ended last."""
    recordings: int
    """Recordings that ended since the service started."""
    version: str
    """Version of the program."""
    raw: Json = field(repr=False)
    """The whole answer."""

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> Status:
        """Read the answer of `/status` or of an order."""
        return cls(
            state=State(json["state"]),
            name=json.get("name"),
            fault=json.get("fault"),
            awaits=json.get("awaits"),
            missing=(json.get("configuration") or {}).get("missing"),
            recording=Recording.of(json.get("recording")),
            last=EndedRecording.of(json.get("last")),
            recordings=json.get("recordings", 0),
            version=json.get("version", ""),
            raw=dict(json),
        )

    @property
    def is_busy(self) -> bool:
        """True if a recording is armed, awaited or running."""
        return self.state in (State.WAITING, State.ARMED, State.RECORDING)


@dataclass(frozen=True)
class LatestFrame:
    """The latest acknowledged frame as a reduced picture."""

    frame: int
    """Its number."""
    recording: str
    """Name of its recording."""
    width: int
    """Pixels in a row of the picture."""
    height: int
    """Rows of the picture."""
    factor: int
    """Width and height of the square of pixels that one pixel of the picture shows."""
    low: float
    """Value of code 0."""
    high: float
    """Value of code 254."""
    codes: bytes
    """A byte for each pixel, row by row; 255 is masked. Other codes are logarithmic, see `value_of`."""
    raw: Json = field(repr=False)
    """The first line of the answer."""

    def value_of(self, code: int) -> float | None:
        """Return the value of a code. `None` if it is masked."""
        if code == MASKED:
            return None
        span = 1 + self.high - self.low
        return self.low + float(span ** (code / (MASKED - 1))) - 1


MASKED = 255
"""Code of a pixel without a value."""


@dataclass(frozen=True)
class Event:
    """An event of the service."""

    kind: str
    """`status` or `recording_ended`."""
    status: Status | None
    """The state, of an event `status`; else `None`."""
    ended: EndedRecording | None
    """The recording, of an event `recording_ended`; else `None`."""
