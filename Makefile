# Everything happens in .venv, made on first use with PYTHON (3.11 or newer) and made anew when pyproject.toml changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help install web demo test quick hostile check lint types layers docs docs-check bench train-embeddings format wheel sbom clean

help:
	@echo "make demo     install, index this repository, show what it knows"
	@echo "make test     run the tests, on all cores"
	@echo "make quick    run most of them, in a minute"
	@echo "make hostile  run the attacks at full size: an hour"
	@echo "make check    format, lint, types, layers, docs, tests: the one gate"
	@echo "make bench    measure (PARTS='syntax …' for some of it)"
	@echo "make train-embeddings  make the models again: minutes with a GPU, hours without"
	@echo "make web      make the script of the pages anew (needs node)"
	@echo "make docs     write the generated parts of the docs"
	@echo "make format   format and fix what can be fixed"
	@echo "make wheel    build the wheel into dist/"
	@echo "make sbom     list what it is made of, as CycloneDX, in dist/sbom.json"
	@echo "make clean    remove everything that make made"

install: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "cq needs Python 3.11 or newer; '$(PYTHON)' is not: try make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "installing into $(VENV)"
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --editable '.[dev]'
	@touch $@

web: $(STAMP)
	@cd web && npm ci --ignore-scripts --no-audit --no-fund --silent && npm run --silent check && npm run --silent build

demo: $(STAMP)
	@echo "== cq index"
	@$(BIN)/cq index --root .
	@echo
	@echo "== cq status"
	@$(BIN)/cq status --root .
	@echo
	@echo "== cq search find_files"
	@$(BIN)/cq search find_files --root .
	@echo
	@echo "== cq calls find_files"
	@$(BIN)/cq calls find_files --root . --limit 5
	@echo
	@echo "== cq impact find_files"
	@$(BIN)/cq impact find_files --root . --limit 5
	@echo
	@echo "== cq q 'entity=function has=\"await \$$X\"'"
	@$(BIN)/cq q 'entity=function has="await $$X"' --root . --limit 5
	@echo
	@echo "== cq find 'which files changed since the last listing'"
	@$(BIN)/cq find 'which files changed since the last listing' --root . --limit 3
	@echo
	@echo "== cq neighborhood find_files --slices callers,callees,tests"
	@$(BIN)/cq neighborhood find_files --slices callers,callees,tests --root .
	@echo
	@echo "== cq validate"
	@$(BIN)/cq validate --root .

# The compiler that some tests ask is fetched first; without it they are skipped, and the line says why.
test: $(STAMP)
	@$(BIN)/cq doctor --install typescript >/dev/null || echo "the tests that ask TypeScript are skipped" >&2
	@$(BIN)/python -m pytest -n auto --dist worksteal -m "not alone and not full"
	@$(BIN)/python -m pytest -m "alone and not full"

quick: $(STAMP)
	@$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not alone and not full"

hostile: $(STAMP)
	@$(BIN)/python -m pytest -m full tests/hostile

check: lint types layers docs-check test

lint: $(STAMP)
	@$(BIN)/ruff format --quiet --check . || { echo "not formatted: run make format" >&2; exit 1; }
	@$(BIN)/ruff check --quiet .

types: $(STAMP)
	@$(BIN)/basedpyright

layers: $(STAMP)
	@$(BIN)/lint-imports --no-cache --no-logo

docs: $(STAMP)
	@$(BIN)/python docs/generate.py

docs-check: $(STAMP)
	@$(BIN)/python docs/generate.py --check

bench: $(STAMP)
	@$(BIN)/python -m bench $(PARTS)

# The manifest pins what is fetched; the pairs stay in the cache. Needs torch and tokenizers beside cq itself.
TRAINING ?= $(HOME)/.cache/cq-training
train-embeddings: export CQ_TRAINING_CACHE = $(TRAINING)
train-embeddings: $(STAMP)
	@$(PIP) install torch tokenizers
	@$(BIN)/python -m training.fetch
	@$(BIN)/python -m training.pairs $(TRAINING)/pairs.tsv.xz $(TRAINING)/sets.msgpack
	@$(BIN)/python -m training.tokens $(TRAINING)/pairs.tsv.xz $(TRAINING)/sets.msgpack $(TRAINING)/tokens.xz
	@$(BIN)/python training/train.py $(TRAINING)/tokens.xz $(TRAINING)/weights
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m training.late $(TRAINING)/tokens.xz $(TRAINING)/weights
	@$(BIN)/python -m training.verbs $(TRAINING)/pairs.tsv.xz $(TRAINING)/weights
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m training.blend $(TRAINING)/weights $(TRAINING)/sets.msgpack django,tokio,rxjs,nest 60
	@$(BIN)/python -m training.install $(TRAINING)/weights

format: $(STAMP)
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .

wheel: $(STAMP)
	@$(PIP) wheel --no-deps --wheel-dir dist .

sbom: $(STAMP)
	@mkdir -p dist
	@$(BIN)/python packaging/sbom.py dist/sbom.json

clean:
	@rm -rf $(VENV) build dist bench/results .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find src tests bench docs -name __pycache__ -type d -prune -exec rm -rf {} +
