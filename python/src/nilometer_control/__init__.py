"""Control of a Nilometer recorder, and readers of its records and recordings.

from nilometer_control import Recorder
recorder = Recorder("http://127.0.0.1:9620")
recorder.arm("scan-1", listen="tcp://127.0.0.1:31001")
"""

from .async_recorder import AsyncRecorder
from .dump import Dump, DumpState
from .errors import (
    InvalidOrder,
    NotAllowed,
    OrderFailed,
    RecorderBusy,
    RecorderError,
    RecorderTimeout,
    RecorderUnreachable,
    RecordingFailed,
    WrongState,
)
from .recorder import Recorder
from .status import EndedRecording, Event, FrameFile, LatestFrame, Recording, State, Status

__version__ = "0.1.0"
"""The version of this package, which is that of the program."""

__all__ = [
    "AsyncRecorder",
    "Dump",
    "DumpState",
    "EndedRecording",
    "Event",
    "FrameFile",
    "InvalidOrder",
    "LatestFrame",
    "NotAllowed",
    "OrderFailed",
    "Recorder",
    "RecorderBusy",
    "RecorderError",
    "RecorderTimeout",
    "RecorderUnreachable",
    "Recording",
    "RecordingFailed",
    "State",
    "Status",
    "WrongState",
    "__version__",
]
