# Two commands do everything: `make evaluate` and `make test`. Both install what they need.

.PHONY: evaluate test test-long bench build install uninstall packages test-packages

# Where `make install` puts it. DESTDIR, put before it, is for those who make packages.
PREFIX ?= /usr/local

# Measures the storage under the current directory, then records on it the largest instrument that it is then expected to
# carry: about five minutes after the build.
evaluate: build
	@scripts/evaluate target/release/nilometer

# With MPI=1 also what speaks to the MPI of this machine, for campaigns of several processes: docs/cluster.md. With REMOTE=1 the
# program has clients of XRootD and NFS in it, for targets by URL; it needs their libraries then.
build:
	@scripts/bootstrap $(if $(REMOTE),remote,build)
	cargo build --release --locked --package nilometer-cli $(if $(REMOTE),--features remote)
ifdef MPI
	@scripts/bootstrap mpi
	target/release/nilometer generate mpi | mpicc -O2 -shared -fPIC -x c - -o target/release/libnilometer_mpi.so
endif

# What `make build` built, with man pages, completions and the unit of systemd. It builds nothing: root may have no Rust.
install:
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install

uninstall:
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install --remove

# A .deb, an .rpm and an archive, in target/packages, that run from RHEL 7 and Debian 10 on.
packages:
	@scripts/bootstrap packages
	@scripts/packages

# The packages, installed into a clean Debian 11 and run there. As root.
test-packages: packages
	@scripts/bootstrap test-packages
	@scripts/test-packages

# All tests, with real file systems on loop devices where this user may make them.
test:
	@scripts/bootstrap test
	scripts/test

# What takes longer: more seeds, more kills, and fuzzing, each target for so many seconds: NILOMETER_FUZZ_SECONDS=3600 for a night.
test-long:
	@scripts/bootstrap test
	@scripts/bootstrap testbed-extended
	NILOMETER_LONG=1 NILOMETER_FUZZ_SECONDS=$${NILOMETER_FUZZ_SECONDS:-300} scripts/test

# Side by side with other tools and with bare loops, in one run. Needs a quiet machine.
bench: build
	@scripts/bootstrap test
	cargo run --release --locked --package nilometer-bench
