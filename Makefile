# Entry points, the same for developers and in CI. `make demo` and `make test` need Rust and Python 3.11.
PYTHON ?= python3
BIN := .venv/bin
CRATES := -p sojourn-derive -p sojourn-aqm -p sojourn-sim -p sojourn-live -p sojourn-capi


##@ Product

.PHONY: help demo test test-rust test-python test-live wasm playground test-playground bench-wasm adapters features sizes capi header adapters-c bench-capi check check-rust check-python bench gen site notebooks faults faults-cluster fuzz fuzz-files additions kill wheel wheel-pgo bench-pgo image-check package audit build dev release clean

demo: build  ## compare four disciplines on a home uplink: a table and a figure
	@mkdir -p out
	@echo "simulating a home uplink under four disciplines, 30 seeds each"
	@$(BIN)/sojourn compare examples/home-uplink.toml --qdisc droptail,red,codel,fq_codel --seeds 30 \
	    --plot out/home-uplink.png
	@echo
	@echo "figure: out/home-uplink.png; next: .venv/bin/sojourn new"

help:  ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { print "\n" substr($$0, 5) } \
	    /^[a-z0-9-]+:.*## / { printf "  %-24s %s\n", $$1, $$2 }' Makefile lab/lab.mk

test: test-rust test-python test-live  ## all tests of Rust and Python

# Programs that cargo starts would warn that they cannot share the job slots of `make --jobs`.
CARGO_TEST := env -u MAKEFLAGS cargo test

test-rust:  ## unit, property, golden and theory tests of the crates
	$(CARGO_TEST) $(CRATES) --features sojourn-aqm/std

# A file is tested by one process, in the order of conftest.py.
BY_FILE := --dist loadfile --no-loadscope-reorder

test-python: dev  ## tests of the package, the command and the laboratory
	$(BIN)/python -m pytest -n 2 $(BY_FILE) -m "not live"

test-live: dev  ## tests of real packets: as root, on Linux
	$(BIN)/python -m pytest -n 4 $(BY_FILE) -m live

WASM := target/wasm32-unknown-unknown/wasm/sojourn_wasm.wasm
PARTS := playground/public
PAGE := python/sojourn/cli/page
# Functions are inlined up to a ninth of the usual size, except those with `#[inline]`.
# The linker says which functions refer to which constants, for `split.mjs`.
SMALL := CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS="-Cllvm-args=-inline-threshold=25 -Clink-arg=--emit-relocs"

wasm: playground/node_modules  ## the simulator as a WebAssembly module in two parts; needs rustup, Node.js and Binaryen
	@command -v rustup >/dev/null || { echo "rustup is missing: it installs the target of the module, https://rustup.rs"; exit 1; }
	@command -v wasm-split >/dev/null || { echo "Binaryen is missing: it splits the module, apt install binaryen"; exit 1; }
	rustup target add wasm32-unknown-unknown
	$(SMALL) cargo build --profile wasm --target wasm32-unknown-unknown -p sojourn-wasm
	node playground/split.mjs $(WASM) $(PARTS)

playground: wasm  ## the page of `sojourn playground`; needs rustup, Node.js 20.19 or later, Binaryen
	cd playground && npm run --silent build
	rm -rf $(PAGE)
	cp -r playground/dist $(PAGE)

playground/node_modules: playground/package-lock.json
	@command -v npm >/dev/null || { echo "Node.js is missing: install version 20.19 or later, https://nodejs.org"; exit 1; }
	cd playground && npm ci --no-audit --no-fund
	@touch $@

test-playground: playground dev  ## minutes: the page in Chromium, and bytes of WebAssembly and native code
	cd playground && npm test --silent
	SOJOURN_WASM=1 $(BIN)/python -m pytest tests/test_playground.py
	cd playground && node --test --test-concurrency=2 tests/browser/

bench-wasm: wasm  ## speed of WebAssembly as a share of native speed, in one run
	cargo build --release -p sojourn-sim --example throughput
	node playground/tests/speed.mjs $(PARTS) target/release/examples/throughput

adapters:  ## adapters to quinn, s2n-quic, smoltcp, turmoil and tokio, built and tested
	$(CARGO_TEST) --manifest-path adapters/Cargo.toml --locked --target-dir target/adapters

# Features of sojourn-aqm, of which each must compile without the others.
FEATURES = $(shell sed -n '/^\[features\]/,/^\[dep/s/^\([a-z0-9-]*\) = .*/\1/p' crates/aqm/Cargo.toml)

features:  ## sojourn-aqm without features, and with each one alone: compiled and linted
	for feature in "" $(FEATURES); do \
	    echo "sojourn-aqm with the features: $$feature"; \
	    cargo clippy --quiet -p sojourn-aqm --no-default-features --features "$$feature" -- -D warnings \
	    || exit 1; done

