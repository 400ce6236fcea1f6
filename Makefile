.DEFAULT_GOAL := help
SHELL := /bin/bash

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MODEL ?=
SUITE ?= starter
LIMIT ?=
RUN_ARGS ?=
PYTEST_ARGS ?=
VALUES ?= deploy/helm/proctor/examples/trying-out.yaml
PREPARED ?=
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
IMAGE_TAG ?= $(VERSION)
IMAGES ?= gateway scheduler results worker worker-vllm worker-vllm-cpu
# A folder for JUnit files, one of each of the two runs of `make test`.
REPORTS ?=
# The budget of `make test-api`: some 50,000 cases; `make test` tries some for a minute.
EXAMPLES ?= 100
LIMIT_SECONDS ?= 1800

##@ Use
.PHONY: run up down
run: $(VENV)/.installed ## Evaluate a model: MODEL=… SUITE=… LIMIT=…
	@$(BIN)/proctor try --suite "$(SUITE)" $(if $(MODEL),--model "$(MODEL)") $(if $(LIMIT),--limit "$(LIMIT)") $(RUN_ARGS)

up: $(VENV)/.installed vllm ## Start the local stack and keep it in the foreground
	@$(BIN)/proctor up

down: $(VENV)/.installed ## Stop the local stack
	@$(BIN)/proctor down

##@ Checks
.PHONY: check format format-check lint types architecture audit protos protos-check
check: format-check lint types architecture protos-check docs-check ## Everything that needs no server; all blocking

format: $(VENV)/.installed ## Rewrite code and contracts in the one format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/buf format -w protos
	$(BIN)/djlint services/gateway/pages --reformat --quiet

format-check: $(VENV)/.installed
	$(BIN)/ruff format --check .
	$(BIN)/buf format --diff --exit-code protos
	$(BIN)/djlint services/gateway/pages --check --quiet

lint: $(VENV)/.installed ## Ruff and buf
	$(BIN)/ruff check .
	$(BIN)/buf lint protos

types: $(VENV)/.installed ## mypy --strict
	$(BIN)/mypy

architecture: $(VENV)/.installed ## Import contracts, size budgets, paths that texts name
	$(BIN)/lint-imports
	$(BIN)/python tools/house.py

audit: $(VENV)/.installed ## Known vulnerabilities of the pinned versions
	$(BIN)/python .ci/audit.py $(AUDIT_OPTIONS) constraints.txt

protos: $(VENV)/.installed ## Generate proctor/v1 from protos/
	$(BIN)/python protos/generate.py

protos-check: $(VENV)/.installed ## The generated code is current, and no contract breaks since protos/baseline
	$(BIN)/python protos/generate.py --check
	@if [ -z "$$(git rev-parse -q --verify origin/main)" ]; then echo "No origin/main to compare the contracts with."; \
	elif [ "$$(git show origin/main:protos/baseline 2>/dev/null)" = "$$(cat protos/baseline)" ]; then \
		$(BIN)/buf breaking protos --against '.git#ref=origin/main,subdir=protos'; \
	else echo "The contracts restart by decision $$(cat protos/baseline); the next change is compared again."; fi

.PHONY: schema
schema: $(VENV)/.installed ## Generate schema.sql of each service from its migrations
	$(BIN)/python -m tools.schema

.PHONY: docs docs-check
docs: $(VENV)/.installed ## Generate docs/reference and the tables of defaults from the code
	$(BIN)/python docs/generate_reference.py
	$(BIN)/python deploy/helm/values_reference.py
	$(BIN)/python deploy/helm/dashboards.py

docs-check: $(VENV)/.installed
	$(BIN)/python docs/generate_reference.py --check
	$(BIN)/python deploy/helm/values_reference.py --check
	$(BIN)/python deploy/helm/dashboards.py --check

.PHONY: assets
assets: $(VENV)/.installed ## Fetch the vendored scripts of the pages again (needs npm)
	$(BIN)/python .ci/vendored_assets.py

##@ Tests
.PHONY: test test-thorough test-unit test-contract test-integration test-e2e test-chaos test-api bench
test: test-without-vllm test-with-vllm ## All tests but the thorough ones; they start what they need
report = $(if $(REPORTS),--junitxml="$(REPORTS)/$@.xml")
# Building all images takes longer than all other tests: `make test-images`.
without_images = --ignore=tests/e2e/deploy/test_images.py
files_at_a_time = --processes

.PHONY: test-without-vllm test-with-vllm
test-without-vllm: $(VENV)/.installed
# Those of contracts wait a third of their time: first, while vLLM is installed beside them.
	$(BIN)/pytest -m "not thorough" tests/contract tests/unit $(files_at_a_time) 5 $(report) $(PYTEST_ARGS)

test-with-vllm: $(VENV)/.installed vllm
# They wait more than half of their time.
	$(BIN)/pytest -m "not thorough" tests/chaos tests/e2e tests/integration $(without_images) $(files_at_a_time) 6 $(report) $(PYTEST_ARGS)

test-thorough: $(VENV)/.installed vllm ## The rest: escapes in every engine, pages in every look, more kills, the real model
	$(BIN)/pytest -m thorough tests $(without_images) $(files_at_a_time) 4 $(report) $(PYTEST_ARGS)

test-unit: $(VENV)/.installed ## Seconds, no servers
	$(BIN)/pytest -q tests/unit

