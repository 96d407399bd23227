"""Arrays of EPICS pvAccess that the recorder records: a real server of p4p, the command, and the file by h5py."""

import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import lz4.block
import numpy as np
import pytest
from loopback import PATIENCE, Service, awaited
from p4p import Value
from p4p.nt import NTNDArray
from p4p.server import Server
from p4p.server.thread import SharedPV

from nilometer_control import Recorder
from nilometer_control.ntndarray import SCALAR_TYPES, UnusableArray, image_of

SHAPE = (48, 64)
NAME = "DET:Pva1:Image"
AHEAD = 8
"""Arrays that the server sends at most before the recorder has the first of them."""


def pixels(number: int, dtype: str = "uint16") -> np.ndarray:
    """Return the pixels of an array, of which no two are alike."""
    rows, columns = np.indices(SHAPE)
    return (number * 251 + rows * 64 + columns).astype(dtype)


def packed(codec: str, array: np.ndarray, directory: Path) -> bytes:
    """Compress as areaDetector does. The filters of HDF5 write their own header in front of bitshuffle's blocks."""
    match codec:
        case "bslz4":
            with h5py.File(directory / "packed.h5", "w") as file:
                filters = hdf5plugin.Bitshuffle(nelems=0, cname="lz4")
                dataset = file.create_dataset("data", data=array, chunks=array.shape, **filters)
                _, chunk = dataset.id.read_direct_chunk((0, 0))
                return bytes(chunk[12:])
        case "lz4":
            return bytes(lz4.block.compress(array.tobytes(), store_size=False))
        case _:
            data = lz4.block.compress(array.tobytes(), store_size=False)
            return struct.pack(">QII", array.nbytes, array.nbytes, len(data)) + data


def array_value(number: int, array: np.ndarray, codec: str = "", data: bytes = b"") -> Value:
    """Return an `NTNDArray` with this `uniqueId`."""
    value = NTNDArray().wrap(array, timestamp=(1_700_000_000 + number, 5))
    value.uniqueId = number
    value.dataTimeStamp = {"secondsPastEpoch": 1_700_000_000 + number, "nanoseconds": 0}
    # The server posts fields that are set, and keeps all others.
    value.codec = {"name": codec, "parameters": 0}
    if codec:
        numbers = {name: scalar for scalar, name in SCALAR_TYPES.items()}
        value.value = ("ubyteValue", np.frombuffer(data, np.uint8))
        value.compressedSize = len(data)
        value.codec = {"name": codec, "parameters": numbers[array.dtype.name]}
    return value


class Detector:
    """A server with one variable, and the command that hands its arrays to a recorder."""

    def __init__(self, service: Service) -> None:
        self.variable = SharedPV(initial=array_value(999, pixels(999)))
        self.server = Server(providers=[{NAME: self.variable}], isolate=True)
        self.service = service
        self.log = service.directory / "ntndarray.log"
        self.process: subprocess.Popen[str] | None = None

    def hand_on(self, *options: str) -> subprocess.Popen[str]:
        """Start the command, and wait until it has the initial value."""
        command = [sys.executable, "-m", "nilometer_control.ntndarray_command", NAME, "--to", self.service.stream]
        with self.log.open("w") as said:
            self.process = subprocess.Popen(
                [*command, *options],
                env=os.environ | {name: str(value) for name, value in self.server.conf().items()},
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )
        process = self.process
        awaited(
            lambda: process.poll() is not None or "is connected" in self.log.read_text(),
            "the command is connected",
        )
        assert process.poll() is None, self.log.read_text()
        return process

    def close(self) -> None:
        """End both."""
        if self.process:
            self.process.kill()
            self.process.communicate()
        self.server.stop()