BARE := thumbv7em-none-eabihf riscv32imac-unknown-none-elf

sizes:  ## sojourn-aqm for bare processors, and the code of small programs with it; needs rustup
	@command -v rustup >/dev/null || { echo "rustup is missing: it installs the targets, https://rustup.rs"; exit 1; }
	rustup target add $(BARE)
	for target in $(BARE); do cargo build --quiet -p sojourn-aqm --target $$target || exit 1; done
	$(PYTHON) tools/sizes.py

PREFIX ?= out/prefix
PICOQUIC ?= out/picoquic
QUICLY ?= out/quicly
HEADER := --quiet --config crates/capi/cbindgen.toml --crate sojourn-capi --output crates/capi/include/sojourn.h

capi:  ## the library for C and C++, installed into PREFIX (out/prefix)
	cargo build --release -p sojourn-capi
	crates/capi/install.sh target/release $(PREFIX)

header:  ## the header for C; needs cbindgen (cargo install cbindgen --version 0.29.4 --locked)
	cbindgen $(HEADER) crates/capi

adapters-c: capi  ## adapters to picoquic and quicly, built and run in their sources: PICOQUIC=/folder QUICLY=/folder
	adapters/in-sources.sh $(PICOQUIC) $(QUICLY)

bench-capi: capi  ## ns per packet through the borders to C, C++ and Go, and without one
	crates/capi/bench.sh target/release $(PREFIX)

check: check-rust check-python  ## format, lints, types, prose, generated files, the site

check-rust:  ## format and lints of Rust
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --features sojourn-aqm/std -- -D warnings

check-python: dev site  ## format, lints and types of Python, prose, generated files, the site
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell
	$(BIN)/python tools/prose.py
	$(BIN)/python tools/api.py --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest sojourn._sojourn
	$(BIN)/python tools/gen.py --check

bench: build  ## benchmarks, as ratios within one run
	cargo bench $(CRATES)
	$(BIN)/python -m sojourn_lab.speed.topologies

gen: dev  ## rewrite the files generated from Rust: classes, pages, figures
	$(BIN)/python tools/gen.py
	$(BIN)/python tools/shown.py

site: .venv/docs  ## the documentation site, into site/; a broken link or anchor is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

notebooks: dev  ## a minute: execute the notebooks of docs/notebooks, and write their outputs
	$(BIN)/python tools/notebooks.py

faults: dev  ## minutes: kill a sweep at 50 random moments; it continues each time
	SOJOURN_KILLS=50 $(BIN)/python -m pytest tests/test_sweep.py -k killed

faults-cluster: dev  ## minutes: kill workers and scheduler of a Dask cluster 50 times; nothing is lost
	SOJOURN_DEATHS=50 $(BIN)/python -m pytest -s tests/test_cluster_deaths.py

fuzz:  ## minutes of fuzzing; needs the nightly toolchain (`make test` runs the same targets for seconds)
	cargo fuzz --version >/dev/null 2>&1 || cargo install cargo-fuzz --locked
	cargo +nightly fuzz run -s none tcp -- -max_total_time=300 -max_len=256 -timeout=60
	mkdir -p fuzz/corpus/scenario
	cargo +nightly fuzz run -s none qdisc -- -max_total_time=300 -max_len=4096 -timeout=20
	cargo +nightly fuzz run -s none packet -- -max_total_time=120 -max_len=4096 -timeout=20
	cargo +nightly fuzz run -s none scenario fuzz/corpus/scenario fuzz/seeds/scenario -- \
	    -max_total_time=300 -max_len=4096 -timeout=20 -dict=fuzz/scenario.dict

fuzz-files: dev  ## an hour: 10,000 damaged inputs for each reader of files (`make test` runs 60)
	SOJOURN_MUTANTS=10000 $(BIN)/python -m pytest tests/test_readers.py -s -k mutants

additions: dev  ## minutes: add an algorithm, a control, a source and a metric to a copy, and test it
	SOJOURN_ADDITIONS=all $(BIN)/python -m pytest tests/test_additions.py

kill: dev  ## minutes: kill a live link 52 times; nothing may be left behind
	SOJOURN_ROUNDS=13 $(BIN)/python -m pytest tests/test_live_kill.py -rs

# In CI the wheel has the page of `sojourn playground`, as a release has.
wheel: .venv/ready | $(if $(CI),playground)  ## build a wheel, and run the demo from it in a clean environment without Rust
	$(BIN)/maturin build --release --out dist
	tools/try-wheel.sh dist

wheel-pgo: .venv/ready  ## a wheel with a profile of the compiler, into dist/pgo; needs rustup's llvm-tools
	rustup component add llvm-tools
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin build --release --pgo --out dist/pgo
	tools/try-wheel.sh dist/pgo

