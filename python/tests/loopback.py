"""A real recorder on loopback."""

import os
import random
import re
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE = 300.0
"""Seconds after which a test gives up: far more than anything takes on a busy machine."""


def program() -> Path:
    """The program under test: NILOMETER_PROGRAM, or the one in `target/debug`."""
    named = os.environ.get("NILOMETER_PROGRAM", ROOT / "target/debug/nilometer")
    return Path(named)


PORTS = range(10240, 32768)
"""Ports below those that the kernel gives to connections: nothing but a listener takes one of them."""


def free_port() -> int:
    """Return a port that is free now, and that no connection of another test gets a moment later."""
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


def awaited(condition: Callable[[], object], what: str) -> None:
    """Wait until the condition holds."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, f"in vain: {what}"
        time.sleep(0.05)


class Service:
    """`nilometer serve` in a directory of its own."""

    def __init__(self, directory: Path, *options: str, **keys: object) -> None:
        self.directory = directory
        self.data = directory / "data"
        self.data.mkdir()
        self.port = free_port()
        self.stream = f"tcp://127.0.0.1:{self.port}"
        defaults = {"listen": self.stream, "buffer": "32 MiB", "silence": "60 s", "reserve": "1 MiB"}
        configuration = directory / "recorder.toml"
        lines = [f'{key} = "{value}"' for key, value in (defaults | keys).items() if value is not None]
        configuration.write_text("\n".join(["[record]", f'to = ["{self.data}"]', *lines, ""]))
        log = directory / "log"
        command = [program(), "serve", "--config", configuration, "--http", "127.0.0.1:0", "--mark5", "off", *options]
        with log.open("w") as said:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=said, stdout=said)
        try:
            awaited(lambda: self.process.poll() is not None or "ready:" in log.read_text(), "the service starts")
            found = re.search(r"https? at ([^\s,]+)", log.read_text())
            assert found, log.read_text()
        except BaseException:
            self.kill()
            raise
        self.url = f"{'https' if '--tls-key' in options else 'http'}://{found[1]}"

    def kill(self) -> None:
        """Kill the recorder."""
        self.process.kill()
        self.process.wait()
