# The commands of the project, for people and for CI alike. Each sets up what it needs, once: a venv in
# .venv from hash-pinned requirements, the extension as a release build, slow tools in .tools. Nothing
# but Python 3.11+, cargo and make has to be there, and nothing is fetched but from package registries.

# The first Python that is new enough; `make PYTHON=/path/to/python3 build` chooses another.
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 python3.14; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
CARGO_DENY_VERSION := 0.20.2
UV_VERSION := 0.13.9
VERSITYGW_VERSION := 1.8.0
TOXIPROXY_VERSION := 2.5.0
FAKE_GCS_VERSION := 1.52.3

VENV := .venv
BIN := $(VENV)/bin
# Wheels only: a source distribution would run a build of its own, with dependencies that no hash pins.
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	--require-hashes --only-binary :all:
# Tools that cargo compiles take minutes; `make TOOLS=…` shares them between clones.
TOOLS ?= .tools
DENY := $(TOOLS)/cargo-deny-$(CARGO_DENY_VERSION)/bin/cargo-deny
VERSITYGW := $(TOOLS)/versitygw-$(VERSITYGW_VERSION)/bin/versitygw
TOXIPROXY := $(TOOLS)/toxiproxy-$(TOXIPROXY_VERSION)/bin/toxiproxy-server
FAKE_GCS := $(TOOLS)/fake-gcs-server-$(FAKE_GCS_VERSION)/bin/fake-gcs-server
AZURITE := $(TOOLS)/azurite/bin/azurite-blob
UV := $(TOOLS)/uv-$(UV_VERSION)/bin/uv
BENCH := $(TOOLS)/bench
FRAMEWORKS := $(TOOLS)/frameworks

