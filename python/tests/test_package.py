"""The package itself: its style, its types, its version, and the wheel that `make wheel` builds."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from loopback import ROOT

import nilometer_control

PYTHON = ROOT / "python"


def module(name: str, *arguments: object) -> None:
    """Run a module of this Python. It must end well."""
    command = [sys.executable, "-m", name, *map(str, arguments)]
    done = subprocess.run(command, cwd=PYTHON, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff_finds_nothing() -> None:
    module("ruff", "check", "--no-cache", ".")
    module("ruff", "format", "--no-cache", "--check", ".")


def test_mypy_finds_nothing(tmp_path: Path) -> None:
    module("mypy", "--cache-dir", tmp_path)


def test_the_version_is_that_of_the_program() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    assert nilometer_control.__version__ == workspace["package"]["version"]


def test_the_core_needs_only_the_standard_library() -> None:
    modules = ["nilometer_control", "nilometer_control.journal", "nilometer_control.records"]
    code = f"import sys; sys.path.insert(0, {str(PYTHON / 'src')!r}); import {', '.join(modules)}"
    # -I -S: neither packages of the environment nor its variables.
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable, "HOME": str(tmp_path)}
    built = subprocess.run(
        [ROOT / "scripts/wheel", tmp_path], env=environment, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    return Path(built.stdout.strip())


def test_the_wheel_has_types_extras_and_a_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
        (metadata,) = (files.read(name).decode() for name in names if name.endswith("/METADATA"))
        (commands,) = (files.read(name).decode() for name in names if name.endswith("/entry_points.txt"))
    assert {"nilometer_control/py.typed", "nilometer_control/recorder.py"} <= names
    extras = {line.split(": ")[1] for line in metadata.splitlines() if line.startswith("Provides-Extra: ")}
    assert extras == {"pandas", "bluesky", "fastcs", "tango"}
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist: ")]
    assert all("extra ==" in line for line in required)
    assert "nilometer-fastcs=nilometer_control.fastcs:main" in commands.replace(" ", "")
