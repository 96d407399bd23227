"""A Nilometer recorder as the writer of a detector of ophyd-async, for plans of Bluesky. Needs the extra `bluesky`.

    plan -> NilometerDetector -> arm -> recorder <- frames <- detector
                       ^-- frames acknowledged, or why there are none -- recorder

The recorder tells shape, type, dataset and file; the path provider gives directory and name. If the recorder fails,
loses frames or dies, the plan ends with the reason.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bluesky.protocols import StreamAsset
from event_model import ComposeStreamResource, ComposeStreamResourceBundle, DataKey
from ophyd_async.core import (
    AsyncStatus,
    DetectorAcquireLogic,
    DetectorDataLogic,
    DetectorTriggerLogic,
    PathInfo,
    PathProvider,
    StandardDetector,
    StreamableDataProvider,
    TriggerInfo,
    WatchableAsyncStatus,
    WatcherUpdate,
    soft_signal_r_and_setter,
)

from .async_recorder import AsyncRecorder
from .errors import RecorderError, RecorderTimeout, RecordingFailed
from .status import EndedRecording, FrameFile, State, Status

MIMETYPE = "application/x-hdf5"
END_SECONDS = 8.0
"""Time in which a series ends by itself once all its frames are there: its end message may take 5 s."""

SETTLE_SECONDS = 1.0
"""Time in which a status is done after the end of its recording, if all frames are there."""


class _Frames(StreamableDataProvider):
    """The frames of one recording, for the documents of a run."""

    def __init__(self, key: str, logic: NilometerDataLogic) -> None:
        self._key = key
        self._logic = logic
        self._emitted = 0
        self._bundle: ComposeStreamResourceBundle | None = None
        self.collections_written_signal = logic.written

    async def make_datakeys(self, collections_per_event: int) -> dict[str, DataKey]:
        shape, dtype = self._logic.frame_type()
        key = DataKey(
            source=f"{self._logic.recorder.address}",
            shape=[collections_per_event, *shape],
            dtype="array",
            dtype_numpy=dtype,
            external="STREAM:",
        )
        return {self._key: key}

    async def make_stream_docs(
        self, collections_written: int, collections_per_event: int
    ) -> AsyncIterator[StreamAsset]:
        count = collections_written // collections_per_event
        if count <= self._emitted:
            return
        if self._bundle is None:
            self._bundle = self._compose(self._logic.file())
            yield "stream_resource", self._bundle.stream_resource_doc
        indices = {"start": self._emitted, "stop": count}
        self._emitted = count
        yield "stream_datum", self._bundle.compose_stream_datum(indices)  # type: ignore[arg-type]

    def _compose(self, file: FrameFile) -> ComposeStreamResourceBundle:
        path = file.readable
        if path is None or file.chunk is None:
            raise RecordingFailed(f'{file.paths[0]} is not HDF5, which plans need: set format = "hdf5"')
        return ComposeStreamResource()(
            mimetype=MIMETYPE,
            uri=self._logic.uri(path),
            data_key=self._key,
            parameters={"dataset": file.dataset, "chunk_shape": list(file.chunk)},
            uid=None,
            validate=True,
        )


class NilometerDataLogic(DetectorDataLogic):
    """Arms the recorder for each preparation of a detector, and follows the recording."""

    def __init__(
        self,
        recorder: AsyncRecorder,
        path_provider: PathProvider,
        shape: Sequence[int] | None = None,
        dtype: str | None = None,
    ) -> None:
        """Follow this recorder. `shape` and `dtype` are of a frame, if a plan needs them before the first one.

        The recorder knows them when packets are armed, or when a series begins. A plan that declares its stream before
        it starts a series over TCP needs them earlier. They must then be right: else the plan ends.
        """
        self.recorder = recorder
        self.written, self._set_written = soft_signal_r_and_setter(int, 0)
        self._path_provider = path_provider
        self._expected = (tuple(shape), dtype) if shape and dtype else None
        self._file: FrameFile | None = None
        self._place: PathInfo | None = None
        self._name = ""
        self._last: Status | None = None
        self._requested = 0
        self._task: asyncio.Task[None] | None = None
        self.over = asyncio.Event()
        """Set when the recording has ended, well or not. `raise_reason` then has the reason."""

    def raise_reason(self) -> None:
        """Raise the reason why the recording has no more frames. Call it when `over` is set."""
        if self._task is not None and not self._task.cancelled() and (reason := self._task.exception()):
            raise reason
        raise RecordingFailed(f"{self._name}: the recording has ended; prepare the detector for another one")

    def request(self, frames: int) -> None:
        """State the number of frames without which a recording has failed."""
        self._requested = frames

    def frame_type(self) -> tuple[tuple[int, ...], str]:
        """Return shape and type of a frame. Raises `RecorderError` if nobody knows them yet."""
        file = self._file
        if file and file.shape and file.dtype:
            return (*file.scan, *file.shape), file.dtype
        if self._expected:
            shape, dtype = self._expected
            return shape, dtype or ""
        raise RecorderError(
            "the recorder knows shape and type of frames when the series begins: "
            "give `shape` and `dtype` of the detector"
        )

    def file(self) -> FrameFile:
        """Return the file of the recording. Raises `RecordingFailed` if the recorder did not state it."""
        if self._file is None:
            raise RecordingFailed(f"the recorder states no file of {self._name}")
        return self._file

    def uri(self, path: Path) -> str:
        """Return the address of a file for readers, who may find the directory elsewhere than the recorder does."""
        if self._place is None or not path.is_relative_to(self._place.directory_path):
            return path.as_uri().replace("file://", "file://localhost", 1)
        return self._place.directory_uri + quote(str(path.relative_to(self._place.directory_path)))

    async def prepare_unbounded(self, datakey_name: str) -> StreamableDataProvider:
        """Arm the recorder. Raises the service's sentence if it refuses."""
        place = self._path_provider(datakey_name)
        before = await self.recorder.status()
        self._set_written(0)
        self._place, self._name, self._file = place, place.filename, None
        self.over.clear()
        status = await self.recorder.arm(place.filename, to=str(place.directory_path))
        if status.state is State.ARMED:
            status = await self.recorder.start()
        self._see(status)
        self._task = asyncio.create_task(self._follow(before.recordings))
        self._task.add_done_callback(lambda _: self.over.set())
        return _Frames(datakey_name, self)

    def get_hinted_fields(self, datakey_name: str) -> Sequence[str]:
        """Return the field of the frames."""
        return [datakey_name]

    async def stop(self) -> None:
        """End the recording, if it still runs, and stop to follow it."""
        task, self._task = self._task, None
        if task is None:
            return
        try:
            if not task.done() and self._requested and await self.written.get_value() >= self._requested:
                # The end message of a series may be on its way.
                await asyncio.wait({task}, timeout=END_SECONDS)
        finally:
            task.cancel()
            await asyncio.wait({task})
        with contextlib.suppress(RecorderError):
            status = await self.recorder.status()
            if status.is_busy and status.name == self._name:
                await self.recorder.stop()

    async def _follow(self, before: int) -> None:
        async with contextlib.aclosing(self.recorder.events()) as events:
            async for event in events:
                if event.status is None:
                    continue
                status = event.status
                if status.state is State.FAILED:
                    self._see(status)
                    raise RecordingFailed(self._reason(status.fault, status.last))
                if status.recordings > before or status.state is State.RECORDING:
                    self._see(status)
                if status.recordings > before:
                    self._check_end(status.last)
                    return

    def _see(self, status: Status) -> None:
        """Take the figures of a status of this recording."""
        self._last = status
        recording = status.recording
        if recording is None or not self._is_of_this(status):
            return
        file = self._file = recording.file
        if file and file.shape and self._expected and (self.frame_type() != self._expected):
            shape, dtype = self.frame_type()
            wanted, of = self._expected
            raise RecordingFailed(
                f"frames of {self._name} have shape {shape} of {dtype}, and the plan expects {wanted} of {of}"
            )
        self._set_written(file.frames_acknowledged if file else recording.acknowledged)

    def _check_end(self, ended: EndedRecording | None) -> None:
        count = self._count()
        if ended and (ended.fault or count < self._requested):
            raise RecordingFailed(self._reason(ended.fault, ended))

    def _count(self) -> int:
        recording = self._last.recording if self._last else None
        if recording is None or self._last is None or not self._is_of_this(self._last):
            return 0
        return recording.file.frames_acknowledged if recording.file else recording.acknowledged

    @staticmethod
    def _is_of_this(status: Status) -> bool:
        """False between arm and the first frame, when the recorder still shows the recording before."""
        return status.state not in (State.WAITING, State.ARMED)

    def _reason(self, fault: str | None, ended: EndedRecording | None) -> str:
        missing = f", {ended.missing} missing" if ended and ended.name == self._name and ended.missing else ""
        wanted = f" of {self._requested} requested" if self._requested else ""
        return f"{self._name}: the recording ended with {self._count()}{wanted} frames{missing}" + (
            f": {fault}" if fault else ""
        )

    def timed_out(self) -> RecorderTimeout:
        """Return the exception for frames that did not come in time, with the state of the recorder."""
        state = self._last.state if self._last else "silent"
        wanted = f" of {self._requested} requested" if self._requested else ""
        there = f"{self._count()}{wanted} are there, and the recorder is {state}"
        return RecorderTimeout(f"{self._name}: no frame came in time; {there}")


