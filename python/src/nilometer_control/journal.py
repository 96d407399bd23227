"""Reader of the journals beside a recording: the frames that are there, when they were due, and where their bytes are.

    NAME.0.journal, NAME.1.journal, .. -> records of 64 bytes -> Journal, one a lane -> RecordingIndex

A record is little-endian: CRC-32 of all bytes behind it (4), kind (4), sequence number from 0 (8), six numbers (8 each)
or 48 bytes of text. The longest valid prefix counts, so a journal may be read while the recorder writes it.
`crates/recording/src/journal.rs` describes all kinds. On storage that only takes whole files, a journal has further
files `NAME.0.journal.00000001` and on, which continue the first one.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

VERSION = 8
"""Version of journals that this reader understands."""
RECORD_BYTES = 64
_RECORD = struct.Struct("<IIQ6Q")
_HEAD, _REMOVED, _END, _GAP, _STREAM, _CHUNK, _FRAME = 1, 4, 5, 7, 8, 9, 12
_SUFFIXES = ("raw", "cbf", "vdif", "m5b", "h5")
_FILES, _GROWING, _SHARED, _CHUNKS, _LATEST, _POSITIONS = range(6)
_HDF5, _CBF = 4, 1
_JOURNAL_NAME = re.compile(r"(.+)\.(\d+)\.journal")


class JournalError(ValueError):
    """The files are no journals of one recording, or have another version."""


@dataclass(frozen=True)
class Frame:
    """A frame, or a block of packets, that the recorder acknowledged."""

    number: int
    """Its number, from 0."""
    due: int
    """Time when it was due, in ns since the begin of the recording."""
    path: Path
    """The file that has its bytes."""
    offset: int
    """Position of its bytes in the file."""
    length: int
    """Bytes in the file."""
    size: int
    """Bytes of the decoded frame."""
    encoding: int
    """Encoding of the bytes; 0 if they are the frame itself."""
    checksum: int | None
    """CRC-32 of the decoded bytes. `None` if the recording has no checksums."""

    def stored(self) -> bytes:
        """Read its bytes as they are stored. Raises `JournalError` if the file is too short."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            stored = file.read(self.length)
        if len(stored) < self.length:
            raise JournalError(f"{self.path} ends before frame {self.number} does")
        return stored


@dataclass(frozen=True)
class Gap:
    """Packets that are missing in a block."""

    block: int
    """Number of the block."""
    at: int
    """The packet before which they are missing, or the first of them if something replaces them."""
    count: int
    """Number of packets."""
    filled: bool
    """True if something marked as invalid replaces them."""


@dataclass
class Journal:
    """The journal of one lane."""

    path: Path
    """The journal's own file."""
    recording: int
    """Id of the recording, the same in all its lanes."""
    lane: int
    """Index of the lane."""
    lanes: int
    """Number of lanes of the recording."""
    frame_size: int
    """Bytes of a frame."""
    storing: int
    """Kind of files, by its number in journals."""
    format: int
    """Format of a frame in its file, by its number in journals."""
    frames_per_file: int
    """Frames of a full file."""
    frames: dict[int, Frame] = field(default_factory=dict)
    """Frames that are there, by number."""
    gaps: list[Gap] = field(default_factory=list)
    """Missing packets, in the order of the journal."""
    stream: str = ""
    """Description of the packets in the blocks. Empty if frames are recorded."""
    has_ended: bool = False
    """True if the lane ended in order."""
    due: int | None = None
    """Frames due of the whole recording. `None` if it did not end in order."""

    def file_name(self, name: str, file: int, chunk: int | None) -> str:
        """Return the name of a file of frames of the recording called `name`. `chunk` is the number in the name."""
        suffix = _SUFFIXES[self.format]
        if chunk is not None and self.storing == _POSITIONS:
            is_picture = self.format == _CBF and self.frames_per_file == 1
            return f"{name}_{chunk + 1:05}.cbf" if is_picture else f"{name}.{chunk:08}.{suffix}"
        if chunk is not None:
            return f"{name}.{chunk:08}"
        if self.storing in (_FILES, _CHUNKS, _POSITIONS):
            return f"{name}.{self.lane}.{file:08}.{suffix}"
        if self.storing == _SHARED or (self.format == _HDF5 and self.lanes == 1):
            return f"{name}.{suffix}"
        return f"{name}.{self.lane}.{suffix}"


