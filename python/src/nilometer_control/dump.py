"""Dumps: parts of a recording that the recorder saves while it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from .errors import RecordingFailed

Limit = str | int | datetime
"""Begin or end of a part: a time with its zone, the number of a frame, or a text as for `nilometer export --begin`."""


class DumpState(StrEnum):
    """State of a dump."""

    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class Dump:
    """A dump, as the service reported it."""

    id: int
    """Its number, from 1."""
    state: DumpState
    recording: str
    """Name of the recording."""
    path: Path
    """The file. It has this name, and its suffix, once it is complete."""
    frames: int
    """Frames in the file so far, with those that stand in for absent ones."""
    bytes: int
    overtaken_frames: int
    """Frames that the recorder overwrote before the dump had read them. They are marked as invalid in the file."""
    waits_for: str | None
    """`frames` if the next ones are not on storage yet, `buffer` if the recording needs the storage for itself."""
    error: str | None
    raw: dict[str, Any] = field(repr=False)
    """The whole report."""

    @classmethod
    def of(cls, report: Mapping[str, Any]) -> Dump:
        """Read a report of the service."""
        keys = ("id", "recording", "frames", "bytes", "overtaken_frames", "waits_for", "error")
        known = {key: report[key] for key in keys}
        return cls(state=DumpState(report["state"]), path=Path(report["path"]), raw=dict(report), **known)

    @property
    def is_over(self) -> bool:
        """True if the dump is complete. Raises `RecordingFailed` if it failed, or if somebody ended it."""
        if self.state in (DumpState.FAILED, DumpState.CANCELLED):
            raise RecordingFailed(self.error or f"dump {self.id} was cancelled")
        return self.state is DumpState.COMPLETE


def dump_keys(
    to: Path | str,
    begin: Limit | None,
    end: Limit | None,
    name: str | None,
    rate: str | None,
    data_stream: str | None,
) -> dict[str, str]:
    """Return the keys of a request."""
    keys = {
        "to": str(to),
        "begin": _text(begin),
        "end": _text(end),
        "name": name,
        "rate": rate,
        "data_stream": data_stream,
    }
    return {key: value for key, value in keys.items() if value is not None}


def dump_with_number(dumps: list[Dump], number: int) -> Dump:
    """Return the dump with this number."""
    for dump in dumps:
        if dump.id == number:
            return dump
    raise RecordingFailed(f"the service has forgotten dump {number}: it lists the last 64")


def _text(limit: Limit | None) -> str | None:
    if isinstance(limit, datetime):
        if limit.tzinfo is None:
            raise ValueError(f"{limit} has no zone: write datetime(..., tzinfo=UTC)")
        return limit.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
    return None if limit is None else str(limit)