class NilometerDetector(StandardDetector):
    """A detector whose frames a Nilometer recorder stores.

    One preparation is one recording, and one series of a detector that sends series.
    """

    def __init__(
        self,
        recorder: AsyncRecorder | str,
        path_provider: PathProvider,
        *,
        trigger: DetectorTriggerLogic | None = None,
        acquire: DetectorAcquireLogic | None = None,
        shape: Sequence[int] | None = None,
        dtype: str | None = None,
        name: str = "",
    ) -> None:
        """Join a recorder, by its URL or as a client, to the logic that controls the detector itself.

        Without `acquire` somebody else starts the detector.
        """
        client = AsyncRecorder(recorder) if isinstance(recorder, str) else recorder
        self.data = NilometerDataLogic(client, path_provider, shape, dtype)
        self.add_detector_logics(self.data, *(logic for logic in (trigger, acquire) if logic))
        super().__init__(name=name)

    def prepare(self, value: TriggerInfo) -> AsyncStatus[None]:
        """Arm the recorder, and prepare the detector."""
        self.data.request(value.number_of_collections)
        return super().prepare(value)

    def trigger(self) -> WatchableAsyncStatus[int]:
        """Take one exposure. The status has the recorder's reason if it fails."""
        return WatchableAsyncStatus(self._watched(super().trigger), name=self.name)

    def complete(self) -> WatchableAsyncStatus[int]:
        """Wait for all frames. The status has the recorder's reason if it fails."""
        return WatchableAsyncStatus(self._watched(super().complete), name=self.name)

    async def _watched(self, begin: Callable[[], WatchableAsyncStatus[int]]) -> AsyncIterator[WatcherUpdate[int]]:
        """Pass on the updates of a status until it is done. Ends it if the recording ends first."""
        status = begin()
        updates: asyncio.Queue[WatcherUpdate[int] | None] = asyncio.Queue()

        def watcher(**values: Any) -> None:
            updates.put_nowait(WatcherUpdate(**values))

        status.watch(watcher)  # type: ignore[arg-type]
        status.task.add_done_callback(lambda _: updates.put_nowait(None))
        guard = asyncio.create_task(self._end_with_recording(status))
        try:
            while update := await updates.get():
                yield update
            if guard.done() and not guard.cancelled() and guard.result():
                self.data.raise_reason()
            await status
        except TimeoutError as error:
            raise error if isinstance(error, RecorderError) else self.data.timed_out() from error
        finally:
            guard.cancel()
            status.task.cancel()

    async def _end_with_recording(self, status: WatchableAsyncStatus[int]) -> bool:
        """Cancel the status if the recording ends and the frames that are there do not complete it."""
        await self.data.over.wait()
        done, _ = await asyncio.wait({status.task}, timeout=SETTLE_SECONDS)
        return not done and status.task.cancel()
