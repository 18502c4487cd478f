# The front door: the same words on a desk and in CI. `make demo` and `make test` need Rust and Python 3.11.
PYTHON ?= python3
BIN := .venv/bin
CRATES := -p sojourn-aqm -p sojourn-sim -p sojourn-live

.PHONY: demo test check bench bench-live bench-played bench-sweep kernel-tcp gen validate studies papers papers-full papers-live faults fuzz mutants kill instructions wheel build clean

demo: build  ## the main job: four disciplines on a home uplink, a table and a figure
	@mkdir -p out
	$(BIN)/sojourn compare examples/home-uplink.toml --qdisc droptail,red,codel,fq_codel --plot out/home-uplink.png
	@echo "figure: out/home-uplink.png"

test: build  ## everything that proves it works
	cargo test $(CRATES)
	$(BIN)/python -m pytest

check: build  ## format, lints, types, generated files
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest sojourn._sojourn
	$(BIN)/python tools/gen.py --check

bench: build  ## speed, as ratios inside one run
	cargo bench $(CRATES)

bench-played: build  ## under a minute: how fast a scenario can be played on real packets here
	$(BIN)/python tools/bench_played.py

bench-sweep: build  ## under a minute: what a sweep costs beside its runs, and on two cores
	$(BIN)/python tools/bench_sweep.py

kernel-tcp: build  ## a quarter of an hour: real TCP beside the simulator, written to docs/live.md
	$(BIN)/python tools/kernel_tcp.py

bench-live: build  ## minutes: how accurate a live link is here, written to docs/live.md
	$(BIN)/python tools/bench_live.py

gen: build  ## rewrite what is generated from Rust: classes, pages, figures
	$(BIN)/python tools/gen.py
	$(BIN)/python tools/shown.py

validate: build  ## a quarter of an hour: our results beside those of ns-2, written to docs/validation.md
	$(BIN)/python -m validation

studies: build  ## a minute: who gets what from a shared link, written to docs/fairness.md
	$(BIN)/python -m studies.fairness

papers: build  ## a few minutes: every paper with few seeds and points, into out/papers
	for id in $$($(BIN)/python -c "from sojourn.paper import ids; print(*ids())"); do \
	    $(BIN)/sojourn paper run $$id --quick --out out/papers || exit 1; done

papers-full: build  ## tens of minutes: every paper in full, its pages and figures into docs/papers
	$(BIN)/python tools/papers.py

papers-live: build  ## 20 minutes, as root: what two papers have on testbeds, on real packets, into docs/papers
	$(BIN)/python tools/papers.py --live

faults: build  ## minutes: a sweep is killed at 50 random moments and goes on each time
	SOJOURN_KILLS=50 $(BIN)/python -m pytest tests/test_sweep.py -k killed

fuzz:  ## minutes of fuzzing; needs the nightly toolchain (`make test` drives the same bodies for some seconds)
	cargo fuzz --version >/dev/null 2>&1 || cargo install cargo-fuzz --locked
	cargo +nightly fuzz run -s none tcp -- -max_total_time=300 -max_len=256 -timeout=60
	mkdir -p fuzz/corpus/scenario
	cargo +nightly fuzz run -s none qdisc -- -max_total_time=300 -max_len=4096 -timeout=20
	cargo +nightly fuzz run -s none packet -- -max_total_time=120 -max_len=4096 -timeout=20
	cargo +nightly fuzz run -s none scenario fuzz/corpus/scenario fuzz/seeds/scenario -- \
	    -max_total_time=300 -max_len=4096 -timeout=20 -dict=fuzz/scenario.dict

mutants:  ## hours: which small changes of the algorithms no test notices; FILE=..., SHARD=0/4: docs/mutation.md
	cargo mutants --version >/dev/null 2>&1 || cargo install cargo-mutants --locked
	$(PYTHON) tools/mutants.py $(FILE) $(if $(SHARD),--shard $(SHARD))

kill: build  ## minutes: 52 rounds of a live link that is killed; nothing may be left of it
	SOJOURN_ROUNDS=13 $(BIN)/python -m pytest tests/test_live_kill.py -rs

instructions: build  ## what a packet costs, counted by valgrind's callgrind, against what was written down
	$(BIN)/python tools/instructions.py

wheel: .venv/ready  ## a wheel, and a clean environment that runs the demo from it without Rust
	$(BIN)/maturin build --release --out dist
	tools/try-wheel.sh dist

# The virtual environment with maturin in it; maturin installs what pyproject.toml asks for, and cargo
# sees by itself what has changed.
.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet "maturin>=1.9,<2"
	VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/maturin develop --release --quiet --extras dev
	touch $@

build: .venv/ready
	VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/maturin develop --release --quiet --skip-install

clean:
	rm -rf .venv target out dist
