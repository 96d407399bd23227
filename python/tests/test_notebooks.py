"""The notebooks: their cells run in order, as Jupyter runs them, against a real record and a real recorder."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loopback import PATIENCE, ROOT, Service, awaited

from nilometer_control import Recorder

NOTEBOOKS = ROOT / "python/notebooks"
Run = Callable[..., "subprocess.Popen[str]"]
Send = Callable[..., "subprocess.Popen[bytes]"]


def script_of(name: str) -> str:
    """Return the code of a notebook. It must have no output, which would only make differences large."""
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    return "\n\n".join("".join(cell["source"]) for cell in code)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Start a notebook with variables of the environment."""
    made: list[subprocess.Popen[str]] = []

    def start(name: str, **variables: object) -> "subprocess.Popen[str]":
        words = {key: str(value) for key, value in variables.items()}
        environment = os.environ | {"MPLBACKEND": "agg", "MPLCONFIGDIR": str(tmp_path)} | words
        script = tmp_path / f"{name}.py"
        script.write_text(script_of(name))
        made.append(
            subprocess.Popen(
                [sys.executable, script],
                env=environment,
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        )
        return made[-1]

    yield start
    for notebook in made:
        notebook.kill()
        notebook.wait()


def ended(notebook: "subprocess.Popen[str]") -> str:
    """Wait for the end of a notebook. Returns its output."""
    output, _ = notebook.communicate(timeout=PATIENCE)
    assert notebook.returncode == 0, output
    return output


def test_a_record_is_read_and_plotted(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "evaluation.sqlite"
    with sqlite3.connect(path) as database:
        database.executescript((ROOT / "tests/data/record-10.sql").read_text())
    database.close()
    ended(run("record", RECORD=path))


def test_a_recorder_is_controlled(run: Run, service: Service, recorder: Recorder, send: Send) -> None:
    notebook = run("control", RECORDER=service.url, NAME="notebook")
    awaited(lambda: recorder.status().name == "notebook", "the notebook arms")
    send(service.stream, "--images", 6)
    assert "notebook 6 frames, 0 missing" in ended(notebook)


def test_a_growing_file_is_read(run: Run, service: Service, recorder: Recorder, send: Send) -> None:
    recorder.arm("grows")
    send(service.stream, "--images", 40, "--pause", 0.1)
    awaited(lambda: list((service.data / "grows").glob("*.h5")), "the file is there")
    notebook = run("growing", RECORDING=service.data / "grows")
    assert "40 frames, 0 missing" in ended(notebook)
