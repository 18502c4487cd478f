##@ Laboratory: evidence for sojourn, written into reports/
# Included by the Makefile. The package sojourn_lab is installed into .venv by `make demo`.

.PHONY: bench-live bench-emulate bench-sweep bench-store bench-custom bench-topologies bench-features bench-cost bench-peers kernel-tcp validate validate-linux validate-linux-fresh validate-linux-controls validate-senders validate-datacentre validate-random validate-bbr3 validate-ns3 validate-slow validate-tc validate-tdc validate-netem validate-quic studies data-centre-study measured-lines dctcp-study quic-study capacity-sweep papers papers-full papers-live scorecards recommendations coverage mutants mutants-python instructions instructions-links cachegrind

bench-live: release  ## minutes: accuracy of a live link on this machine, written to docs/concepts/live-accuracy.md
	$(BIN)/python -m sojourn_lab.speed.live

bench-emulate: release  ## under a minute: highest rates of a scenario on real packets on this machine
	$(BIN)/python -m sojourn_lab.speed.emulate

bench-sweep: release  ## under a minute: overhead of a sweep, and its speed on two cores
	$(BIN)/python -m sojourn_lab.speed.sweep

bench-store: dev  ## minutes: size and queries of a store of ten million runs (3 GB of disk)
	$(BIN)/python -W ignore -m sojourn_lab.speed.store

bench-custom: release  ## seconds: cost of a discipline in Python, compared with the same in Rust
	$(BIN)/python -m sojourn_lab.speed.custom

bench-topologies: build  ## minutes: packet-hops/s of topologies, as ratios to S1 (part of `make bench`)
	$(BIN)/python -m sojourn_lab.speed.topologies

bench-features: build  ## minutes: cost of ECMP, shared buffers and telemetry per packet-hop; QUICK=1, or LARGE=1 (hours)
	$(BIN)/python -m sojourn_lab.speed.features $(if $(QUICK),--quick) $(if $(LARGE),--large)

bench-cost: build  ## minutes: cost by links, flows, hops, load and samples, written to reports/cost-growth.md
	$(BIN)/python -m sojourn_lab.reports.cost_growth $(if $(QUICK),--quick)

bench-peers: build  ## minutes: csg-htsim and ns-3 on the same work, to reports/peers.md; QUICK=1, HTSIM=/path, NS3=/path
	$(BIN)/python -m sojourn_lab.speed.peers $(if $(QUICK),--quick) $(if $(HTSIM),--htsim $(HTSIM)) $(if $(NS3),--ns3 $(NS3))

kernel-tcp: release  ## 15 minutes: the kernel's TCP compared with the simulated one, written to docs/concepts/live-accuracy.md
	$(BIN)/python -m sojourn_lab.reports.kernel_tcp

validate: release  ## 15 minutes: our results compared with ns-2's, written to reports/validation.md
	$(BIN)/python -m sojourn_lab.validation

validate-linux: dev  ## a minute: recordings of Linux compared with ours, written to reports/validation-linux.md and -tcp.md
	$(BIN)/python -m sojourn_lab.validation.linux

validate-netem: dev  ## five minutes, as root: impaired links and netem of a user-mode kernel, to reports/validation-netem.md
	$(BIN)/python -m sojourn_lab.validation.netem
	SOJOURN_NETEM=1 $(BIN)/python -m pytest lab/tests/test_netem.py

validate-linux-fresh: dev  ## ten minutes, later two: arrivals of the day through a kernel built from linux-source
	$(BIN)/python -m sojourn_lab.validation.linux.fresh

validate-linux-controls: dev  ## minutes: Linux's congestion controls and ours, written to reports/validation-linux-controls.md
	$(BIN)/python -m sojourn_lab.validation.linux.controls

validate-senders: release  ## minutes: senders of Linux and ours compared, written to reports/validation-senders.md
	$(BIN)/python -m sojourn_lab.validation.senders

validate-datacentre: release  ## two minutes: senders of data centres and other simulators, value by value, to reports/validation-datacentre.md
	$(BIN)/python -m sojourn_lab.validation.datacentre

validate-random: release  ## 17 minutes, as root: random scenarios on the kernel's TCP; SEED=..., N=60, AGAIN=2, KERNEL=...
	$(BIN)/python -m sojourn_lab.validation.random $(if $(SEED),--seed $(SEED)) $(if $(N),--n $(N)) $(if $(AGAIN),--again $(AGAIN)) $(if $(KERNEL),--kernel $(KERNEL))

validate-bbr3: release  ## a minute: BBRv3 of Google's kernel (recorded) and ours, into reports/validation-bbr3.md
	$(BIN)/python -m sojourn_lab.validation.bbr3 $(if $(KERNEL),--kernel $(KERNEL))

