# One short command for each job, the same on a laptop and in CI. Each does its own set-up on a fresh clone.
#
# PYTHON=python3.12   the Python that .venv is made with (3.11 or later; found on the PATH when not given)
# ARGS='...'          handed on to the command: make test ARGS='-m "not slow" tests/test_store.py'

export PYTHON
BIN := .venv/bin

.PHONY: help demo test lint bench gpu generate environments linters setup setup-demo clean
.DEFAULT_GOAL := help

help: ## Says what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

demo: setup-demo ## Trains on handwritten digits, to be watched in a browser
	@$(BIN)/jaxobs demo $(ARGS)

# What is measured is measured alone, as is what makes a machine busy by itself: twenty programs behind one Prometheus. The
# other tests mostly wait for processes of their own: three at a time on two cores.
test: setup lint environments linters ## Lints, then runs all tests
ifdef ARGS
	@$(BIN)/python -m pytest $(ARGS)
else
	@$(BIN)/python -m pytest tests/test_benchmarks.py
	@$(BIN)/python -m pytest -n 3 --dist loadfile --ignore=tests/test_benchmarks.py --ignore=tests/test_alerts_live.py
	@$(BIN)/python -m pytest tests/test_alerts_live.py
endif

lint: setup ## Style, types, floors, and whether what is generated is fresh
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/jaxobs generate all --check

bench: setup ## Measures what jaxobs costs
	@$(BIN)/python -m benchmarks $(ARGS)

gpu: setup ## Checks jaxobs on this machine's NVIDIA GPU, and writes docs/gpu.md
	@$(BIN)/python -m tools.gpu_check --markdown docs/gpu.md $(ARGS)

generate: setup ## Writes anew what is generated
	@$(BIN)/jaxobs generate all

environments: setup ## Makes an environment for each JAX version of the tests' matrix
	@$(BIN)/python -m tools.environments

linters: ## Builds the linters of rules and dashboards with Go
	@tools/linters

setup: ## Makes .venv with all that linting and the tests need
	@tools/setup test

setup-demo:
	@tools/setup demo

clean: ## Removes what was built, .venv, .venvs and .tools too
	rm -rf .venv .venvs .tools build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
