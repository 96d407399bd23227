"""Hands the arrays of a process variable of EPICS to a recorder, as series. Needs the extra `ntndarray`."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from p4p.client.thread import Cancelled, Context, Disconnected, RemoteError

from .ntndarray import Image, UnusableArray, image_of

QUEUE = 8
"""Arrays between the connection and the sender. With as many, the variable's own queue fills."""
REQUEST = f"field()record[queueSize={4 * QUEUE},pipeline=true]"
"""Asks the server for a queue, and for no more updates than this end has taken (pvAccess, "pipeline")."""
LOOK_SECONDS = 0.1
"""Time between two looks at whether to stop."""


class Sender(Protocol):
    """A receiver of images."""

    def begin(self, first: Image) -> None:
        """Begin a series."""

    def send(self, image: Image, number: int) -> None:
        """Send an image of the series."""

    def end(self) -> None:
        """End the series."""


@dataclass
class Tally:
    """Counts of everything that came."""

    sent: int = 0
    """Arrays handed to the recorder."""
    series: int = 0
    """Series that began."""
    missed: int = 0
    """Arrays between others, by their `uniqueId`, that did not come."""
    unusable: Counter[str] = field(default_factory=Counter)
    """Arrays that the recorder cannot take, by the reason."""

    @property
    def is_whole(self) -> bool:
        """True if every array was handed on."""
        return not self.missed and not self.unusable

    def __str__(self) -> str:
        """Return the counts in words."""
        refused = [f"{count} unusable: {why}" for why, count in self.unusable.items()]
        counts = f"sent {self.sent} arrays in {self.series} series, missed {self.missed or 'none'}"
        return "; ".join([counts, *refused])


class SeriesFollower:
    """Decides which arrays form a series.

    An array with a lower `uniqueId` begins another series, because areaDetector counts anew when it starts to acquire.
    An array of another type or size does too.
    """

    def __init__(self, sender: Sender, note: Callable[[str], None]) -> None:
        """Hand series to this sender, and tell of gaps and refusals."""
        self.tally = Tally()
        self._sender = sender
        self._note = note
        self._first: Image | None = None
        self._last = 0

    def take(self, value: Any, is_initial: bool) -> None:
        """Take an array. The initial one of a connection is older than the connection, unless it goes on the series."""
        try:
            image = image_of(value)
        except UnusableArray as error:
            if not is_initial:
                self._refuse(value, str(error))
            return
        goes_on = self._first is not None and image.form == self._first.form and image.number > self._last
        if is_initial and not goes_on:
            return
        if not goes_on:
            self.end()
            self._first = image
            self._last = image.number - 1
            self.tally.series += 1
            self._sender.begin(image)
        assert self._first is not None
        self._count_gap(image.number - self._last - 1)
        self._last = image.number
        self._sender.send(image, image.number - self._first.number)
        self.tally.sent += 1

    def end(self) -> None:
        """End the series, if there is one."""
        if self._first is not None:
            self._first = None
            self._sender.end()

    def _count_gap(self, missed: int) -> None:
        if missed:
            self.tally.missed += missed
            self._note(f"missed {missed} arrays after number {self._last}")

    def _refuse(self, value: Any, why: str) -> None:
        if why not in self.tally.unusable:
            self._note(f"array {int(value.uniqueId)} is unusable: {why}")
        self.tally.unusable[why] += 1
        # The number counts, so that the array is not missed as well.
        self._last = max(self._last, int(value.uniqueId)) if self._first else self._last


class ArrayMonitor:
    """Updates of a process variable, in a queue of limited length."""

    def __init__(self, name: str, stop: threading.Event) -> None:
        """Connect to the variable."""
        self._updates: queue.Queue[Any] = queue.Queue(QUEUE)
        self._stop = stop
        self._context = Context("pva", nt=False)
        self._subscription = self._context.monitor(name, self._put, REQUEST, notify_disconnect=True)

    def next(self) -> Any:
        """Return the next update or exception, or `None` if none comes soon."""
        try:
            return self._updates.get(timeout=LOOK_SECONDS)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Disconnect."""
        self._subscription.close()
        self._context.close()

    def _put(self, update: Any) -> None:
        """Wait for room: the server then keeps its updates."""
        while not self._stop.is_set():
            try:
                return self._updates.put(update, timeout=LOOK_SECONDS)
            except queue.Full:
                continue


@dataclass(frozen=True)
class Limits:
    """The limits of a run."""

    arrays: int | None
    """Arrays to hand on. `None` means all until a signal."""
    silence: float
    """Seconds without an array after which the series ends."""


def hand_on(
    name: str, follower: SeriesFollower, limits: Limits, stop: threading.Event, note: Callable[[str], None]
) -> None:
    """Hand arrays of the variable to the follower until `stop` or a limit, and end the series."""
    monitor = ArrayMonitor(name, stop)
    is_initial, quiet = True, 0.0
    try:
        while not stop.is_set() and (limits.arrays is None or follower.tally.sent < limits.arrays):
            update = monitor.next()
            quiet = 0.0 if update is not None else quiet + LOOK_SECONDS
            if quiet >= limits.silence:
                follower.end()
            if isinstance(update, Disconnected):
                note(f"{name} is not connected")
                is_initial = True
            elif isinstance(update, RemoteError | Cancelled):
                raise ConnectionError(f"{name}: {update}")
            elif update is not None:
                if is_initial:
                    note(f"{name} is connected")
                follower.take(update, is_initial)
                is_initial = False
        follower.end()
    finally:
        monitor.close()
