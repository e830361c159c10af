# Everything a developer types. `make test` is the one gate: the same here and in CI.

CARGO ?= cargo

# A gate builds from scratch, where the bookkeeping for the next build and for debuggers only costs.
export CARGO_INCREMENTAL ?= 0
export CARGO_PROFILE_DEV_DEBUG ?= 0

.PHONY: all quick test lint fmt unit built study operate tools doc static deb lab-static bench baseline chaos soak campaign check-hardened check-exclusion check-quorum golden clean

all: test

quick: ## While you work, in a minute or two: units, golden scripts, the command line
	$(CARGO) test --locked -p doyen-core
	$(CARGO) test --locked -p doyen-sim -p doyen-check -p doyen-report -p doyen-lab --lib
	$(CARGO) test --locked -p doyen --lib --bins --test cli

# What cannot be tested on a machine is appended to a file, which is printed where the output ends.
export SKIPPED_TESTS = $(abspath $(BUILT))/skipped-tests
FORGET_SKIPS = mkdir -p "$(BUILT)" && rm -f "$(SKIPPED_TESTS)"
SHOW_SKIPS = test ! -s "$(SKIPPED_TESTS)" || { echo; echo "Not everything could be tested on this machine:"; sort -u "$(SKIPPED_TESTS)"; echo; }

# Packages are fetched while clippy works.
test:
	@$(FORGET_SKIPS)
	$(MAKE) --jobs=2 lint tools
	@$(MAKE) doc unit; ended=$$?; $(SHOW_SKIPS); exit $$ended
	@echo "All checks passed."

lint: ## Formatting, and clippy with warnings denied
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --workspace --all-targets --all-features --locked -- -D warnings
	$(CARGO) clippy -p doyen --no-default-features --locked -- -D warnings

# Without root or without `ip` the tests of a cut network skip themselves, and say so; so do those of the balancers, of
# Prometheus, of the readers of lease files and of the lab in a browser, and without `nft` a benchmark.
TOOLS = ip:iproute2 arping:iputils-arping curl:curl nft:nftables haproxy:haproxy nginx:nginx-light openssl:openssl sqlite3:sqlite3 python3:python3 cc:gcc strace:strace chromium:chromium

# A new machine knows no packages until it has asked for their lists, once.
FETCH = updated=; fetch() { "$$@" && return; test -z "$$updated" || return 1; updated=1; test "$$(id -u)" = 0 && apt-get update && "$$@"; }