bench-pgo: wheel wheel-pgo  ## minutes: gain of the profile, on its training and on other scenarios
	$(BIN)/python tools/pgo.py compare dist dist/pgo

image-check: wheel  ## minutes, as root: the container image, built and used; needs buildah and debootstrap
	containers/check.sh $$(ls -t dist/sojourn-*.whl | head -n 1)

package: .venv/ready  ## minutes: the crates and the sdist as they would be published, built and checked
	cargo package $(CRATES) --locked
	$(PYTHON) -m venv target/package
	target/package/bin/pip install --quiet build twine
	target/package/bin/python -m build --outdir target/package/dist
	target/package/bin/twine check --strict target/package/dist/*

AUDIT := target/audit/bin

audit: .venv/dev  ## vulnerabilities, licences and sources of dependencies; OFFLINE=1: without the databases
	cargo deny --version >/dev/null 2>&1 || cargo install cargo-deny --locked
	cargo deny --all-features check $(if $(OFFLINE),bans licenses sources)
	$(PYTHON) -m venv target/audit
	$(AUDIT)/pip install --quiet pip-audit zizmor
	$(AUDIT)/zizmor --offline --no-progress .github
	$(if $(OFFLINE),,$(AUDIT)/pip-audit --skip-editable --path $$($(BIN)/python -c "import site; print(site.getsitepackages()[0])"))

# Output of verbose tools, shown only if they fail.
quietly = mkdir -p target && { $(1) >target/make.log 2>&1 || { cat target/make.log; exit 1; }; }
# The same, with the last line of the output every five seconds.
aloud = mkdir -p target && { $(1) >target/make.log 2>&1 & pid=$$!; n=0; \
    while kill -0 $$pid 2>/dev/null; do sleep 1; n=$$((n + 1)); \
    [ $$((n % 5)) -ne 0 ] || tail -n 1 target/make.log | cut -c 1-76; done; \
    wait $$pid || { cat target/make.log; exit 1; }; }
# In CI .venv has uv, which installs packages in a fraction of pip's time. It also lets only one
# process at a time change .venv, so that targets can be made in parallel. Where pip reaches packages
# and uv does not, as with certificates that only pip knows, uv is removed again.
uv = $$(test ! -x $(BIN)/uv || echo $(1))
MATURIN = VIRTUAL_ENV=$(CURDIR)/.venv PIP_NO_COMPILE=1 $(BIN)/maturin develop $(call uv,--uv)
PIP = $(BIN)/python -m $(call uv,uv) pip install --quiet --no-compile
# $(call extra,NAME): the packages of an extra of pyproject.toml, without building the package.
extra = $(BIN)/python -c 'import tomllib; \
    project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
    print(*project["optional-dependencies"]["$(1)"], sep="\n")' > .venv/$(1).txt \
    && $(PIP) --requirement .venv/$(1).txt

# Run-time requirements; maturin reads them from pyproject.toml.
.venv/ready: pyproject.toml
	@command -v cargo >/dev/null || { echo "Rust is missing: install it with rustup, https://rustup.rs"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is required: make PYTHON=..." if sys.version_info < (3, 11) else 0)'
	@echo "1 of 3: creating .venv for Python packages (0.4 GB)"
	@$(PYTHON) -m venv .venv
	@echo "2 of 3: installing maturin, which builds the module"
	@$(BIN)/python -m pip install --quiet --no-compile "maturin>=1.13,<2" $(if $(CI),uv)
	@test ! -x $(BIN)/uv || VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv pip install --quiet --dry-run numpy || rm $(BIN)/uv
	@echo "3 of 3: installing Python packages, compiling Rust into target (0.2 GB): about a minute"
	@$(call aloud,$(MATURIN) --profile develop)
	@touch $@

# Requirements of tests and checks. pip, other than uv, must not run twice at once in .venv.
.venv/dev: .venv/ready | .venv/lab
	@echo "installing development packages into .venv: 0.7 GB"
	@$(call extra,dev)
	@touch $@

# Requirements of the site.
.venv/docs: pyproject.toml | .venv/ready $(if $(CI),.venv/dev)
	@$(call extra,docs)
	@touch $@

# The laboratory. .venv/ready can be newer, so it is required but not compared.
.venv/lab: lab/pyproject.toml | .venv/ready
	@$(PIP) --no-deps --editable lab
	@touch $@

build: .venv/ready .venv/lab  ## the compiled module, built quickly; only changed files are compiled
	@$(call quietly,$(MATURIN) --profile develop --skip-install)

dev: .venv/dev build

release: .venv/dev .venv/lab  ## the module as in a wheel: minutes to build, 15 % faster
	@$(call quietly,$(MATURIN) --release --skip-install)

clean:  ## remove .venv and everything that was built
	rm -rf .venv target out dist site

include lab/lab.mk
