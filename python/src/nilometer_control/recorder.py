"""The synchronous client of a recorder."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator, Mapping
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


class Recorder:
    """A recorder that `nilometer serve` runs. Every method waits for the answer of the service.

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

    def status(self) -> Status:
        """Return the state of the service."""
        return self._answer(Request("/status")).status()

    def configure(self, **keys: Any) -> Status:
        """Set keys of `[record]`, such as `instrument`, `to` or `listen`. Keys left out are as in the file."""
        return self._order("/configure", keys)

    def arm(self, name: str | None = None, metadata: Mapping[str, Any] | None = None, **keys: Any) -> Status:
        """Prepare a recording with this name. `metadata` goes into its summary; `keys` are of `[record]`.

        A series over TCP begins by itself then; packets are recorded from `start` on.
        """
        named = {"name": name, "metadata": metadata}
        return self._order("/arm", {key: value for key, value in named.items() if value is not None} | keys)

    def start(self) -> Status:
        """Begin to record packets."""
        return self._order("/start", None)

    def stop(self) -> Status:
        """End the recording, or the wait for a series. Returns when all is stored."""
        return self._order("/stop", None)

    def latest_frame(self) -> LatestFrame | None:
        """Return the latest acknowledged frame as a picture. `None` if there is none."""
        return self._answer(Request("/latest-frame")).latest_frame()

    def dump(
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
        return self._answer(Request.order("/dump", keys)).dump()

    def dumps(self) -> list[Dump]:
        """Return the dumps that run or have ended, the oldest first."""
        return self._answer(Request("/dumps")).dumps()

    def end_dump(self, number: int) -> Dump:
        """Ask a running dump to end without a file. A complete one stays."""
        return self._answer(Request(f"/dumps/{number}", is_delete=True)).dump()

    def wait_for_dump(self, number: int, timeout: float) -> Dump:
        """Wait until a dump is complete.

        Raises `RecordingFailed` if it fails instead, and `RecorderTimeout` after `timeout` seconds.
        """
        until = time.monotonic() + timeout
        while not (dump := dump_with_number(self.dumps(), number)).is_over:
            if time.monotonic() >= until:
                raise RecorderTimeout(f"dump {number} is not complete within {timeout:g} s")
            time.sleep(POLL_SECONDS)
        return dump

    def openapi(self) -> dict[str, Any]:
        """Return the service's description of its own requests and answers (OpenAPI)."""
        description: dict[str, Any] = self._answer(Request("/openapi.json")).json()
        return description

    def wait_for(self, wanted: State | str | tuple[State | str, ...], timeout: float) -> Status:
        """Wait until the service is in this state, or in one of several.

        Raises `RecordingFailed` if it fails instead, and `RecorderTimeout` after `timeout` seconds.
        """
        goal = states(wanted)
        last = None
        for event in self.events(timeout):
            last = event.status or last
            if event.status and require(event.status, goal):
                return event.status
        raise RecorderTimeout(waited_in_vain(goal, timeout, last))

    def events(self, timeout: float | None = None) -> Iterator[Event]:
        """Yield the present state and every change, for `timeout` seconds or for ever.

        Asks five times a second if the service has no `/events`.
        """
        until = None if timeout is None else time.monotonic() + timeout
        link, answer = self._open(Request("/events"))
        try:
            if answer.status == NOT_FOUND:
                answer.read()
                yield from self._polled(until)
                return
            if answer.status >= 400:
                Answer(answer.status, answer.read()).checked()
            yield from self._streamed(link, answer, until)
        finally:
            answer.close()
            link.close()

    def _polled(self, until: float | None) -> Iterator[Event]:
        before = None
        while True:
            now = self.status()
            yield from events_between(before, now)
            before = now
            if until is not None and time.monotonic() >= until:
                return
            time.sleep(POLL_SECONDS)

    def _streamed(self, link: socket.socket, answer: http.client.HTTPResponse, until: float | None) -> Iterator[Event]:
        parser = EventParser()
        while True:
            left = SILENT_SECONDS if until is None else until - time.monotonic()
            link.settimeout(min(max(left, 0.01), SILENT_SECONDS))
            try:
                line = answer.readline()
            except TimeoutError as error:
                if until is not None and time.monotonic() >= until:
                    return
                raise RecorderUnreachable(f"{self.address} sent nothing for {SILENT_SECONDS:g} s") from error
            except OSError as error:
                raise RecorderUnreachable(f"{self.address} broke off: {error}") from error
            if not line:
                raise RecorderUnreachable(f"{self.address} ended the connection")
            if event := parser.take(line.decode().rstrip("\r\n")):
                yield event
            if until is not None and time.monotonic() >= until:
                return

    def _order(self, path: str, keys: Mapping[str, Any] | None) -> Status:
        request = Request.order(path, keys)
        until = time.monotonic() + BUSY_SECONDS
        answer = self._answer(request)
        while answer.code == BUSY and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
            answer = self._answer(request)
        if answer.code == STILL_RUNNING:
            return self.wait_for(tuple(EXPECTED[path]), self.timeout)
        return answer.status()

    def _answer(self, request: Request) -> Answer:
        link, answer = self._open(request)
        try:
            return Answer(answer.status, answer.read())
        except (OSError, http.client.HTTPException) as error:
            raise RecorderUnreachable(f"{self.address} broke off: {error}") from error
        finally:
            answer.close()
            link.close()

    def _open(self, request: Request) -> tuple[socket.socket, http.client.HTTPResponse]:
        place = self.address
        connection: http.client.HTTPConnection
        if place.tls:
            connection = http.client.HTTPSConnection(place.host, place.port, timeout=self.timeout, context=place.tls)
        else:
            connection = http.client.HTTPConnection(place.host, place.port, timeout=self.timeout)
        try:
            connection.connect()
            # The connection forgets its socket once the service has said `Connection: close`.
            link = connection.sock
            connection.request(request.method, request.path, request.body, place.headers())
            return link, connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise RecorderUnreachable(f"{place} does not answer: {error}") from error
