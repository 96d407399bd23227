"""The recorder as variables of EPICS and of Tango: the real program `nilometer-fastcs`, and real clients, on loopback."""

import asyncio
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import PATIENCE, Service, awaited, free_port

Send = Callable[..., "subprocess.Popen[bytes]"]
Show = Callable[..., "Shown"]


class Shown:
    """`nilometer-fastcs`, at ports of its own on loopback."""

    def __init__(self, service: Service, prefix: str, transport: str) -> None:
        self.prefix = prefix
        self.port, other = free_port(), free_port()
        self.environment = {
            "EPICS_PVA_ADDR_LIST": "127.0.0.1", "EPICS_PVA_AUTO_ADDR_LIST": "NO",
            "EPICS_PVAS_INTF_ADDR_LIST": "127.0.0.1", "EPICS_PVA_BROADCAST_PORT": str(self.port),
            "EPICS_PVAS_BROADCAST_PORT": str(self.port), "EPICS_PVA_SERVER_PORT": str(other),
            "EPICS_PVAS_SERVER_PORT": str(other), "EPICS_CA_ADDR_LIST": "127.0.0.1", "EPICS_CA_AUTO_ADDR_LIST": "NO",
            "EPICS_CAS_INTF_ADDR_LIST": "127.0.0.1", "EPICS_CA_SERVER_PORT": str(self.port),
            "EPICS_CAS_SERVER_PORT": str(self.port), "EPICS_CA_REPEATER_PORT": str(other),
        }
        command = [sys.executable, "-m", "nilometer_control.fastcs", service.url, "--prefix", prefix]
        self.log = service.directory / "fastcs.log"
        with self.log.open("w") as said:
            self.process = subprocess.Popen(
                [*command, "--transport", transport], env=os.environ | self.environment,
                stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            )


@pytest.fixture
def show() -> Iterator[Show]:
    """Start `nilometer-fastcs` for a service."""
    made: list[Shown] = []

    def start(service: Service, prefix: str, transport: str) -> Shown:
        made.append(Shown(service, prefix, transport))
        return made[-1]

    yield start
    for shown in made:
        shown.process.kill()
        shown.process.wait()


def test_epics_records_a_series_over_pvaccess(service: Service, send: Send, show: Show) -> None:
    from p4p.client.thread import Context, RemoteError

    shown = show(service, "NIL", "pva")
    with Context("pva", conf=shown.environment, useenv=False) as epics:

        def get(name: str) -> Any:
            return epics.get(f"NIL:{name}", timeout=PATIENCE)

        awaited(lambda: get("Connected"), "the recorder is connected")
        assert get("State") == "configured"
        with pytest.raises(RemoteError, match="arm it first"):
            epics.put("NIL:Start", True, timeout=PATIENCE, wait=True)
        awaited(lambda: "arm it first" in get("Fault"), "the fault has the sentence")
        epics.put("NIL:FileName", "epics-1", timeout=PATIENCE)
        epics.put("NIL:Arm", True, timeout=PATIENCE, wait=True)
        awaited(lambda: get("State") == "waiting", "the recorder waits")
        assert (get("Recording"), get("Fault")) == ("epics-1", "")
        send(service.stream, "--images", 15)
        awaited(lambda: get("Recordings") == 1, "the recording ends")
        awaited(lambda: get("FramesWritten") == 15, "all frames are written")
        assert (get("FramesDurable"), get("FramesMissing"), get("State")) == (15, 0, "configured")
        service.kill()
        awaited(lambda: not get("Connected"), "the recorder is lost")
        assert "does not answer" in get("Fault")


def test_epics_records_a_series_over_channel_access(service: Service, send: Send, show: Show) -> None:
    aioca = pytest.importorskip("aioca")
    shown = show(service, "NILCA", "ca")
    script = textwrap.dedent("")
    del aioca, script, shown, send


def test_tango_records_a_series(service: Service, send: Send) -> None:
    from fastcs.transports.tango.dsr import TangoDSR
    from tango.test_context import DeviceTestContext

    from nilometer_control import AsyncRecorder
    from nilometer_control.fastcs import controller

    del TangoDSR, DeviceTestContext, AsyncRecorder, controller, asyncio, Path
