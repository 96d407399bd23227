# Two commands do everything: `make evaluate` and `make test`. Both install what they need. `make help` lists the others.

.PHONY: help evaluate test check test-long bench book build dist install uninstall packages test-packages wheel

# Where `make install` puts it. DESTDIR, put before it, is for those who make packages.
PREFIX ?= /usr/local

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

# Measures the storage under the current directory, then records on it the largest instrument that it is then expected to
# carry.
evaluate: build ## measure the storage under this directory, and say what it can carry
	@scripts/evaluate target/release/nilometer

# With MPI=1 also what speaks to the MPI of this machine, for campaigns of several processes: docs/cluster.md. With REMOTE=1 the
# program has clients of XRootD and NFS in it, for targets by URL; it needs their libraries then.
build: ## build the program, target/release/nilometer
	@scripts/bootstrap $(if $(REMOTE),remote,build)
	@. scripts/steps && step "build" cargo build --release --locked --package nilometer-cli $(if $(REMOTE),--features remote)
ifdef MPI
	@scripts/bootstrap mpi
	target/release/nilometer generate mpi | mpicc -O2 -shared -fPIC -x c - -o target/release/libnilometer_mpi.so
endif

# The program as packages have it: optimised across crates, which takes minutes after every change.
dist: ## build the program with all optimisations, target/dist/nilometer
	@scripts/bootstrap $(if $(REMOTE),remote,build)
	cargo build --profile dist --locked --package nilometer-cli $(if $(REMOTE),--features remote)

# What `make build` built, with man pages, completions and the unit of systemd. It builds nothing: root may have no Rust.
install: ## install the program, man pages and completions below PREFIX
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install

uninstall: ## remove them again
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install --remove

# A .deb, an .rpm and an archive, in target/packages, that run from RHEL 7 and Debian 10 on.
packages: ## a .deb, an .rpm and an archive, in target/packages
	@scripts/bootstrap packages
	@scripts/packages

# The packages, installed into a clean Debian 11 and run there. As root.
test-packages: packages ## try them in a clean Debian 11; as root
	@scripts/bootstrap test-packages
	@scripts/test-packages

# The client of the recorder in Python, and its readers of records and recordings: docs/python.md.
wheel: ## the package of Python, in target/wheel
	@scripts/bootstrap test
	@scripts/wheel

# All tests, with real file systems on loop devices where this user may make them.
test: ## run all tests
	@scripts/bootstrap test
	scripts/test

# It finds the crates by comparing with the last commit. CRATES="storage wire" names them instead; BASE=COMMIT compares with another
# commit.
check: ## format, lints and unit tests of the crates that you changed
	@scripts/bootstrap build
	@BASE='$(BASE)' scripts/check $(CRATES)

# What takes longer: more seeds, more kills, and fuzzing, each target for so many seconds: NILOMETER_FUZZ_SECONDS=3600 for a night.
test-long: ## the same with more seeds, more kills and fuzzing
	@scripts/bootstrap test
	@scripts/bootstrap testbed-extended
	NILOMETER_LONG=1 NILOMETER_FUZZ_SECONDS=$${NILOMETER_FUZZ_SECONDS:-300} scripts/test

# Side by side with other tools and with bare loops, in one run. Needs a quiet machine.
bench: dist ## compare with other tools; needs a quiet machine
	@scripts/bootstrap test
	@scripts/bootstrap bench
	cargo run --profile dist --locked --package nilometer-bench

# With a search, light and dark, and readable without a network. The first time it also builds mdbook, into target/tools.
book: ## build the documentation as a book, target/book/index.html
	@scripts/bootstrap book
	@scripts/book
