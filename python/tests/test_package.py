"""The package itself: its version, what it needs, and the wheel that `make wheel` builds."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from loopback import ROOT

import nilometer_control

PYTHON = ROOT / "python"


def test_the_version_is_that_of_the_program() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    assert nilometer_control.__version__ == workspace["package"]["version"]


def test_the_core_needs_only_the_standard_library() -> None:
    modules = ["nilometer_control", "nilometer_control.journal", "nilometer_control.records"]
    code = f"import sys; sys.path.insert(0, {str(PYTHON / 'src')!r}); import {', '.join(modules)}"
    # -I -S: neither packages of the environment nor its variables.
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)


@pytest.mark.parametrize(
    ("module", "options", "why"),
    [
        ("command", ["http://127.0.0.1:1", "--prefix", "NIL"], "'fastcs': install nilometer-control[fastcs]"),
        ("ntndarray_command", ["A", "--to", "tcp://h:1"], "'cbor2': install nilometer-control[ntndarray]"),
    ],
)
def test_commands_name_the_extra_that_is_missing(module: str, options: list[str], why: str) -> None:
    source = str(PYTHON / "src")
    code = f"import sys; sys.path.insert(0, {source!r}); from nilometer_control.{module} import main; main()"
    words = [sys.executable, "-I", "-S", "-c", code, *options]
    refused = subprocess.run(words, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert f"No module named {why}" in refused.stderr


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable, "HOME": str(tmp_path)}
    built = subprocess.run(
        [ROOT / "scripts/wheel", tmp_path], env=environment, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    return Path(built.stdout.strip())


def test_the_wheel_has_types_extras_and_commands(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
        (metadata,) = (files.read(name).decode() for name in names if name.endswith("/METADATA"))
        (commands,) = (files.read(name).decode() for name in names if name.endswith("/entry_points.txt"))
    assert {"nilometer_control/py.typed", "nilometer_control/recorder.py"} <= names
    extras = {line.split(": ")[1] for line in metadata.splitlines() if line.startswith("Provides-Extra: ")}
    assert extras == {"pandas", "bluesky", "fastcs", "tango", "ntndarray"}
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist: ")]
    assert all("extra ==" in line for line in required)
    for command in ("fastcs=nilometer_control.command", "ntndarray=nilometer_control.ntndarray_command"):
        assert f"nilometer-{command}:main" in commands.replace(" ", "")
