"""The command `nilometer-ntndarray`."""

from __future__ import annotations

import argparse
import re
import signal
import sys
import threading
from collections.abc import Sequence

from . import __version__

LINGER_MS = 10_000
"""The longest wait for the recorder to take the last messages."""


ADDRESS = re.compile(r"tcp://([^\s/:]+|\[[0-9a-fA-F:.]+\]):\d{1,5}")


def _address(text: str) -> str:
    if not ADDRESS.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r}: write tcp://HOST:PORT, or tcp://*:PORT to wait for a recorder")
    return text


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r}: write a number of seconds, more than 0")
    return number


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r}: write a number of arrays, at least 1")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> None:
    """Hand arrays on until SIGINT or SIGTERM. The exit code is 1 if arrays were missed, and 2 for bad input."""
    about = "Hand the arrays of a process variable (NTNDArray of EPICS pvAccess) to a Nilometer recorder."
    parser = argparse.ArgumentParser("nilometer-ntndarray", description=about)
    parser.add_argument("variable", metavar="PVNAME", help="such as 13SIM1:Pva1:Image")
    to = "where the recorder listens, or tcp://*:PORT to wait for one that connects"
    parser.add_argument("--to", type=_address, required=True, metavar="ADDRESS", help=to)
    arrays = "end after N arrays [default: SIGINT or SIGTERM ends it]"
    parser.add_argument("--arrays", type=_count, metavar="N", help=arrays)
    silence = "end a series after this time without an array [default: 10]"
    parser.add_argument("--silence", type=_seconds, default=10.0, metavar="SECONDS", help=silence)
    parser.add_argument("--channel", default="default", help="name of the images in the stream [default: default]")
    parser.add_argument("--version", action="version", version=__version__)
    given = parser.parse_args(arguments)
    try:
        from .image_sender import GivenUp, ImageSender
        from .pva_source import Limits, SeriesFollower, hand_on
    except ImportError as error:
        parser.error(f"{error}: install nilometer-control[ntndarray]")

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())

    def note(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    try:
        sender = ImageSender(given.to, given.channel, stop.is_set)
    except OSError as error:
        parser.error(f"--to {given.to}: {error}")
    follower = SeriesFollower(sender, note)
    is_well = True
    try:
        hand_on(given.variable, follower, Limits(given.arrays, given.silence), stop, note)
        sender.close(LINGER_MS)
    except GivenUp:
        note(f"the recorder at {given.to} takes nothing: the last series has no end")
        sender.close(0)
        is_well = False
    except ConnectionError as error:
        note(str(error))
        sender.close(LINGER_MS)
        is_well = False
    print(follower.tally)
    sys.exit(0 if is_well and follower.tally.is_whole else 1)


if __name__ == "__main__":
    main()
