"""The client of a recorder for asyncio. It needs only the standard library."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from .dump import Dump, Limit, dump_keys, dump_with_number
from .errors import RecorderTimeout, RecorderUnreachable
from .exchange import (
    BUSY,
    BUSY_SECONDS,
    EXPECTED,
    NOT_FOUND,
    POLL_SECONDS,
    SILENT_SECONDS,
    STILL_RUNNING,
    Address,
    Answer,
    EventParser,
    Request,
    events_between,
    require,
    states,
    waited_in_vain,
)
from .status import Event, LatestFrame, State, Status

LINE_BYTES_MAX = 16 << 20
"""Longest line that the client reads: an event has the whole state in one line."""


class _Link:
    """One connection, for one request."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self._writer = writer
        self.code = 0
        self._length: int | None = None
        self._is_chunked = False

    @classmethod
    async def open(cls, place: Address, request: Request) -> _Link:
        """Send the request, and read the head of the answer."""
        reader, writer = await asyncio.open_connection(place.host, place.port, ssl=place.tls, limit=LINE_BYTES_MAX)
        link = cls(reader, writer)
        try:
            writer.write(_head_of(place, request) + (request.body or b""))
            await writer.drain()
            await link._read_head()
        except BaseException:
            await link.close()
            raise
        return link

    async def _read_head(self) -> None:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        self.code = int(lines[0].split()[1])
        named = (line.partition(":") for line in lines[1:] if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in named}
        self._length = int(headers["content-length"]) if "content-length" in headers else None
        self._is_chunked = "chunked" in headers.get("transfer-encoding", "").lower()

    async def body(self) -> bytes:
        """Read the answer to its end."""
        if self._is_chunked:
            return b"".join([piece async for piece in self._pieces()])
        return await (self.reader.read() if self._length is None else self.reader.readexactly(self._length))

    async def lines(self) -> AsyncIterator[str]:
        """Yield the lines of an answer without an end."""
        rest = b""
        async for piece in self._pieces() if self._is_chunked else self._reads():
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield line.decode().rstrip("\r")

    async def _reads(self) -> AsyncIterator[bytes]:
        while piece := await self._read():
            yield piece

    async def _read(self) -> bytes:
        try:
            async with asyncio.timeout(SILENT_SECONDS):
                return await self.reader.read(1 << 16)
        except TimeoutError as error:
            raise ConnectionError(f"it sent nothing for {SILENT_SECONDS:g} s") from error

    async def _pieces(self) -> AsyncIterator[bytes]:
        while size := int((await self.reader.readline()).split(b";")[0], 16):
            yield (await self.reader.readexactly(size + 2))[:-2]

    async def close(self) -> None:
        """Close the connection. The service may have closed it before."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


def _head_of(place: Address, request: Request) -> bytes:
    host = str(place).partition("://")[2]
    headers = {"Host": host, "Connection": "close", "Content-Length": str(len(request.body or b""))} | place.headers()
    lines = [f"{request.method} {request.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


class AsyncRecorder:
    """A recorder that `nilometer serve` runs. Its methods are those of `Recorder`, to await.

    An error of the service is a `RecorderError` with the service's sentence.
    """

    def __init__(
        self, url: str, token: str | None = None, ca: Path | str | None = None, *, timeout: float = 15.0
    ) -> None:
        """Name the service. `ca` is a PEM file with the authority of its certificate; `timeout` is for one answer.

        An order may take the service ten seconds before it answers, so let `timeout` be longer. In seconds.
        """
        self.address = Address.of(url, token, ca)
        self.timeout = timeout

    async def status(self) -> Status:
        """Return the state of the service."""
        return (await self._answer(Request("/status"))).status()

    async def configure(self, **keys: Any) -> Status:
        """Set keys of `[record]`, such as `instrument`, `to` or `listen`. Keys left out are as in the file."""
        return await self._order("/configure", keys)

    async def arm(self, name: str | None = None, metadata: Mapping[str, Any] | None = None, **keys: Any) -> Status:
        """Prepare a recording with this name. `metadata` goes into its summary; `keys` are of `[record]`.

        A series over TCP begins by itself then; packets are recorded from `start` on.
        """
        named = {"name": name, "metadata": metadata}
        return await self._order("/arm", {key: value for key, value in named.items() if value is not None} | keys)

    async def start(self) -> Status:
        """Begin to record packets."""
        return await self._order("/start", None)

    async def stop(self) -> Status:
        """End the recording, or the wait for a series. Returns when all is stored."""
        return await self._order("/stop", None)

    async def latest_frame(self) -> LatestFrame | None:
        """Return the latest acknowledged frame as a picture. `None` if there is none."""
        return (await self._answer(Request("/latest-frame"))).latest_frame()

    async def dump(
        self,
        to: Path | str,
        begin: Limit | None = None,
        end: Limit | None = None,
        *,
        name: str | None = None,
        rate: str | None = None,
        data_stream: str | None = None,
    ) -> Dump:
        """Save a part of the running recording, or of the last one, in a directory of the recorder's machine.

        `begin` and `end` are as for `nilometer export`; `"-30s"` is half a minute before the newest frame. Returns
        at once: `wait_for_dump` waits for the file.

        A recording with data streams has a dump for each. This returns the first, and `dumps` lists all.
        `data_stream` is the label of the one that you want.
        """
        keys = dump_keys(to, begin, end, name, rate, data_stream)
        return (await self._answer(Request.order("/dump", keys))).dump()

    async def dumps(self) -> list[Dump]:
        """Return the dumps that run or have ended, the oldest first."""
        return (await self._answer(Request("/dumps"))).dumps()

    async def end_dump(self, number: int) -> Dump:
        """Ask a running dump to end without a file. A complete one stays."""
        return (await self._answer(Request(f"/dumps/{number}", is_delete=True))).dump()

    async def wait_for_dump(self, number: int, timeout: float) -> Dump:
        """Wait until a dump is complete.

        Raises `RecordingFailed` if it fails instead, and `RecorderTimeout` after `timeout` seconds.
        """
        until = time.monotonic() + timeout
        while not (dump := dump_with_number(await self.dumps(), number)).is_over:
            if time.monotonic() >= until:
                raise RecorderTimeout(f"dump {number} is not complete within {timeout:g} s")
            await asyncio.sleep(POLL_SECONDS)
        return dump

    async def openapi(self) -> dict[str, Any]:
        """Return the service's description of its own requests and answers (OpenAPI)."""
        description: dict[str, Any] = (await self._answer(Request("/openapi.json"))).json()
        return description

    async def wait_for(self, wanted: State | str | tuple[State | str, ...], timeout: float) -> Status:
        """Wait until the service is in this state, or in one of several.

        Raises `RecordingFailed` if it fails instead, and `RecorderTimeout` after `timeout` seconds.
        """
        goal = states(wanted)
        last: Status | None = None
        try:
            async with asyncio.timeout(timeout), contextlib.aclosing(self.events()) as events:
                async for event in events:
                    last = event.status or last
                    if event.status and require(event.status, goal):
                        return event.status
        except TimeoutError as error:
            raise RecorderTimeout(waited_in_vain(goal, timeout, last)) from error
        raise RecorderUnreachable(f"{self.address} ended the connection")

    async def events(self) -> AsyncGenerator[Event, None]:
        """Yield the present state and every change, for ever.

        Asks five times a second if the service has no `/events`.
        """
        link = await self._open(Request("/events"))
        if link.code == NOT_FOUND:
            await link.close()
            async for event in self._polled():
                yield event
        try:
            if link.code >= 400:
                Answer(link.code, await link.body()).checked()
            parser = EventParser()
            async for line in link.lines():
                if event_or_none := parser.take(line):
                    yield event_or_none
        except (OSError, EOFError, ValueError) as error:
            raise RecorderUnreachable(f"{self.address} broke off: {error}") from error
        finally:
            await link.close()
        raise RecorderUnreachable(f"{self.address} ended the connection")

    async def _polled(self) -> AsyncIterator[Event]:
        before = None
        while True:
            now = await self.status()
            for event in events_between(before, now):
                yield event
            before = now
            await asyncio.sleep(POLL_SECONDS)

    async def _order(self, path: str, keys: Mapping[str, Any] | None) -> Status:
        request = Request.order(path, keys)
        until = time.monotonic() + BUSY_SECONDS
        answer = await self._answer(request)
        while answer.code == BUSY and time.monotonic() < until:
            await asyncio.sleep(POLL_SECONDS)
            answer = await self._answer(request)
        if answer.code == STILL_RUNNING:
            return await self.wait_for(tuple(EXPECTED[path]), self.timeout)
        return answer.status()

    async def _answer(self, request: Request) -> Answer:
        link = await self._open(request)
        try:
            async with asyncio.timeout(self.timeout):
                return Answer(link.code, await link.body())
        except (OSError, EOFError, ValueError) as error:
            raise RecorderUnreachable(f"{self.address} broke off: {error}") from error
        finally:
            await link.close()

    async def _open(self, request: Request) -> _Link:
        try:
            async with asyncio.timeout(self.timeout):
                return await _Link.open(self.address, request)
        except (OSError, EOFError, ValueError) as error:
            reason = error or f"no answer within {self.timeout:g} s"
            raise RecorderUnreachable(f"{self.address} does not answer: {reason}") from error