test-contract: $(VENV)/.installed ## Protos, SQL, suites, documentation, parity
	$(BIN)/pytest -q tests/contract

test-integration: $(VENV)/.installed vllm ## Real Postgres, NATS, vLLM
	$(BIN)/pytest -q tests/integration

test-e2e: $(VENV)/.installed vllm ## The whole flow
	$(BIN)/pytest -q tests/e2e $(without_images)

test-chaos: $(VENV)/.installed vllm ## Faults, then counts
	$(BIN)/pytest -q tests/chaos

# An environment of its own for each Python, beside that of `make install`.
OTHER := .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')
# Processes, files and time: what a version of Python does in its own way.
OTHER_TESTS ?= $(addprefix tests/unit/,common stack worker/execution worker/sandboxes worker/verification \
	scheduler/batches scheduler/rollouts scheduler/suites/rows scheduler/uploads wire)
# One upload by the command line, one run with its comparison, one rollout, on the stack that they share.
whole_flow = $(addprefix tests/e2e/,$(addprefix datasets/test_dataset_runs.py::test_, \
	command_line_uploads_once_runs_shows_and_deletes targets_are_scored_ranked_and_compared_by_the_data_set) \
	runs/test_rollouts.py::test_a_model_works_on_tasks_and_is_judged)

.PHONY: install-python test-python
install-python: $(OTHER)/.installed

test-python: $(OTHER)/.installed ## On another Python what depends on it, and the whole flow: PYTHON=… OTHER_TESTS=…
# Its failures are remembered beside those of `make test`.
	$(OTHER)/bin/pytest -q -m "not thorough" $(OTHER_TESTS) $(whole_flow) $(files_at_a_time) 3 -o cache_dir=$(OTHER)/.pytest_cache $(PYTEST_ARGS)

$(OTHER)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(OTHER)
	$(call install_into,$(OTHER),test)
	@touch $@

.PHONY: parity test-escapes test-cluster test-images images
parity: $(VENV)/.installed ## Tasks of lm-evaluation-harness evaluated there and here, some 250, as a table; some 20 minutes
	$(BIN)/pytest -q -m "" tests/contract/suites/test_field_parity.py

test-escapes: $(VENV)/.installed ## Attempts to escape, to abuse and to cheat, as a table by engine
	$(BIN)/python -m tests.integration.worker.sandboxes.attempt_table

test-cluster: $(VENV)/.installed ## The chart on the cluster of KUBECONFIG: VALUES=… MODEL=… PREPARED=…; not part of `test`
	@VALUES="$(VALUES)" MODEL="$(MODEL)" PREPARED="$(PREPARED)" bash deploy/test_cluster

test-images: $(VENV)/.installed ## The images, built by buildah without a registry, complete a run; as root, with runc and debootstrap
	$(BIN)/pytest -q -s tests/e2e/deploy/test_images.py

images: ## Images by Docker, with the tag IMAGE_TAG (default: the version): IMAGES="gateway scheduler …" (default: all)
	@for image in $(IMAGES); do \
		case $$image in \
			worker-vllm*) set -- --file Dockerfile.vllm --build-arg "VARIANT=$${image#worker-vllm}" ;; \
			*) set -- --build-arg "SERVICE=$$image" ;; \
		esac; \
		docker build "$$@" --build-arg VERSION="$(VERSION)" --build-arg REVISION="$$(git rev-parse HEAD)" --tag "proctor-$$image:$(IMAGE_TAG)" . || exit 1; \
	done

test-api: $(VENV)/.installed ## Schemathesis over the whole API: EXAMPLES=… per operation and phase, LIMIT_SECONDS=… at most
	PROCTOR_TEST_API_EXAMPLES=$(EXAMPLES) PROCTOR_TEST_API_SECONDS=$(LIMIT_SECONDS) \
		$(BIN)/pytest -q tests/e2e/api -o log_cli=true -o log_cli_level=INFO

bench: $(VENV)/.installed vllm ## Cost per sample, rate limits, comparisons, leaderboards, engine, parity: as tables
	$(BIN)/python -m tests.bench

##@ Release
.PHONY: wheel release-check
wheel: $(VENV)/.installed ## The wheel, in dist
	$(BIN)/python -m build --wheel --outdir dist .

release-check: $(VENV)/.installed ## All of a release that needs no registry: builds, installs and tries it
	bash .ci/release

##@ Set-up
.PHONY: install vllm clean help
# uv takes 20 s of CPU for what takes pip 130 s; where it cannot be had or cannot do it, pip does it.
define install_into
	$(1)/bin/pip install --quiet --disable-pip-version-check -c constraints.txt pip uv \
		|| $(1)/bin/pip install --quiet --disable-pip-version-check -c constraints.txt pip
	$(1)/bin/python -P proctor/stack/vllm/uv.py $(1) -c constraints.txt -e '.[$(2)]'
endef

install: $(VENV)/.installed ## The services' virtual environment

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(call install_into,$(VENV),dev)
	@touch $@

vllm: $(VENV)/.installed ## vLLM's virtual environment and the small model
	@$(BIN)/proctor vllm install

clean: ## Remove the virtual environments (data of runs stays in .proctor)
	rm -rf $(VENV) .venv-*

help: ## This text
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*##/ {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
