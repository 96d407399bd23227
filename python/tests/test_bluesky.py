"""Plans of Bluesky with ophyd-async: a run engine, a real recorder, and Tiled, which reads the frames back."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bluesky.plan_stubs as bps
import bluesky.plans as bp
import bluesky.preprocessors as bpp
import hdf5plugin  # noqa: F401  (HDF5 finds its filters)
import numpy as np
import pytest
from bluesky import RunEngine
from bluesky.utils import FailedStatus
from bluesky_tiled_plugins import TiledWriter
from loopback import PATIENCE, Service, awaited, free_port
from ophyd_async.core import (
    DetectorAcquireLogic,
    DetectorTriggerLogic,
    StaticFilenameProvider,
    StaticPathProvider,
    TriggerInfo,
    init_devices,
)
from sender import stamped
from tiled.client import from_uri

from nilometer_control import RecorderUnreachable, RecordingFailed
from nilometer_control.bluesky import NilometerDetector

Send = Callable[..., "subprocess.Popen[bytes]"]
SHAPE = (64, 80)


class Exposures(DetectorTriggerLogic):
    """The number of images of the next series."""

    images = 1

    async def prepare_internal(self, num: int, livetime: float, deadtime: float) -> None:
        self.images = num


class Camera(DetectorAcquireLogic):
    """A detector that sends a series when it is started."""

    def __init__(self, start: Callable[[int], "subprocess.Popen[bytes]"]) -> None:
        self.exposures = Exposures()
        self._start = start
        self._process: subprocess.Popen[bytes] | None = None

    async def start_acquiring(self) -> None:
        self._process = self._start(self.exposures.images)

    async def wait_for_idle(self) -> None:
        if self._process:
            await asyncio.to_thread(self._process.wait)

    async def ensure_stopped(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None


class Bench:
    """A run engine, and the documents of its runs."""

    def __init__(self, tmp_path: Path) -> None:
        self.engine = RunEngine({})
        self.documents: list[tuple[str, dict[str, Any]]] = []
        self.engine.subscribe(lambda name, document: self.documents.append((name, document)))

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [document for name, document in self.documents if name == kind]

    def detector(self, service: Service, camera: Camera | None, name: str, **options: Any) -> NilometerDetector:
        places = StaticPathProvider(StaticFilenameProvider(name), service.data)
        trigger = camera.exposures if camera else None
        with init_devices():
            detector = NilometerDetector(service.url, places, trigger=trigger, acquire=camera, name="camera", **options)
        return detector


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.engine.loop.call_soon_threadsafe(bench.engine.loop.stop)


def fly(detector: NilometerDetector, images: int, timeout: float = PATIENCE) -> Any:
    """A fly scan: one series of images."""

    @bpp.stage_decorator([detector])
    @bpp.run_decorator()
    def plan() -> Any:
        trigger = TriggerInfo(number_of_events=images, livetime=0.01, exposure_timeout=timeout)
        yield from bps.prepare(detector, trigger, wait=True)
        yield from bps.declare_stream(detector, name="primary")
        yield from bps.kickoff(detector, wait=True)
        yield from bps.collect_while_completing([detector], [detector], flush_period=0.2)

    return plan()


def fails(bench: Bench, plan: Any) -> str:
    """Run a plan that must fail. Returns the reason."""
    with pytest.raises(FailedStatus) as failure:
        bench.engine(plan)
    assert bench.of("stop")[-1]["exit_status"] == "fail"
    cause = failure.value.__cause__
    assert cause is not None
    return f"{type(cause).__name__}: {cause}"


class TiledServer:
    """`tiled serve catalog`, which may read the recordings."""

    KEY = "0123456789abcdef"

    def __init__(self, directory: Path, readable: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        command = [Path(sys.executable).with_name("tiled"), "serve", "catalog", "--temp", "--read", readable]
        self.log = directory / "tiled.log"
        with self.log.open("w") as said:
            self.process = subprocess.Popen(
                [*command, "--api-key", self.KEY, "--host", "127.0.0.1", "--port", str(port)],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )

    def client(self) -> Any:
        """Wait for the server, and connect."""
        awaited(lambda: self.process.poll() is not None or "startup complete" in self.log.read_text(), "Tiled starts")
        assert self.process.poll() is None, self.log.read_text()
        return from_uri(f"{self.url}/api/v1", api_key=self.KEY)


@pytest.fixture
def tiled(tmp_path: Path, service: Service) -> Iterator[TiledServer]:
    server = TiledServer(tmp_path, service.data)
    yield server
    server.process.kill()
    server.process.wait()


def test_tiled_reads_the_stamped_pixels_of_a_fly_scan(
    tiled: TiledServer, bench: Bench, service: Service, send: Send
) -> None:
    client = tiled.client()
    bench.engine.subscribe(TiledWriter(client, batch_size=1))
    camera = Camera(lambda images: send(service.stream, "--images", images))
    detector = bench.detector(service, camera, "fly", shape=SHAPE, dtype="<u4")
    bench.engine(fly(detector, 8))
    (resource,) = bench.of("stream_resource")
    assert resource["uri"] == f"file://localhost{service.data}/fly/fly.h5"
    assert resource["parameters"]["dataset"] == "/entry/data/data"
    ranges = [document["indices"] for document in bench.of("stream_datum")]
    assert (ranges[0]["start"], ranges[-1]["stop"]) == (0, 8)
    run = client[bench.of("start")[0]["uid"]]
    pixels = np.asarray(run["primary"]["camera"].read())
    expected = np.stack([stamped(number, SHAPE) for number in range(8)])
    assert np.array_equal(pixels.reshape(expected.shape), expected)


def test_a_step_scan_learns_the_shape_from_the_recorder(bench: Bench, service: Service, send: Send) -> None:
    camera = Camera(lambda images: send(service.stream, "--images", images, "--shape", 32, 48, "--dtype", "<u2"))
    bench.engine(bp.count([bench.detector(service, camera, "step")]))
    (descriptor,) = bench.of("descriptor")
    key = descriptor["data_keys"]["camera"]
    assert (key["shape"], key["dtype_numpy"]) == ([1, 32, 48], "<u2")
    assert bench.of("stop")[0]["exit_status"] == "success"


def test_a_sender_that_dies_ends_the_plan(bench: Bench, service: Service, send: Send) -> None:
    camera = Camera(lambda images: send(service.stream, "--images", 5, "--announce", images, "--die"))
    detector = bench.detector(service, camera, "dies", shape=SHAPE, dtype="<u4")
    reason = fails(bench, fly(detector, 12))
    assert reason.startswith(f"{RecordingFailed.__name__}: dies: the recording ended with 5 of 12 requested frames")


def test_fewer_images_than_announced_end_the_plan(bench: Bench, service: Service, send: Send) -> None:
    camera = Camera(lambda images: send(service.stream, "--images", 6, "--announce", images))
    detector = bench.detector(service, camera, "fewer", shape=SHAPE, dtype="<u4")
    reason = fails(bench, fly(detector, 10))
    assert reason.startswith(f"{RecordingFailed.__name__}: fewer: the recording ended with 6 of 10 requested frames")


def test_a_recorder_that_is_killed_ends_the_plan(bench: Bench, service: Service, send: Send) -> None:
    camera = Camera(lambda images: send(service.stream, "--images", images, "--pause", 0.2))
    detector = bench.detector(service, camera, "killed", shape=SHAPE, dtype="<u4")
    bench.engine.subscribe(lambda *_: service.kill(), "stream_datum")
    reason = fails(bench, fly(detector, 1000))
    assert reason.startswith(f"{RecorderUnreachable.__name__}: {service.url} ")


def test_a_detector_that_sends_nothing_ends_the_plan(bench: Bench, service: Service) -> None:
    detector = bench.detector(service, None, "silent", shape=SHAPE, dtype="<u4")

    @bpp.stage_decorator([detector])
    @bpp.run_decorator()
    def plan() -> Any:
        yield from bps.prepare(detector, TriggerInfo(number_of_events=3, exposure_timeout=1.0), wait=True)
        yield from bps.kickoff(detector, wait=True)
        yield from bps.complete(detector, wait=True)

    reason = fails(bench, plan())
    assert "no frame came in time; 0 of 3 requested are there, and the recorder is waiting" in reason
    # The recorder no longer waits: the next plan can arm it.
    assert asyncio.run(detector.data.recorder.status()).state == "configured"


def test_frames_of_another_shape_than_declared_end_the_plan(bench: Bench, service: Service, send: Send) -> None:
    camera = Camera(lambda images: send(service.stream, "--images", images, "--shape", 32, 48))
    detector = bench.detector(service, camera, "other", shape=SHAPE, dtype="<u4")
    reason = fails(bench, fly(detector, 3))
    assert "frames of other have shape (32, 48) of <u4, and the plan expects (64, 80) of <u4" in reason


def test_an_order_that_the_recorder_refuses_ends_the_plan(bench: Bench, service: Service, send: Send) -> None:
    (service.data / "taken").mkdir()
    (service.data / "taken" / "taken.h5").write_text("of somebody else")
    camera = Camera(lambda images: send(service.stream, "--images", images))
    detector = bench.detector(service, camera, "taken", shape=SHAPE, dtype="<u4")
    assert "taken" in fails(bench, fly(detector, 3))
