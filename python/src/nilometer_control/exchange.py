"""Requests to the service and its answers, without any I/O: the clients differ only in how they send and wait.

Recorder, AsyncRecorder -> Request -> HTTP -> Answer -> Status, or an exception with the service's sentence
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .dump import Dump
from .errors import BY_STATUS, RecorderError, RecordingFailed
from .status import EndedRecording, Event, LatestFrame, State, Status

POLL_SECONDS = 0.2
"""Time between two looks at a service that has no events."""
BUSY_SECONDS = 10.0
"""Time for which an order is repeated while the service is busy with another one."""
SILENT_SECONDS = 30.0
"""Time after which a service that sends events counts as lost: it sends something every five seconds."""
NOT_FOUND = 404
BUSY = 503
STILL_RUNNING = 202

EXPECTED: Mapping[str, frozenset[State]] = {
    "/configure": frozenset({State.IDLE, State.CONFIGURED}),
    "/arm": frozenset({State.WAITING, State.ARMED, State.RECORDING, State.FAILED}),
    "/start": frozenset({State.RECORDING, State.CONFIGURED, State.FAILED}),
    "/stop": frozenset({State.CONFIGURED, State.IDLE, State.FAILED}),
}
"""States that an order leads to, if the service answers before the order is done."""


@dataclass(frozen=True)
class Address:
    """Place of a service, and the rights of this client."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    token: str | None

    @classmethod
    def of(cls, url: str, token: str | None, ca: Path | str | None) -> Address:
        """Read a URL such as `http://127.0.0.1:9620`. A token over plain HTTP is only sent to this machine."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
            raise ValueError(f"{url!r} is no address of a service: write http://HOST:PORT or https://HOST:PORT")
        is_local = parts.hostname in ("127.0.0.1", "::1", "localhost")
        if token and parts.scheme == "http" and not is_local:
            raise ValueError(f"{url!r} would show the token to the network: use https://")
        if ca and parts.scheme == "http":
            raise ValueError(f"{url!r} has no certificate that {ca} could prove: use https://")
        tls = ssl.create_default_context(cafile=ca) if parts.scheme == "https" else None
        return cls(parts.hostname, parts.port or (443 if tls else 80), tls, token)

    def headers(self) -> dict[str, str]:
        """Return the headers that every request has."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


@dataclass(frozen=True)
class Request:
    """A request: a query, or an order with keys of `[record]`."""

    path: str
    body: bytes | None = None
    is_delete: bool = False

    @property
    def method(self) -> str:
        """The method of HTTP."""
        return "DELETE" if self.is_delete else "GET" if self.body is None else "POST"

    @classmethod
    def order(cls, path: str, keys: Mapping[str, Any] | None = None) -> Request:
        """Make an order. `/start` and `/stop` take no keys."""
        return cls(path, json.dumps(dict(keys)).encode() if keys is not None else b"")


@dataclass(frozen=True)
class Answer:
    """An answer, read to its end."""

    code: int
    body: bytes

    def checked(self) -> Answer:
        """Return the answer itself. Raises the exception that belongs to an error, with the service's sentence."""
        if self.code < 400:
            return self
        try:
            sentence = json.loads(self.body)["error"]
        except (ValueError, KeyError, TypeError):
            sentence = self.body.decode(errors="replace").strip() or f"HTTP status {self.code}"
        raise BY_STATUS.get(self.code, RecorderError)(sentence)

    def json(self) -> Any:
        """Return the object of JSON, of an answer that is no error."""
        return json.loads(self.checked().body)

    def status(self) -> Status:
        """Return the state of the service, of an answer that is no error."""
        return Status.of(self.json())

    def dump(self) -> Dump:
        """Return the dump, or the first of several, of an answer that is no error."""
        answer = self.json()
        return Dump.of(answer["dumps"][0] if "dumps" in answer else answer)

    def dumps(self) -> list[Dump]:
        """Return all dumps, of an answer that is no error."""
        return [Dump.of(report) for report in self.json()["dumps"]]

    def latest_frame(self) -> LatestFrame | None:
        """Return the picture. `None` if there is none yet; `no_picture` has the reason."""
        line, _, codes = self.checked().body.partition(b"\n")
        head = json.loads(line)
        if "none" in head:
            return None
        numbers = {key: head[key] for key in ("frame", "recording", "width", "height", "factor", "low", "high")}
        return LatestFrame(codes=codes[: head["width"] * head["height"]], raw=head, **numbers)


class EventParser:
    """Lines of Server-Sent Events -> events. Comments and events of other kinds yield nothing."""

    def __init__(self) -> None:
        self._kind = "message"
        self._data: list[str] = []

    def take(self, line: str) -> Event | None:
        """Take the next line, without its end. Returns the event that it completes."""
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "event":
                self._kind = value
            elif name == "data":
                self._data.append(value)
            return None
        kind, data = self._kind, self._data
        self._kind, self._data = "message", []
        return event_of(kind, json.loads("\n".join(data))) if data else None


def event_of(kind: str, data: Mapping[str, Any]) -> Event | None:
    """Return the event of this kind. `None` if this version does not know it."""
    if kind == "status":
        return Event(kind, Status.of(data), None)
    if kind == "recording_ended":
        return Event(kind, None, EndedRecording.of(dict(data)))
    return None


def events_between(before: Status | None, now: Status) -> Iterator[Event]:
    """Yield the events that a service without `/events` would have sent between two looks."""
    if before is not None and now.recordings > before.recordings and now.last:
        yield Event("recording_ended", None, now.last)
    if before is None or before.raw != now.raw:
        yield Event("status", now, None)


def require(status: Status, wanted: frozenset[State]) -> bool:
    """Return true if the state is a wanted one. Raises the fault if the service failed and that is not wanted."""
    if status.state in wanted:
        return True
    if status.state is State.FAILED:
        raise RecordingFailed(status.fault or "the recording failed, and the service gave no reason")
    return False


def states(wanted: State | str | tuple[State | str, ...]) -> frozenset[State]:
    """Return a set of one or several states."""
    several = wanted if isinstance(wanted, tuple) else (wanted,)
    return frozenset(State(state) for state in several)


def waited_in_vain(wanted: frozenset[State], seconds: float, last: Status | None) -> str:
    """Return the sentence of a time-out."""
    names = " or ".join(sorted(wanted))
    present = f"it is {last.state}" if last else "it did not answer"
    return f"the recorder was not {names} within {seconds:g} s: {present}"
