"""Nilometer for Spack, built from the working copy that this recipe stands in.

spack repo add packaging/spack/spack_repo/nilometer
spack install nilometer
"""

import pathlib

from spack_repo.builtin.build_systems.cargo import CargoPackage

from spack.package import *


class Nilometer(CargoPackage):
    """Finds out whether a storage system can carry a scientific instrument, and is the recorder that would carry it."""

    git = pathlib.Path(__file__).resolve().parents[6].as_uri()

    license("Apache-2.0", checked_by="maintainers")

    version("main", branch="main")

    depends_on("c", type="build")
    # It builds HDF5 by itself.
    depends_on("cmake@3.18:", type="build")
    depends_on("rust@1.95:", type="build")

    conflicts("platform=darwin", msg="it asks Linux for what it measures")
    conflicts("platform=windows", msg="it asks Linux for what it measures")

    sanity_check_is_file = [join_path("bin", "nilometer")]

    @property
    def build_directory(self):
        return join_path(self.stage.source_path, "crates", "cli")

    @property
    def build_args(self):
        return ["--locked"]

    def install(self, spec, prefix):
        """With man pages, completions, the unit of systemd and the example of a configuration."""
        with working_dir(self.stage.source_path):
            program = join_path(self.build_directory, "out", "bin", "nilometer")
            Executable(join_path("scripts", "install"))(extra_env={"PROGRAM": program, "PREFIX": prefix})

    def test_version(self):
        """the program starts"""
        nilometer = which(self.prefix.bin.nilometer, required=True)
        assert "features" in nilometer("--version", output=str)
