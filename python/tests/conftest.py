"""A real recorder and a real sender for each test, on loopback. Both are killed at the end of the test."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loopback import Service

from nilometer_control import Recorder


@pytest.fixture
def make_service(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Start services with options of the command line, and keys of `[record]`."""
    made: list[Service] = []

    def make(*options: str, **keys: object) -> Service:
        directory = tmp_path / f"service-{len(made)}"
        directory.mkdir()
        made.append(Service(directory, *options, **keys))
        return made[-1]

    yield make
    for service in made:
        service.kill()
    # Recordings may be large, and pytest keeps the directories of three runs.
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.fixture
def service(make_service: Callable[..., Service]) -> Service:
    """A recorder of series over TCP."""
    return make_service()


@pytest.fixture
def recorder(service: Service) -> Recorder:
    """A client of it."""
    return Recorder(service.url)


@pytest.fixture
def send() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start senders of stamped images: `send(stream, "--images", 5)`."""
    made: list[subprocess.Popen[bytes]] = []

    def start(endpoint: str, *options: object) -> subprocess.Popen[bytes]:
        script = Path(__file__).with_name("sender.py")
        made.append(subprocess.Popen([sys.executable, script, endpoint, *map(str, options)]))
        return made[-1]

    yield start
    for sender in made:
        sender.kill()
        sender.wait()
