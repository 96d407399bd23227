"""The command `nilometer-fastcs`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from . import __version__
from .async_recorder import AsyncRecorder


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve the variables of one recorder until SIGINT or SIGTERM. Bad input ends it with exit code 2."""
    parser = argparse.ArgumentParser("nilometer-fastcs", description="Show a Nilometer recorder to EPICS or Tango.")
    parser.add_argument("url", help="the recorder's service, such as http://127.0.0.1:9620")
    parser.add_argument("--prefix", required=True, help="the first part of each variable's name")
    ways = ("pva", "ca", "tango")
    parser.add_argument("--transport", choices=ways, action="append", help="repeat it for several [default: pva]")
    parser.add_argument("--tango-port", type=int, help="a device of Tango without its database, at this local port")
    parser.add_argument("--token-file", type=Path, help="file with the token [default: the variable NILOMETER_TOKEN]")
    parser.add_argument("--ca", type=Path, help="PEM file with the authority of the service's certificate")
    parser.add_argument("--version", action="version", version=__version__)
    given = parser.parse_args(arguments)
    transports = list(dict.fromkeys(given.transport or ([] if given.tango_port else ["pva"])))
    try:
        token = given.token_file.read_text().strip() if given.token_file else os.environ.get("NILOMETER_TOKEN")
        recorder = AsyncRecorder(given.url, token, given.ca)
        from .fastcs import serve

        serve(recorder, given.prefix, transports, given.tango_port)
    except ImportError as error:
        parser.error(f"{error}: install nilometer-control[fastcs], and for Tango nilometer-control[tango]")
    except (ValueError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
