"""Programs that others wrote read a recording: the table of contrib/readers."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

from loopback import PATIENCE, ROOT, Service

from nilometer_control import Recorder

INSTALLED = ("h5py", "h5py, SWMR", "silx", "fabio", "nxmx", "tiled")


def test_programs_of_others_read_a_series(recorder: Recorder, service: Service, send: Callable[..., Any]) -> None:
    recorder.arm("scan-1")
    send(service.stream, "--images", 12, "--mx")
    recording = recorder.wait_for("configured", timeout=PATIENCE).recording
    assert recording is not None and recording.file is not None and recording.file.readable is not None
    script = ROOT / "contrib/readers/readers.py"
    told = subprocess.run(
        [sys.executable, script, recording.file.readable], capture_output=True, text=True, check=False
    )
    rows = {row.split(" | ")[0].lstrip("| "): row for row in told.stdout.splitlines()[2:]}
    # Other programs may be installed too. Whether they read the file is not ours to promise.
    assert told.returncode in (0, 1) and rows and not told.stderr, told.stdout + told.stderr
    for name in INSTALLED:
        assert " | yes | " in rows[name], rows[name]
    wrong = subprocess.run([sys.executable, script, "nothing.h5"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and "nothing.h5" in wrong.stderr