def _records(data: bytes) -> Iterator[tuple[int, tuple[int, ...], bytes]]:
    for sequence in range(len(data) // RECORD_BYTES):
        record = data[sequence * RECORD_BYTES : (sequence + 1) * RECORD_BYTES]
        checksum, kind, number, *numbers = _RECORD.unpack(record)
        if checksum != zlib.crc32(record[4:]) or number != sequence:
            return
        yield kind, tuple(numbers), record[16:]


def _head(path: Path, numbers: tuple[int, ...]) -> Journal:
    recording, lanes, frame_size, _, frames_per_file, form = numbers
    if form & 0xFFFFFFFF != VERSION:
        raise JournalError(f"{path} has journal version {form & 0xFFFFFFFF}; this reader reads version {VERSION}")
    lane = lanes & 0xFFFFFFFF
    return Journal(path, recording, lane, lanes >> 32, frame_size, form >> 32 & 0xFFFF, form >> 48, frames_per_file)


def _joined(path: Path) -> bytes:
    pieces = [path.read_bytes()]
    while (piece := path.with_name(f"{path.name}.{len(pieces):08}")).is_file():
        pieces.append(piece.read_bytes())
    return b"".join(pieces)


def read(path: Path | str) -> Journal:
    """Read the journal of one lane, with all files that continue it."""
    path = Path(path)
    named = _JOURNAL_NAME.fullmatch(path.name)
    records = list(_records(_joined(path)))
    if not named or not records or records[0][0] != _HEAD:
        raise JournalError(f"{path} is no journal of a recording")
    journal = _head(path, records[0][1])
    # A file has the last name in the journal.
    chunks = {numbers[0]: numbers[1] - 1 for kind, numbers, _ in records if kind == _CHUNK and numbers[1]}
    removed = {numbers[0] for kind, numbers, _ in records if kind == _REMOVED}
    waiting: dict[int, list[Gap]] = {}
    stream = b""
    for kind, numbers, text in records:
        if kind == _FRAME:
            number, place, offset, due, checksum, sizes = numbers
            file = place & (1 << 48) - 1
            # A gap precedes the record of its block.
            gaps = waiting.pop(number, [])
            if file in removed:
                continue
            name = journal.file_name(named[1], file, chunks.get(file))
            known = checksum & 0xFFFFFFFF if checksum >> 32 == 1 else None
            journal.frames[number] = Frame(
                number, due, path.with_name(name), offset, sizes & 0xFFFFFFFF, sizes >> 32, place >> 48, known
            )
            journal.gaps += gaps
        elif kind == _GAP:
            waiting.setdefault(numbers[0], []).append(Gap(numbers[0], numbers[1], numbers[2], numbers[3] == 1))
        elif kind == _STREAM:
            stream += text
        elif kind == _END:
            journal.has_ended = True
            journal.due = numbers[1] if numbers[0] == 1 else journal.due
    journal.stream = stream.rstrip(b"\0").decode(errors="replace")
    return journal


@dataclass(frozen=True)
class RecordingIndex:
    """All frames of a recording, united from the journals of its lanes."""

    lanes: tuple[Journal, ...]
    """Its journals that are here, in the order of lanes."""
    frames: dict[int, Frame]
    """Frames that are there, by number, in order."""

    @property
    def due(self) -> int:
        """Frames due: as the recorder stated at its end, else up to the last one that is there."""
        stated = [lane.due for lane in self.lanes if lane.due is not None]
        return max(stated, default=max(self.frames, default=-1) + 1)

    @property
    def missing(self) -> list[int]:
        """Numbers of frames that were due and are not there."""
        return [number for number in range(self.due) if number not in self.frames]

    @property
    def missing_packets(self) -> int:
        """Packets missing in the blocks that are there."""
        return sum(gap.count for lane in self.lanes for gap in lane.gaps)

    @property
    def is_whole(self) -> bool:
        """True if all lanes are here and ended in order."""
        return len(self.lanes) == self.lanes[0].lanes and all(lane.has_ended for lane in self.lanes)


def open(*directories: Path | str) -> RecordingIndex:
    """Read the recording in these directories. Raises `JournalError` if there is none, or more than one."""
    lanes = [read(path) for directory in directories for path in Path(directory).glob("*.journal")]
    if len({lane.recording for lane in lanes}) != 1:
        places = ", ".join(str(directory) for directory in directories)
        count = "no recording" if not lanes else "more than one recording"
        raise JournalError(f"{count} in {places}: name the directories in which the files *.journal of one are")
    lanes.sort(key=lambda lane: lane.lane)
    united: dict[int, Frame] = {}
    for lane in lanes:
        united = lane.frames | united
    return RecordingIndex(tuple(lanes), dict(sorted(united.items())))
