# Every target sets up what it needs in .venv; nothing but Python 3.11 or newer is required.
PYTHON ?= $(shell sh packaging/find-python.sh)
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test test-long check format setup man swarm chaos chaos-replicated power-cut upgrade enlist sealed bench-core bench-memory bench-live bench-ratios bench-clients \
	bench-model bench-commands bench-links bench-networks bench-gateways bench-sites bench-tree bench-replicated bench-pipeline bench-campaign bench-archive bench-streaming bench-quiet clean

demo: $(READY)  ## a real cluster on this machine: one daemon killed, one cut off, one late; all of it judged, and a report
	@sh packaging/bring.sh java
	@rm -rf build/demo
	@$(BIN)/ordercast demo --keep build/demo

# Tests start hundreds of processes: what they import is compiled once, whatever the environment says of bytecode.
test test-long: export PYTHONDONTWRITEBYTECODE =

test: $(READY)  ## all tests, on all cores; those of Spark share one session, in one of the processes
	@sh packaging/bring.sh java network
	$(BIN)/pytest -n auto --dist loadgroup

test-long: $(READY)  ## those that are left out of it: more faults on real hosts, a Spark cluster, kills through Spark (ORDERCAST_KILLS=N)
	@sh packaging/bring.sh java network
	$(BIN)/pytest -n auto --dist loadgroup -m long

check: $(READY)  ## exactly what CI runs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) --no-print-directory test

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

swarm: $(READY)  ## the long hunt: SEEDS=A..B
	$(BIN)/ordercast swarm --seeds $(or $(SEEDS),0..9999)

chaos: $(READY)  ## live nodes on hosts of their own while everything fails: SEED=N SECONDS=T ENGINE=NAME of `ordercast engines`, as root
	$(BIN)/python -m rig.chaos --seed $(or $(SEED),1) --seconds $(or $(SECONDS),60) --engine $(or $(ENGINE),ring)

chaos-replicated: $(READY)  ## replicas and their daemons killed, stopped and cut off, histories judged: SEEDS=A..B SECONDS=T, as root
	$(BIN)/python -m rig.replica_chaos --seeds $(or $(SEEDS),1) --seconds $(or $(SECONDS),120)

power-cut: $(READY)  ## replicas with journals, all killed at once, back in every order, histories judged: ROUNDS=N
	$(BIN)/python -m rig.power_cut --rounds $(or $(ROUNDS),200)

upgrade: $(READY)  ## a cluster that works brought from another version to this one, host by host: FROM=COMMIT
	$(BIN)/python -m rig.upgrade --from $(FROM)

enlist: $(READY)  ## hosts added to and removed from a loaded cluster: ROUNDS=N TRANSPORT=multicast|unicast, as root
	$(BIN)/python -m rig.enlist --rounds $(or $(ROUNDS),20) --transport $(or $(TRANSPORT),multicast)

sealed: $(READY)  ## keys of a loaded cluster changed again and again, then floods by somebody without the key: ROTATIONS=N, as root
	$(BIN)/python -m rig.sealed --rotations $(or $(ROTATIONS),5)
	$(BIN)/python -m rig.sealed --flood

bench-core: $(READY)  ## CPU time of the engine per packet and per message
	$(BIN)/python bench/core.py

bench-memory: $(READY)  ## memory over ten million messages, one member slow; ARGS='--engine adaptive' for the other engine
	$(BIN)/python bench/memory.py $(ARGS)

bench-live: $(READY)  ## live nodes in namespaces beside Corosync and the raw limit (root); ARGS=--quick for a short one
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python -m bench.live --json bench-live.json --plot bench-live.svg $(ARGS)

bench-ratios: $(READY)  ## what a seal, a full trace and the compiled kernel cost or gain, in turns (root): ARGS="--only seal"
	$(BIN)/python -m bench.ratios $(ARGS)

bench-clients: $(READY)  ## clients of daemons: throughput, latency, a thousand clients in a thousand groups
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python -m bench.clients --json bench-clients.json
	$(BIN)/python -m bench.client_crowd --json bench-crowd.json --plot bench-crowd.svg

bench-archive: $(READY)  ## the archive: MB/s written and read, behind a saturated ring, recovery after kill -9
	$(BIN)/python -m bench.archive --json bench-archive.json

bench-quiet: $(READY)  ## how long `ordercast check` takes for eight quiet hours of three nodes
	$(BIN)/python -m bench.quiet

bench-streaming: $(READY)  ## Spark and groups: rows a second through source and sink, age of a row
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[all]'
	$(BIN)/python -m bench.streaming --json bench-streaming.json

bench-commands: $(READY)  ## how long commands take to their first line, and what they import; ARGS=--before REF for another commit beside it
	$(BIN)/python -m bench.commands $(ARGS)

bench-model: $(READY)  ## the paper's model of rotation time and latency against the simulator
	$(BIN)/python bench/model.py

bench-links: $(READY)  ## links against TCP on simulated paths: the paper's Table 4.2 and Figure 4.5
	$(BIN)/python -m bench.links
	$(BIN)/python -m bench.links_shares

bench-networks: $(READY)  ## redundant networks: cost of the layer, the paper's figures, live on limited bridges (root); ARGS=--quick
	$(BIN)/python -m bench.networks --json bench-networks.json $(ARGS)

bench-gateways: $(READY)  ## a network of rings beside one plain ring, live on bridges (root); ARGS=--quick for a short one
	$(BIN)/python -m bench.gateways --json bench-gateways.json $(ARGS)

bench-sites: $(READY)  ## sites: latency along a chain, one site beside a ring, rows on hosts with a switch between (root); ARGS='--only hop,idle'
	$(BIN)/python -m bench.sites
	$(BIN)/python -m bench.sites --alone
	$(BIN)/python -m bench.sites_live $(ARGS)

bench-tree: $(READY)  ## many small groups: trees beside a ring, live on bridges (root); ARGS='--nodes 16 32 64'
	$(BIN)/python -m bench.tree $(ARGS)

bench-tree-scale: $(READY)  ## trees of up to 4,000 hosts, simulated: what a message costs; ARGS='--nodes 64 500'
	$(BIN)/python -m bench.tree_scale $(ARGS)

bench-replicated: $(READY)  ## the replicated dictionary beside PySyncObj's, then a gigabyte for a joiner
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python -m bench.replicated
	$(BIN)/python -m bench.transfer --kill

bench-pipeline: $(READY)  ## verify on 5 and 50 million events, many runs and one, beside check; ARGS='--rows 500M' for more
	@sh packaging/bring.sh java
	$(BIN)/python -m bench.pipeline --json bench-pipeline.json $(ARGS)

bench-campaign: $(READY)  ## a campaign on Spark beside a swarm on the same seeds and cores, five minutes each
	$(BIN)/python -m bench.campaign --json bench-campaign.json $(ARGS)

man: $(READY)  ## manual pages of all commands, in build/man/man1: MANPATH=build/man man ordercast-send
	$(BIN)/ordercast man --out build/man/man1

setup: $(READY)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Ordercast needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) --version 2>&1): try make PYTHON=python3.12" >&2; exit 2; }
	@$(PYTHON) -m venv .venv || { \
		echo "$(PYTHON) cannot make a virtual environment: install its venv module (Debian: python3-venv)" >&2; exit 2; }
	@echo "the environment .venv has $(PYTHON), $$($(PYTHON) --version): make clean setup PYTHON=... takes another"
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev,all]'
	@touch $@

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