tools: ## What tests and benchmarks need besides Rust: namespaces, lost datagrams, balancers, Prometheus, what examples are written in, a browser
	@$(FETCH); for tool in $(TOOLS); do \
	    command -v $${tool%%:*} > /dev/null \
	        || { test "$$(id -u)" = 0 && fetch apt-get install -y --no-install-recommends $${tool##*:}; } \
	        || echo "$${tool##*:} cannot be installed here: what needs it will be skipped"; \
	done; \
	command -v promtool > /dev/null || test -x $(UNPACKED)/promtool \
	    || { mkdir -p $(UNPACKED) && cd $(UNPACKED) && fetch apt-get download prometheus && $(UNPACK); } \
	    || echo "prometheus cannot be downloaded here: what needs it will be skipped"

# Two programs of the package, which would start a service if it were installed.
UNPACKED = $(BUILT)/tools
UNPACK = dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x --strip-components=3 ./usr/bin/prometheus ./usr/bin/promtool && rm prometheus_*.deb

# The test of upgrades builds an earlier program, on all processors: it comes first, alone. Then tests of clusters mostly wait, so
# the tests that compute run beside them, at a priority at which they delay nothing.
STUDY = $(BUILT)/study.log
unit: tools lab-static ## Every test: units, properties, golden scripts, scenarios, the command line, real clusters, the lab in a browser
	$(CARGO) test --workspace --all-features --locked --test it compatibility::
	$(MAKE) built
	@setsid nice -n 19 $(MAKE) study > $(STUDY) 2>&1 & study=$$!; trap 'kill -- -$$study' INT TERM; \
	    $(MAKE) operate; operate=$$?; \
	    wait $$study; study=$$?; cat $(STUDY); test $$operate = 0 && test $$study = 0

# With the examples, which tests run.
built:
	$(CARGO) test --workspace --all-features --locked --no-run

# Parts of the tests, from one build. (The wasm engine has no tests, and its exports replace functions of the C library.)
PART = $(CARGO) --config 'target."cfg(all())".runner = ["$(CURDIR)/.ci/only", "$(1)"]' \
    test --workspace --exclude doyen-lab-wasm --all-features --locked --lib --bins --tests -- $(2)

study: built ## The tests that compute: algorithms, simulator, checker, reports; and what the documentation shows
	$(call PART,!doyen)
	$(CARGO) test --workspace --all-features --locked --doc

# These mostly wait.
TEST_THREADS ?= 5
operate: built ## The tests of the program: nodes, clusters, the command line, the lab in a browser
	RUST_TEST_THREADS=$(TEST_THREADS) $(call PART,doyen,--skip compatibility::)

doc: ## The documentation builds without a warning
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --all-features --no-deps --locked

# Published programs; PROFILE=release builds faster. `make deb STATIC=1` packages the static program, which needs no library.
PROFILE ?= dist
MUSL = $(shell uname -m)-unknown-linux-musl
BUILT = $(or $(CARGO_TARGET_DIR),target)
OUTPUT = $(if $(filter dev,$(PROFILE)),debug,$(PROFILE))

# The TLS of the client has a part in C, which needs a compiler and nothing of a library.
static: export CC_$(subst -,_,$(MUSL)) ?= cc
static: ## A program that needs no library: TARGET/PROFILE/doyen
	rustup target add $(MUSL)
	$(CARGO) build --locked --profile $(PROFILE) --target $(MUSL) -p doyen --bin doyen
	@! ldd $(BUILT)/$(MUSL)/$(OUTPUT)/doyen 2>&1 | grep '=>' || { echo "it is not static"; exit 1; }
	$(BUILT)/$(MUSL)/$(OUTPUT)/doyen --version

deb: $(if $(STATIC),static) ## A Debian package in target/debian
	$(if $(STATIC),,$(CARGO) build --locked --profile $(PROFILE) -p doyen --bin doyen)
	packaging/debian/build $(BUILT)/$(if $(STATIC),$(MUSL)/)$(OUTPUT)/doyen $(BUILT)/debian

# The simulator half of the lab as a folder for any file server: no program behind it, the engine runs in the browser.
LAB = $(BUILT)/lab-static
lab-static: ## The lab without a server: TARGET/lab-static
	rustup target add wasm32-unknown-unknown
	$(CARGO) build --locked --profile wasm --target wasm32-unknown-unknown -p doyen-lab-wasm
	rm -rf $(LAB) && mkdir -p $(LAB)/web
	cp -R web/. $(LAB)/web
	test ! -f $(LAB)/web/index.html || mv $(LAB)/web/index.html $(LAB)
	cp $(BUILT)/wasm32-unknown-unknown/wasm/doyen_lab_wasm.wasm $(LAB)/web/engine.wasm
	@echo "$(LAB): the engine has $$(wc -c < $(LAB)/web/engine.wasm) bytes, $$(gzip -9 -c $(LAB)/web/engine.wasm | wc -c) compressed"

fmt: ## Rewrite the formatting
	$(CARGO) fmt --all

# An earlier program takes turns with this one where datagrams are lost, five runs each: an hour. `make bench BASELINE=` leaves
# it out, `BASELINE=REVISION` takes another one, and the variable DOYEN_BASELINE names a program by its absolute path.
BASELINE ?= f05792a
EARLIER = $(CURDIR)/target/baseline/$(BASELINE)

bench: tools baseline ## Speed and memory beside others in the same run, then a real cluster: failover, hand-over, loss, idling; then the lab
	$(CARGO) bench --locked -p doyen-sim --bench simulator
	$(CARGO) bench --locked -p doyen-check --bench checker
	DOYEN_BASELINE=$${DOYEN_BASELINE-$$(ls $(EARLIER)/release/doyen 2> /dev/null)} $(CARGO) bench --locked -p doyen --bench cluster
	$(CARGO) bench --locked -p doyen --bench lab

baseline: ## The earlier program that `make bench` measures, built from the history of the repository
	@if test -z "$(BASELINE)" || test -n "$$DOYEN_BASELINE" || test -x $(EARLIER)/release/doyen; then :; \
	elif ! git cat-file -e "$(BASELINE)^{commit}"; then \
	    echo "SKIPPED: the history does not hold $(BASELINE): nothing is measured beside this program"; \
	else \
	    mkdir -p $(EARLIER)/source && git archive $(BASELINE) | tar -x -C $(EARLIER)/source && cd $(EARLIER)/source \
	        && $(CARGO) build --release --locked -p doyen --bin doyen --target-dir $(EARLIER); \
	fi

# The same tests as in `make test`, where each kind has one round and the program is not optimised. Prints a table.
ROUNDS ?= 50
chaos: tools ## Everything that is killed, stopped or paused under `doyen run`, hooks and locks, and every attack on a node, many rounds of each
	@echo "| what happens | rounds | two copies | until the next copy, median ms | p95 | worst | stalls of the machine |"
	@echo "|---|---|---|---|---|---|---|"
	@$(FORGET_SKIPS); CHAOS_ROUNDS=$(ROUNDS) $(CARGO) test --release --quiet --locked --no-fail-fast -p doyen --test it -- run:: hook_examples:: \
	    fenced:: lock:: balancers:: prometheus:: systemd:: hostile:: connections:: disk:: states:: processes:: starts:: --nocapture --test-threads=1 > $(BUILT)/chaos.log 2>&1; ended=$$?; \
	    grep -o '| .* |$$' $(BUILT)/chaos.log; test $$ended = 0 || cat $(BUILT)/chaos.log; $(SHOW_SKIPS); test $$ended = 0

soak: tools ## Ten minutes of random clicking in the lab
	SOAK_SECONDS=600 $(CARGO) test --locked -p doyen --test it random_clicking -- --nocapture

campaign: ## A million random runs over all algorithms, of the quorum alone and with faults that last; what misses each rule
	$(CARGO) build --release --locked -p doyen
	$(BUILT)/release/doyen check --random --runs 1000000 --seed 1
	$(BUILT)/release/doyen check --random --algorithm quorum --runs 1000000 --seed 2
	$(BUILT)/release/doyen check --random --algorithm quorum --lasting --runs 1000000 --seed 3
	$(CARGO) test --release --locked -p doyen-check --all-features --test it -- --ignored --nocapture

# Hardened mode is explored with three members, and with four where that takes less than five minutes. Each line prints
# what was covered; the first that finds something or reaches its limit ends it. The two roll calls send n² messages and
# are not given a crash and a restart in one run. The table in docs/checking.md says how much there is to explore.
FRUGAL = bully modified-bully ring-list ring-resilient chang-roberts
ROLL_CALLS = ring-active-list ring-all-ids
BULLIES = bully modified-bully
EXPLORE = set -e; explore() { $(BUILT)/release/doyen check --mode hardened --max-time 300s --algorithm "$$@"; echo; }

check-hardened: ## Every hardened algorithm explored: crash and restart, loss, duplication, suspicion
	$(CARGO) build --release --locked -p doyen
	@$(EXPLORE); for algorithm in $(FRUGAL) $(ROLL_CALLS); do \
	    explore $$algorithm --members 3 --fifo --initiators all; \
	    explore $$algorithm --members 3 --fifo --crashes 2; \
	    explore $$algorithm --members 3 --fifo --leader 3 --duplications 1; \
	    explore $$algorithm --members 3 --fifo --leader 3 --suspicions 1; \
	    explore $$algorithm --members 3 --fifo --leader 3 --crashes 1 --losses 1; \
	    explore $$algorithm --members 3 --fifo --leader 3 --crashes 1 --duplications 1; \
	    explore $$algorithm --members 3 --fifo --leader 3 --crashes 1 --suspicions 1; \
	    explore $$algorithm --members 3 --fifo --leader 2 --dead 3 --restarts 1; \
	    explore $$algorithm --members 3 --fifo --initiators 1,2 --dead 3 --restarts 1; \
	    explore $$algorithm --members 4 --fifo --leader 4 --losses 1; \
	    explore $$algorithm --members 4 --fifo --leader 4 --duplications 1; \
	    explore $$algorithm --members 4 --fifo --leader 4 --suspicions 1; \
	done
	@$(EXPLORE); for algorithm in $(FRUGAL); do \
	    explore $$algorithm --members 3 --fifo --leader 3 --crashes 1 --restarts 1; \
	    explore $$algorithm --members 4 --fifo --initiators all; \
	    explore $$algorithm --members 4 --fifo --leader 3 --dead 4 --restarts 1; \
	done
	@$(EXPLORE); for algorithm in $(BULLIES); do \
	    explore $$algorithm --members 3 --unordered --leader 3 --crashes 1 --restarts 1; \
	    explore $$algorithm --members 4 --fifo --leader 4 --crashes 1; \
	done

# Without faults every algorithm of mutual exclusion keeps its promises; beyond that, each what it claims to tolerate. The
# lines are those of the table in docs/checking.md, which says how much there is to explore; none takes five minutes.
check-exclusion: ## Every algorithm of mutual exclusion explored, with three members and with four
	$(CARGO) build --release --locked -p doyen
	@set -e; explore() { $(BUILT)/release/doyen check --max-time 300s --algorithm "$$@"; echo; }; \
	explore centralised --members 4 --requests all --repeat 3; \
	explore lamport --members 3 --requests all; \
	explore lamport --members 4 --requests 1,2; \
	explore ricart-agrawala --members 3 --requests all --repeat 3 --fifo; \
	explore ricart-agrawala --members 4 --requests 1,2,3; \
	explore ricart-agrawala --mode hardened --members 3 --requests all --duplications 2; \
	explore ricart-agrawala --mode hardened --members 3 --requests all --repeat 2 --duplications 1; \
	explore ricart-agrawala --mode hardened --members 4 --requests 1,2,3 --duplications 1; \
	explore ricart-agrawala --mode hardened --members 4 --requests all; \
	explore token-ring --members 4 --requests all --repeat 3; \
	explore maekawa --members 3 --requests all --repeat 3; \
	explore maekawa --members 4 --sets grid --requests all; \
	explore maekawa --members 4 --sets grid --requests 1,2,3 --repeat 2; \
	explore raymond --members 4 --requests all --repeat 3; \
	explore raymond --members 4 --requests all --repeat 2 --tree line; \
	explore raymond --members 5 --requests all --tree binary; \
	explore suzuki-kasami --members 3 --requests all --repeat 2; \
	explore suzuki-kasami --members 4 --requests all; \
	explore voting --members 3 --requests 1,2 --expiries 3; \
	explore voting --members 4 --requests 1,2 --expiries 1; \
	explore token-recovery --members 3 --requests all --crashes 2 --property one-inside,one-token; \
	explore token-recovery --members 3 --requests 1,2 --losses 1 --campaigns 2 --property one-inside,one-token; \
	explore token-recovery --members 4 --requests 1,2 --crashes 2 --property one-inside,one-token; \
	explore token-recovery --members 4 --requests 1,2 --losses 1 --campaigns 2 --property one-inside,one-token

# The voting rules to the end, and sessions with one replacement; the rest as far as ten minutes and 8 GB go for each, which
# may be all of two hours. The table in docs/quorum.md says what came of it.
check-quorum: ## The quorum explored: votes, sessions, leases, the whole
	$(CARGO) bench --locked -p doyen-check --bench explore_quorum -- seconds=600 megabytes=8000

golden: ## Rewrite the golden files; then read the diff
	UPDATE_GOLDENFILES=1 $(CARGO) test --locked -p doyen-core --test scripts
	UPDATE_GOLDENFILES=1 $(CARGO) test --locked -p doyen-sim --lib the_page_has_the_same_colours
	TRYCMD=overwrite $(CARGO) test --locked -p doyen --test cli
	UPDATE_GOLDENFILES=1 $(CARGO) test --locked -p doyen --test it the_description
	UPDATE_GOLDENFILES=1 $(CARGO) test --locked -p doyen --lib config::tests::the_example_file

clean:
	$(CARGO) clean