# Directories are in the list for their time stamps: a file that is gone changes nothing else.
RUST_SOURCES := $(shell find crates/*/src) $(wildcard crates/*/Cargo.toml crates/*/build.rs) Cargo.toml Cargo.lock
PYTHON_SOURCES := $(shell find python/gristmill -name __pycache__ -prune -o -name '*.py' -print)

# Where these are set, imports would be compiled again at every start and timings would show it.
unexport PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED
# pyo3's build script and maturin must ask the same interpreter, or each would undo the other's build.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help build demo test quick test-nfs test-servers soak fuzz check format check-rust check-python check-deps reference manual docs pictures dist bench bench-all bench-whole bench-floor bench-external audit figures lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: $(VENV)/.compiled ## build and install into .venv (release build); run .venv/bin/gristmill

demo: build ## make a gigabyte of records, sort and validate them, with what the program prints
	$(BIN)/gristmill demo

test: build $(VENV)/.develop $(if $(shell command -v go),test-servers) ## run the tests: engine (unit, integration, doc), then Python
	$(BIN)/python tools/rust_tests.py --locked --workspace
	$(BIN)/python -m pytest $(SEVERAL) --reruns 2 -r fER --durations 30

quick: $(VENV)/.develop ## run the tests that touch what changed, and a sample of every kind, in four minutes; compiles nothing
	$(BIN)/python tools/quick_tests.py --against $(AGAINST)

AGAINST := HEAD~1

test-nfs: build $(VENV)/.develop ## run the tests of NFS: two emulated machines, and a server (root, on Debian; CONTRIBUTING.md)
	$(BIN)/python -m pytest -o addopts="$(PYTEST_OPTIONS)" -r fER tests/nfs

soak: build $(VENV)/.develop ## kill nodes of a cluster, disturb jobs of two users, kill jobs over tables, copies and chains, at random moments: an hour or two (KILLS=3 FAULTS=20 JOBS=10 COPIES=10: fewer)
	KILLS=$(KILLS) FAULTS=$(FAULTS) JOBS=$(JOBS) COPIES=$(COPIES) $(BIN)/python -m pytest -o addopts="$(PYTEST_OPTIONS)" -r fER --capture no tests/soak

KILLS := 20
FAULTS := 200
JOBS := 100
COPIES := 100

fuzz: build $(VENV)/.develop ## compare sort and grep with GNU's and ripgrep's for an hour, 10,000 jobs over tables and lines with oracles, 2,000 tables with their readers, at random (MINUTES=10 CASES=500: less)
	@seed=$(or $(SEED),$$($(BIN)/python -c 'import random; print(random.SystemRandom().randrange(1, 1 << 32))')); \
	echo "SEED=$$seed draws these cases again"; \
	GNU_KEYS_SETS=10000 GNU_KEYS_SEED=$$seed cargo test --locked --release --package gristmill-gnu-keys --test differential && \
	export FUZZ_MINUTES=$(MINUTES) FUZZ_CASES=$(CASES) FUZZ_SEED=$$seed FUZZ_TABLES=2000 && \
	$(BIN)/python -m pytest -o addopts="$(PYTEST_OPTIONS)" -o timeout=0 -r fER tests/fuzz tests/mapreduce/test_one_schema.py

MINUTES := 60
CASES := 10000

# Tests of clusters and of killed jobs wait most of their time, so there are more processes than cores.
# Which tests stay together: tests/conftest.py.
SEVERAL := --numprocesses 3 --dist loadscope

PYTEST_OPTIONS := --import-mode=importlib --strict-markers --strict-config

test-servers: $(VERSITYGW) $(TOXIPROXY) $(FAKE_GCS) $(if $(shell command -v npm),$(AZURITE)) ## make the servers that tests ask (needs Go and npm; `make test` does it where Go is)

check: check-rust check-python check-deps ## formatting, lints, types, stubs, docs, licences

check-rust: $(VENV)/.venv
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- --deny warnings
	RUSTDOCFLAGS="--deny warnings" cargo doc --locked --no-deps --workspace --exclude gristmill-python

check-python: build $(VENV)/.develop
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright --warnings
	$(BIN)/python -m mypy.stubtest gristmill._core

check-deps: $(DENY)
	$(DENY) --locked check licenses bans sources

format: build $(VENV)/.develop ## format Rust and Python, fix what the linters can fix, make stubs and the reference
	cargo fmt --all
	$(BIN)/python -c "from gristmill.functions import stub; print(stub(), end='')" > functions.pyi.new
	mv functions.pyi.new python/gristmill/functions.pyi
	$(BIN)/python -c "from gristmill.mapreduce.run_options import typed_module as made; print(made(), end='')" > typed.py.new
	mv typed.py.new python/gristmill/mapreduce/typed.py
	$(BIN)/python -m gristmill.streaming.page > streaming.md.new
	mv streaming.md.new docs/streaming.md
	$(MAKE) --no-print-directory reference
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

reference: build ## make docs/reference from the tables of options, errors, counters
	cd tools && ../$(BIN)/python -m reference

manual: build $(VENV)/.develop ## make the manual pages: man ./gristmill._core.data/data/share/man/man1/gristmill.1
	$(BIN)/python tools/manual.py

docs: manual ## build the documentation site into target/site: open target/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

pictures: $(VENV)/.develop ## make the pictures of docs/ anew (needs Chromium)
	UPDATE_PICTURES=1 $(BIN)/python -m pytest -q tests/history/test_screenshots.py

dist: manual ## build a wheel and a source distribution into dist/, install both, run the demo (10 to 20 minutes)
	rm -rf dist
	$(BIN)/python tools/licences.py
	$(REPRODUCIBLE) $(BIN)/maturin build --release --locked --strip --out dist
	$(REPRODUCIBLE) $(BIN)/maturin sdist --out dist
	$(BIN)/python tools/dist.py $(if $(DIST_WHEEL_ONLY),,--source)

# Twice the same bytes: times are those of the commit, paths are those of no machine. A target folder of its own, since
# other flags would compile all anew; DIST_WHEEL_ONLY=1 does not compile the source distribution.
REPRODUCIBLE = env -u CARGO_INCREMENTAL CARGO_TARGET_DIR=$(CURDIR)/target/dist \
	SOURCE_DATE_EPOCH=$(or $(shell git log -1 --format=%ct 2>/dev/null),315532800) \
	RUSTFLAGS="$(DIRECT_CALLS) --remap-path-prefix=$(CURDIR)=/gristmill --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo"

bench: build $(BENCH)/.installed ## against other programs: 25 minutes; run it again to continue after a break (drops the page cache: root)
	$(BIN)/python benchmarks/compare.py --peers $(BENCH)/bin/python

bench-all: build $(BENCH)/.installed $(FRAMEWORKS)/.installed ## 1 and 10 GB, with Spark, Hadoop, Ray Data and Daft too: an hour; run it again to continue after a break
	$(BENCH_COMPARE) --name all --rows 10m --cells all --rounds 3 --minutes 20
	$(BENCH_COMPARE) --name all --rows 100m --cells all --rounds 1 --minutes 40

BENCH_COMPARE = $(BIN)/python benchmarks/compare.py --peers $(BENCH)/bin/python --frameworks $(FRAMEWORKS)/bin/python

bench-whole: build $(BENCH)/.installed $(FRAMEWORKS)/.installed ## all that docs/benchmarks.md quotes, and that page: two hours; run it again to go on (root)
	$(BIN)/python benchmarks/whole.py --peers $(BENCH)/bin/python --frameworks $(FRAMEWORKS)/bin/python

bench-floor: build ## against the floor of the device, five minutes
	$(BIN)/python benchmarks/external.py warm

bench-external: build ## the same for sorts beyond memory, cold ones, lines, hard keys (an hour; drops the page cache: root)
	$(BIN)/python benchmarks/external.py spill cold lines skew flat

figures: $(VENV)/.develop ## count lines, names, circles of files; `tools/figures.py --sites COMMIT` counts edit sites
	$(BIN)/python tools/figures.py

audit: $(DENY) ## check the crates against the advisory database (fetches it by git)
	@$(DENY) fetch db 2>/dev/null || { echo "not audited: the advisory database cannot be had here (it is a git" \
		"repository; cargo-deny says why: $(DENY) fetch db)" >&2; exit 1; }
	$(DENY) --locked check --disable-fetch advisories

# The Rust lock is Cargo.lock. For Python it is requirements/*.txt rather than a uv.lock, which pins the
# address of every file: behind a mirror that lock does not install, or gets rewritten. A requirements
# file pins versions and hashes, and pip takes the files from whatever index the user has set.
lock: $(UV) ## bring the lock files up to date with the manifests (LOCK_FLAGS=--upgrade: newer Python packages)
	cargo update --workspace
	$(UV_COMPILE) --group build --output-file requirements/build.txt
	$(UV_COMPILE) --group develop --constraint requirements/build.txt --output-file requirements/develop.txt
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--custom-compile-command "make lock" $(LOCK_FLAGS) --group bench --output-file requirements/bench.txt
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--custom-compile-command "make lock" $(LOCK_FLAGS) --group frameworks --output-file requirements/frameworks.txt

UV_COMPILE = $(UV) pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--generate-hashes --custom-compile-command "make lock" $(LOCK_FLAGS)

clean: ## remove what was built; .tools stays, since it takes minutes
	rm -rf $(VENV) target dist gristmill._core.data THIRD-PARTY-LICENCES.txt .pytest_cache .ruff_cache .mypy_cache .hypothesis
	rm -f python/gristmill/_core*.so
	find python tests -name __pycache__ -prune -exec rm -rf {} +

# --- set-up, each step remembered by a stamp file ---

$(VENV)/.venv:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.build: requirements/build.txt $(VENV)/.venv
	$(PIP_INSTALL) --requirement $<
	@touch $@

$(VENV)/.develop: requirements/develop.txt $(VENV)/.build
	$(PIP_INSTALL) --requirement $<
	@touch $@

# The programs that the benchmarks compare with, apart from ours.
$(TOOLS)/%/.installed: requirements/%.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes $(PIP_SOURCES) \
		--requirement $<
	@touch $@

# Wheels only, as above; but PySpark has never been anything else than a source distribution.
$(BENCH)/.installed: PIP_SOURCES = --only-binary :all:
$(FRAMEWORKS)/.installed: PIP_SOURCES = --only-binary :all: --no-binary pyspark

# Calls inside the library go straight, not by a table of all functions, which each process would fill when it loads it.
# Decision: docs/decisions/build-profile.md.
DIRECT_CALLS = $(if $(filter Linux,$(shell uname)),-C relro-level=partial -C link-arg=-Wl$(COMMA)-z$(COMMA)now)
COMMA = ,

$(VENV)/.extension: $(RUST_SOURCES) pyproject.toml $(VENV)/.build
	RUSTFLAGS="$(DIRECT_CALLS)" VIRTUAL_ENV=$(CURDIR)/$(VENV) PIP_NO_INDEX=1 PIP_QUIET=1 \
		$(BIN)/maturin develop --release --locked
	@touch $@

$(VENV)/.compiled: $(PYTHON_SOURCES) $(VENV)/.extension
	$(BIN)/python -m compileall -q python/gristmill
	@touch $@

# A debug build: 1.5 minutes on two cores in place of 3.5, for a check that takes a second longer.
$(DENY):
	@echo "compiling cargo-deny $(CARGO_DENY_VERSION) into $(TOOLS): minutes, but only once"
	cargo install --quiet --debug --locked --no-default-features --root $(@D)/.. cargo-deny@$(CARGO_DENY_VERSION)

# By name and version from the module proxy, as Go checks them by its sum database.
$(VERSITYGW):
	@echo "compiling versitygw $(VERSITYGW_VERSION) into $(TOOLS): minutes, but only once"
	GOBIN=$(abspath $(@D)) GOFLAGS=-mod=mod go install github.com/versity/versitygw/cmd/versitygw@v$(VERSITYGW_VERSION)

$(TOXIPROXY):
	@echo "compiling toxiproxy $(TOXIPROXY_VERSION) into $(TOOLS)"
	GOBIN=$(abspath $(@D)) GOFLAGS=-mod=mod go install github.com/Shopify/toxiproxy/v2/cmd/server@v$(TOXIPROXY_VERSION)
	mv $(@D)/server $@

$(FAKE_GCS):
	@echo "compiling fake-gcs-server $(FAKE_GCS_VERSION) into $(TOOLS): minutes, but only once"
	GOBIN=$(abspath $(@D)) GOFLAGS=-mod=mod go install github.com/fsouza/fake-gcs-server@v$(FAKE_GCS_VERSION)

# npm takes what the lock file names, from whatever registry the user has set.
$(AZURITE): requirements/azurite/package-lock.json
	mkdir -p $(@D)
	cp requirements/azurite/package.json requirements/azurite/package-lock.json $(@D)/..
	cd $(@D)/.. && npm ci --ignore-scripts --no-audit --no-fund --silent
	ln -sf ../node_modules/.bin/azurite-blob $@
	@touch $@

$(UV):
	$(PYTHON) -m venv $(@D)/..
	$(@D)/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
