# Everything a developer types. `make test` is the one gate: the same here and in CI.

CARGO ?= cargo

.PHONY: all test lint fmt unit doc bench campaign golden clean

all: test

test: lint unit doc
	@echo "All checks passed."

lint: ## Formatting, and clippy with warnings denied
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --workspace --all-targets --all-features --locked -- -D warnings

unit: ## Every test: units, properties, golden scripts, scenarios, the command line
	$(CARGO) test --workspace --all-features --locked

doc: ## The documentation builds without a warning
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --all-features --no-deps --locked

fmt: ## Rewrite the formatting
	$(CARGO) fmt --all

bench: ## Speed and memory, against the simcore crate in the same run
	$(CARGO) bench --locked -p doyen-sim

campaign: ## A million random runs over all hardened algorithms, and what they covered
	$(CARGO) run --release --locked -p doyen -- check --random --runs 1000000 --seed 1

golden: ## Write the golden files anew; then read the diff
	UPDATE_GOLDENFILES=1 $(CARGO) test --locked -p doyen-core --test scripts
	TRYCMD=overwrite $(CARGO) test --locked -p doyen --test cli

clean:
	$(CARGO) clean
