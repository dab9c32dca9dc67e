# One short command for each job, the same on a laptop and in CI. Each does its own set-up on a fresh clone.
#
# PYTHON=python3.12   the Python that .venv is made with (3.11 or later; found on the PATH when not given)
# ARGS='...'          handed on to the command: make test ARGS='tests/state/test_store.py -k reset'

export PYTHON
# Tests start hundreds of processes that import JAX: with its bytecode kept that takes a third of the time.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin

.PHONY: test-torch-xla help demo test test-all ci lint bench trust gpu docs site pictures generate chart release environments linters setup setup-demo clean
.DEFAULT_GOAL := help

help: ## Says what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

demo: setup-demo ## Trains on handwritten digits, to be watched in a browser
	@$(BIN)/jaxobs demo $(ARGS)

test: setup ## Lint, types, floors and the correctness tests on the JAX of .venv: run it before every commit
ifdef ARGS
	@$(BIN)/python -m pytest $(ARGS)
else
	@$(BIN)/python -m tools.checks lint tests
endif

test-all: setup ## All that `make test` leaves out: every test-* below but the last, once. CI runs both
	@$(BIN)/python -m tools.checks rest

# Markers of the same names select them, but for `slow` and `zoo`: see pyproject.toml.
PARTS := versions alerts lives linters docs browser ray slow zoo
.PHONY: $(PARTS:%=test-%)
test-versions: ## Counts and causes under every supported JAX: after a change in jaxobs/internals or jaxobs/reasons
test-alerts: ## Every alert against programs, Prometheus and Alertmanager: after a change in jaxobs/ops/monitoring
test-lives: ## Every alert against ordinary lives and against deaths, in promtool: after the same
test-linters: ## Rules, dashboards and prose under their linters, built with Go: after the same, or in a text for users
test-docs: ## The docs as a site, with warnings as errors: after a change in a page
test-browser: ## The live page and the report in Chromium: after a change in jaxobs/web or jaxobs/views
test-ray: ## Ray Serve: after a change in jaxobs/instruments
test-slow: ## Tests that take seconds of a processor: whole programs, jobs of several processes, the examples of the docs
test-zoo: ## Real programs of many projects, against what someone who knows them would say: see docs/zoo.md
$(PARTS:%=test-%): test-%: setup
	@$(BIN)/python -m tools.checks $*

test-torch-xla: setup ## PyTorch/XLA on the CPU, 7 GB to install: after a change in jaxobs/sources/torch_xla.py. Not in test-all
	@$(BIN)/python -m tools.environments torch-xla
	@$(BIN)/python -m pytest -m torch_xla

ci: ## As CI: installs what the tests need (Debian, root), then `make test` in a fresh folder and `make test-all`
	@.ci/run

lint: setup ## Style, types, floors, and whether what is generated is fresh
	@$(BIN)/python -m tools.checks lint

bench: setup ## Measures what jaxobs costs: fails if a bound is exceeded or not settled, or something got slower
	@$(BIN)/python -m benchmarks --check $(ARGS)

trust: setup ## Runs hostile programs, readers and attacks on servers, and prints what held: more than half an hour, see docs/trust.md
	@$(BIN)/python -m tools.trust $(ARGS)

gpu: setup ## Checks jaxobs on this machine's NVIDIA GPU, and writes docs/gpu.md
	@$(BIN)/python -m tools.gpu_check --markdown docs/gpu.md $(ARGS)

docs: setup ## Builds the docs as a site, build/site/index.html, searchable offline
	@$(BIN)/python -m mkdocs build --strict

site: setup ## Commits the docs of this version to the local branch gh-pages, next to earlier versions, with a menu
	@export PATH="$(CURDIR)/$(BIN):$$PATH" PYTHONPATH=.; \
	mike deploy --update-aliases $$(python -c 'import jaxobs; print(jaxobs.__version__)') latest && mike set-default latest

pictures: setup ## Draws the docs' pictures whose inputs have changed, with ARGS=--all each: 10 minutes, with Chromium
	@$(BIN)/python -m tools.pictures $(ARGS)

generate: setup ## Writes all generated files
	@$(BIN)/jaxobs generate all
	@$(BIN)/python -m tools.architecture
	@$(BIN)/python -m tools.alert_suites
	@$(BIN)/python -m tools.settings_types

chart: setup ## Builds the Helm chart, the Kustomize bases and Prometheus' files: build/deploy
	@$(BIN)/jaxobs generate kubernetes --out build

release: setup ## Builds wheel, sdist and chart into dist/, and checks them from an empty environment
	@$(BIN)/python -m tools.release

environments: setup ## Makes an environment for each JAX version of the tests' matrix
	@$(BIN)/python -m tools.environments

linters: ## Builds the linters of rules, dashboards and prose
	@tools/linters

setup: ## Makes .venv with all that linting and the tests need
	@tools/setup test

setup-demo:
	@tools/setup demo

clean: ## Removes what was built, .venv, .venvs and .tools too
	rm -rf .venv .venvs .tools build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
