"""The recorder as variables of EPICS and of Tango: `nilometer-fastcs` and real clients, on loopback."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from loopback import PATIENCE, Service, awaited, free_port

Send = Callable[..., "subprocess.Popen[bytes]"]
Show = Callable[..., "Shown"]


class Shown:
    """`nilometer-fastcs`, at ports of its own on loopback."""

    def __init__(self, service: Service, prefix: str, *options: str) -> None:
        self.prefix = prefix
        self.port, other = free_port(), free_port()
        self.environment = {
            "EPICS_PVA_ADDR_LIST": "127.0.0.1",
            "EPICS_PVA_AUTO_ADDR_LIST": "NO",
            "EPICS_PVAS_INTF_ADDR_LIST": "127.0.0.1",
            "EPICS_PVA_BROADCAST_PORT": str(self.port),
            "EPICS_PVAS_BROADCAST_PORT": str(self.port),
            "EPICS_PVA_SERVER_PORT": str(other),
            "EPICS_PVAS_SERVER_PORT": str(other),
            "EPICS_CA_ADDR_LIST": "127.0.0.1",
            "EPICS_CA_AUTO_ADDR_LIST": "NO",
            "EPICS_CAS_INTF_ADDR_LIST": "127.0.0.1",
            "EPICS_CA_SERVER_PORT": str(self.port),
            "EPICS_CAS_SERVER_PORT": str(self.port),
            "EPICS_CA_REPEATER_PORT": str(other),
        }
        command = [sys.executable, "-m", "nilometer_control.command", service.url, "--prefix", prefix]
        self.log = service.directory / "fastcs.log"
        with self.log.open("w") as said:
            self.process = subprocess.Popen(
                [*command, *options],
                env=os.environ | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )


@pytest.fixture
def show() -> Iterator[Show]:
    """Start `nilometer-fastcs` for a service."""
    made: list[Shown] = []

    def start(service: Service, prefix: str, *options: str) -> Shown:
        made.append(Shown(service, prefix, *options))
        return made[-1]

    yield start
    for shown in made:
        shown.process.kill()
        shown.process.wait()


def test_epics_records_a_series_over_pvaccess(service: Service, send: Send, show: Show) -> None:
    from p4p.client.thread import Context, RemoteError

    shown = show(service, "NIL", "--transport", "pva")
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


def test_epics_records_a_series_over_channel_access(
    service: Service, send: Send, show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = show(service, "NILCA", "--transport", "ca")
    for name, value in shown.environment.items():
        monkeypatch.setenv(name, value)
    # The library reads the environment once, and no other test uses it.
    import aioca

    async def get(name: str) -> Any:
        is_text = name in ("State", "Fault", "Recording")
        datatype = aioca.DBR_CHAR_STR if is_text else None
        return await aioca.caget(f"NILCA:{name}", timeout=PATIENCE, datatype=datatype)

    async def until(name: str, value: object) -> None:
        async with asyncio.timeout(PATIENCE):
            while await get(name) != value:
                await asyncio.sleep(0.05)

    async def record() -> None:
        await until("Connected", 1)
        await aioca.caput("NILCA:FileName", "ca-1", timeout=PATIENCE, wait=True, datatype=aioca.DBR_CHAR_STR)
        await aioca.caput("NILCA:Arm", 1, timeout=PATIENCE, wait=True)
        await until("State", "waiting")
        send(service.stream, "--images", 6)
        await until("FramesWritten", 6)
        await until("State", "configured")
        assert await get("Recording") == "ca-1"
        aioca.purge_channel_caches()

    asyncio.run(record())


def test_tango_records_a_series(service: Service, send: Send, show: Show) -> None:
    import tango

    port = free_port()
    show(service, "NIL", "--tango-port", str(port))
    address = f"tango://127.0.0.1:{port}/NIL/NIL/nilometer#dbase=no"

    def is_connected() -> bool:
        try:
            return bool(tango.DeviceProxy(address).Connected)
        except (tango.DevFailed, AttributeError):
            # The server is about to start.
            return False

    awaited(is_connected, "the recorder is connected")
    nilometer = tango.DeviceProxy(address)
    nilometer.FileName = "tango-1"
    nilometer.Arm()
    assert nilometer.read_attribute("Recording").value == "tango-1"
    with pytest.raises(tango.DevFailed, match="it is waiting"):
        nilometer.Arm()
    send(service.stream, "--images", 7)
    awaited(lambda: nilometer.FramesWritten == 7, "all frames are written")
    awaited(lambda: nilometer.Recordings == 1, "the recording ends")
    assert nilometer.FramesMissing == 0


def test_a_wrong_address_is_refused() -> None:
    command = [sys.executable, "-m", "nilometer_control.command", "10.0.2.1:9620", "--prefix", "NIL"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "'10.0.2.1:9620' is no address of a service: write http://HOST:PORT" in refused.stderr
