"""A Nilometer recorder as process variables of EPICS, or as a device of Tango, by FastCS. Needs the extra `fastcs`.

    nilometer-fastcs http://127.0.0.1:9620 --prefix BL01-NIL --transport pva --transport ca

A command that the recorder refuses raises the alarm of its variable, and `Fault` has the recorder's sentence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fastcs.attributes import AttrR, AttrRW
from fastcs.control_system import FastCS
from fastcs.controllers import Controller, ControllerAPI
from fastcs.datatypes import Bool, Float, Int, String
from fastcs.methods import command, scan
from fastcs.transports.transport import Transport

from .async_recorder import AsyncRecorder
from .errors import RecorderError
from .status import Recording, State, Status

SCAN_SECONDS = 0.2
"""Time between two looks at the recorder."""
TEXT_BYTES = 1024
"""Longest text of a variable."""


def _text() -> String:
    return String(TEXT_BYTES)


class NilometerController(Controller):
    """A recorder. Variables that can be set are for the next `arm`; all others follow the recorder."""

    file_path = AttrRW(_text(), description="Directory of the next recording")
    file_name = AttrRW(_text(), description="Name of the next recording")
    source = AttrRW(_text(), description="Address that listens: tcp://A:P")
    connected = AttrR(Bool(), description="The recorder answers")
    state = AttrR(_text(), description="State of the recorder")
    fault = AttrR(_text(), description="Why it failed or refused")
    writing = AttrR(Bool(), description="A recording runs")
    recording = AttrR(_text(), description="Name of the recording")
    full_file_name = AttrR(_text(), description="File of the frames")
    frames_received = AttrR(Int(), description="Frames in memory")
    frames_written = AttrR(Int(), description="Frames that can be read")
    frames_durable = AttrR(Int(), description="Frames safe from power loss")
    frames_missing = AttrR(Int(), description="Frames that are missing")
    recordings = AttrR(Int(), description="Recordings that have ended")
    buffer_used = AttrR(Float(units="%"), description="Used part of the buffer")
    rate = AttrR(Float(units="MB/s"), description="Data that arrive")
    free_bytes = AttrR(Float(units="B"), description="Free space")

    def __init__(self, recorder: AsyncRecorder) -> None:
        """Show this recorder."""
        super().__init__(description="Nilometer recorder")
        self._recorder = recorder
        self._refused: str | None = None

    @scan(SCAN_SECONDS)
    async def update(self) -> None:
        """Read the state of the recorder into the variables."""
        try:
            status = await self._recorder.status()
        except RecorderError as error:
            await self.connected.update(False)
            await self.fault.update(str(error))
            return
        await self._show(status)

    @command()
    async def arm(self) -> None:
        """Prepare a recording with the name, directory and source that are set."""
        keys = {"name": self.file_name.get(), "to": self.file_path.get(), "listen": self.source.get()}
        await self._order(self._recorder.arm(**{key: value for key, value in keys.items() if value}))

    @command()
    async def start(self) -> None:
        """Begin to record packets."""
        await self._order(self._recorder.start())

    @command()
    async def stop(self) -> None:
        """End the recording."""
        await self._order(self._recorder.stop())

    async def _order(self, order: Coroutine[Any, Any, Status]) -> None:
        try:
            status = await order
        except RecorderError as error:
            self._refused = str(error)
            await self.fault.update(self._refused)
            raise
        self._refused = None
        await self._show(status)

    async def _show(self, status: Status) -> None:
        await self.connected.update(True)
        await self.state.update(status.state)
        await self.fault.update(self._refused or status.fault or "")
        await self.writing.update(status.state is State.RECORDING)
        await self.recordings.update(status.recordings)
        await self.recording.update(status.name or (status.last.name if status.last else ""))
        # Between arm and the first frame the recorder still shows the recording before.
        is_next = status.state in (State.WAITING, State.ARMED)
        await self._show_recording(None if is_next else status.recording)

    async def _show_recording(self, recording: Recording | None) -> None:
        file = recording.file.readable if recording and recording.file else None
        await self.full_file_name.update(str(file or ""))
        await self.frames_received.update(recording.received if recording else 0)
        await self.frames_written.update(recording.acknowledged if recording else 0)
        await self.frames_durable.update(recording.durable if recording else 0)
        await self.frames_missing.update(recording.missing if recording else 0)
        await self.buffer_used.update(100 * recording.buffer_in_use if recording else 0.0)
        await self.rate.update(recording.bytes_per_second / 1e6 if recording else 0.0)
        if recording and recording.free_bytes is not None:
            await self.free_bytes.update(float(recording.free_bytes))


def _pva() -> Transport:
    from fastcs.transports.epics.pva.transport import EpicsPVATransport

    return EpicsPVATransport()


def _ca() -> Transport:
    from fastcs.transports.epics.ca.transport import EpicsCATransport

    return EpicsCATransport()


def _tango() -> Transport:
    from fastcs.transports.tango.dsr import TangoDSROptions
    from fastcs.transports.tango.transport import TangoTransport

    return TangoTransport(TangoDSROptions(dsr_instance=TANGO_INSTANCE))


TRANSPORTS: dict[str, Callable[[], Transport]] = {"pva": _pva, "ca": _ca, "tango": _tango}
"""Ways to show the variables: pvAccess and Channel Access of EPICS, and Tango."""
TANGO_INSTANCE = "nilometer"
"""Instance of the device server `FastCS`, and the last part of the device's name."""


def tango_at(port: int) -> Transport:
    """Return a transport of Tango that needs no database of Tango, and listens at this port of this machine.

    Its device is `tango://127.0.0.1:PORT/PREFIX/PREFIX/nilometer#dbase=no`.
    """
    from fastcs.transports.tango.transport import TangoTransport
    from fastcs.transports.tango.util import tango_dev_class_name, tango_dev_name
    from tango import GreenMode, server

    class LoneTangoTransport(TangoTransport):
        def connect(self, controller_apis: list[ControllerAPI], loop: asyncio.AbstractEventLoop) -> None:
            super().connect(controller_apis, loop)
            names = [api.path[0] for api in controller_apis]
            self._listed = [f"{tango_dev_class_name(name)}::{tango_dev_name(name, TANGO_INSTANCE)}" for name in names]

        async def serve(self) -> None:
            place = ["-ORBendPoint", f"giop:tcp:127.0.0.1:{port}"]
            arguments = ["FastCS", TANGO_INSTANCE, "-nodb", "-dlist", ",".join(self._listed), *place]
            devices = tuple(self._dsr._devices)
            await asyncio.to_thread(server.run, devices, arguments, green_mode=GreenMode.Asyncio)

    return LoneTangoTransport()


def controller(recorder: AsyncRecorder, prefix: str) -> NilometerController:
    """Return the controller of a recorder, whose variables are called `PREFIX:Name`."""
    made = NilometerController(recorder)
    made.set_path([prefix])
    return made


def serve(recorder: AsyncRecorder, prefix: str, transports: Sequence[str], tango_port: int | None) -> None:
    """Serve the variables of one recorder until SIGINT or SIGTERM.

    Raises `ImportError` if a transport is not installed, and `ValueError` if it does not allow the prefix.
    """
    shown = [TRANSPORTS[name]() for name in transports]
    shown += [tango_at(tango_port)] if tango_port else []
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    FastCS(controller(recorder, prefix), shown, loop).run(interactive=False)