validate-slow: dev  ## seconds: CUBIC on slow lines, recorded from the kernel and ours, to reports/validation-slow.md
	$(BIN)/python -m sojourn_lab.validation.random.slow

validate-ns3: capi .venv/lab  ## an hour: dumbbells of ns-3 with its disciplines and ours, to reports/validation-ns3.md
	$(BIN)/python -m sojourn_lab.validation.ns3

validate-tc: dev  ## seconds: 2,000 random sequences of tc commands, by the kernel and by our reader; SEED=..., N=2000
	$(BIN)/python -m sojourn_lab.validation.linux.sequences $(if $(SEED),--seed $(SEED)) $(if $(N),--count $(N))

validate-tdc: dev  ## seconds: the kernel's own tests of tc, LINUX=/source/of/linux, written to reports/validation-tdc.md
	$(BIN)/python -m sojourn_lab.validation.tdc $(LINUX) $(if $(NEWER),--newer $(NEWER))

validate-quic: dev  ## minutes: quinn in virtual time compared with profile quic, written to reports/validation-quic.md
	$(BIN)/python -m sojourn_lab.validation.quic

studies: release  ## minutes: the studies, written to reports/fairness.md and reports/home-line.md
	$(BIN)/python -m sojourn_lab.studies.fairness
	$(BIN)/python -m sojourn_lab.studies.home_line

quic-study: dev  ## minutes: quinn and s2n-quic behind six disciplines, written to reports/quic-study.md
	cargo build --release --manifest-path adapters/Cargo.toml --locked -p sojourn-quic-study --target-dir target/adapters
	$(BIN)/python -m sojourn_lab.studies.quic_page

dctcp-study: dev  ## minutes: figures of DCTCP's paper, written to reports/dctcp-study.md
	$(BIN)/python -m sojourn_lab.studies.dctcp

data-centre-study: release  ## minutes: CoDel and others in a leaf-spine, written to reports/codel-in-data-centers.md
	@rm -f out/data-centre-study.json
	$(BIN)/python -m sojourn_lab.studies.codel_in_data_centers_page

measured-lines: dev  ## ten minutes, as root: 30 random lines of sojourn link are measured, into reports/measured-lines.md
	$(BIN)/python -m sojourn_lab.studies.measured_lines

capacity-sweep: dev  ## minutes: sojourn capacity compared with full sweeps, into reports/capacity.md
	$(BIN)/python -m sojourn_lab.studies.capacity_sweep

papers: dev  ## a few minutes: every paper with few seeds and points, into out/papers
	for id in $$($(BIN)/python -c "from sojourn_lab.papers import ids; print(*ids())"); do \
	    $(BIN)/sojourn paper run $$id --quick --out out/papers || exit 1; done

papers-full: release  ## tens of minutes: every paper in full, its pages and figures into reports/papers
	$(BIN)/python -m sojourn_lab.reports.papers

papers-live: release  ## over an hour, as root: the testbeds of two papers on real packets, into reports/papers
	$(BIN)/python -m sojourn_lab.reports.papers --live

scorecards: release  ## ten minutes: the scorecards of RFC 7928, written to reports/scorecards
	$(BIN)/python -m sojourn_lab.reports.scorecards

recommendations: release  ## hours: answers of recommend for twelve lines, ten seeds each, in reports/recommendations
	$(BIN)/python -m sojourn_lab.studies.recommendations --seeds 10

coverage: dev  ## minutes: how often 95 % intervals hold, over 1,000 seeds under two disciplines
	$(BIN)/python -m sojourn_lab.reports.interval_coverage

mutants:  ## hours: mutation testing of the algorithms; FILE=..., SHARD=0/4: reports/mutation.md
	cargo mutants --version >/dev/null 2>&1 || cargo install cargo-mutants --locked
	PYTHONPATH=lab $(PYTHON) -m sojourn_lab.mutation.rust $(FILE) $(if $(SHARD),--shard $(SHARD))

mutants-python: .venv/dev .venv/lab  ## minutes: mutation testing in Python, MODULE=recommendation: reports/mutation.md
	$(BIN)/python -c "import mutmut" 2>/dev/null || $(BIN)/python -m pip install --quiet "mutmut>=3.8,<4"
	$(BIN)/python -m sojourn_lab.mutation.python $(MODULE)

instructions: build  ## CPU instructions per packet and per packet-hop (callgrind), compared with those recorded
	$(BIN)/python -m sojourn_lab.speed.instructions

instructions-links:  ## minutes: CPU instructions of a packet through a link, for every discipline
	PYTHONPATH=lab $(PYTHON) -m sojourn_lab.speed.instructions --links

cachegrind: build  ## cache misses and mispredicted branches per packet-hop of small topologies
	$(BIN)/python -m sojourn_lab.speed.instructions --cache