@pytest.fixture
def detector(service: Service) -> Iterator[Detector]:
    """A detector for a recorder that listens."""
    made = Detector(service)
    yield made
    made.close()


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Return the exit code of the command, and its last line."""
    said, _ = process.communicate(timeout=PATIENCE)
    return process.returncode, said.strip()


def frames_of(recorder: Recorder, state: str = "configured") -> np.ndarray:
    """Return the frames of the recording that ends with this state."""
    recording = recorder.wait_for(state, timeout=PATIENCE).recording
    assert recording is not None and recording.file is not None and recording.file.readable is not None
    with h5py.File(recording.file.readable) as file:
        dataset = file[recording.file.dataset]
        return np.asarray(dataset[()]).reshape(-1, *SHAPE)


def received(recorder: Recorder) -> int:
    """Return the number of frames that the recorder has."""
    recording = recorder.status().recording
    return recording.received if recording else 0


@pytest.mark.parametrize("codec", ["", "bslz4", "lz4", "lz4hdf5"])
def test_arrays_are_recorded(codec: str, recorder: Recorder, detector: Detector, tmp_path: Path) -> None:
    recorder.arm("pva-1")
    process = detector.hand_on("--arrays", "50")

    for number in range(50):
        array = pixels(number)
        awaited(lambda least=number - AHEAD: received(recorder) >= least, "the recorder has the arrays before")
        detector.variable.post(array_value(number + 1, array, codec, packed(codec, array, tmp_path) if codec else b""))
    assert ended(process) == (0, "sent 50 arrays in 1 series, missed none")
    frames = frames_of(recorder)
    assert frames.dtype == np.uint16
    assert np.array_equal(frames, np.stack([pixels(number) for number in range(50)]))


def test_gaps_and_unusable_arrays_are_counted(recorder: Recorder, detector: Detector) -> None:
    recorder.arm("pva-2")
    process = detector.hand_on("--arrays", "4")
    values = [array_value(number, pixels(number)) for number in (7, 8, 11)]
    jpeg = array_value(12, pixels(12), "jpeg", b"\xff\xd8")
    for value in [*values, jpeg, array_value(13, pixels(13))]:
        detector.variable.post(value)
    code, said = ended(process)
    assert code == 1
    assert said.startswith("sent 4 arrays in 1 series, missed 2; 1 unusable: its codec is 'jpeg': none, lz4, lz4hdf5")
    log = detector.log.read_text()
    assert "missed 2 arrays after number 8" in log and "array 12 is unusable: its codec is 'jpeg'" in log
    frames = frames_of(recorder, "failed")
    assert recorder.status().fault == "3 of 7 frames did not come"
    for place, number in ((0, 7), (1, 8), (4, 11), (6, 13)):
        assert np.array_equal(frames[place], pixels(number)), place


def test_arrays_that_count_anew_are_another_series(make_service: Callable[..., Service]) -> None:
    service = make_service(series="every")
    recorder, detector = Recorder(service.url), Detector(service)
    try:
        recorder.arm("pva")
        process = detector.hand_on()
        for number in (1, 2, 3, 1, 2):
            detector.variable.post(array_value(number, pixels(number)))
        awaited(lambda: recorder.status().recordings == 1 and received(recorder) == 2, "the second series")
        process.send_signal(signal.SIGTERM)
        assert ended(process) == (0, "sent 5 arrays in 2 series, missed none")
        awaited(lambda: recorder.status().recordings == 2, "both recordings end")
        last = recorder.status().last
        assert last is not None and (last.count, last.missing) == (2, 0)
    finally:
        detector.close()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"dimension": [{"size": size} for size in (3, 8, 2)]}, r"dimensions are \[3, 8, 2\]"),
        ({"dimension": [{"size": 9}]}, "it has 48 B, and its dimensions and type 9 B"),
        ({"dimension": []}, "it is empty"),
        ({"codec": {"name": "blosc", "parameters": 5}, "uncompressedSize": 48}, "its codec is 'blosc'"),
        ({"codec": {"name": "lz4", "parameters": 11}}, "codec.parameters is 11"),
        ({"codec": {"name": "lz4", "parameters": 6}, "uncompressedSize": 48}, "uncompressedSize is 48 B"),
        ({"value": ("booleanValue", [True] * 48)}, "its pixels are of type bool"),
    ],
)
def test_unusable_arrays_say_why(change: dict[str, Any], why: str) -> None:
    value = array_value(1, np.zeros((6, 8), np.uint8))
    for name, new in change.items():
        value[name] = new
    with pytest.raises(UnusableArray, match=why):
        image_of(value)


@pytest.mark.parametrize(("options", "why"), [(["--to", "h:5"], "tcp://HOST:PORT"), (["--arrays", "0"], "at least 1")])
def test_wrong_options_are_refused(options: list[str], why: str) -> None:
    command = [sys.executable, "-m", "nilometer_control.ntndarray_command", NAME, "--to", "tcp://127.0.0.1:5", *options]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and why in refused.stderr
