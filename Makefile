# make demo   sets everything up, profiles BERT-base on this machine, and draws it
# make test   sets everything up and runs the whole test suite in two processes (WORKERS=n for more); test-all with all
#             examples of every property, where test takes 10, and the tests that record what others record a part of
# make quick  what a developer needs between two edits: check, and the tests that record no whole step
# make check  lint, format and types
# make cells  profiles every model on every backend, tiny and base, and writes docs/cells.md and docs/one-layer.md
#             (takes hours; goes on where it was broken off)
# make reference  profiles each row of each preset on two backends, for profiles/ (an hour or more; what is there stays)
# make plants measures pairs of runs with a planted cause where they are missing, and says how often it is found (2 hours)
# make settled runs planted pairs and nulls in turns, and says which are settled (20 to 25 minutes, on a quiet machine)
# make claims checks what published benchmarks say with their own figures, and writes docs/claims.md (seconds)
# make annotations  writes docs/annotations, the accounts of docs/h100.md and the tables of docs/cpu-comparison.md and
#             docs/simplechains.md from measured runs (seconds)
# make truth  counts random models, built alike in PyTorch, JAX and TensorFlow, and holds them to their closed form: N=100
#             of them, or ONLY="17 20" of these (SMALL=1: without the layers that do not matter), on BACKENDS="jax torch";
#             each result is added to OUTPUT=FILE as it comes, and what that holds is not counted again
# make functions  counts every k-th function of the indices of PyTorch, JAX and TensorFlow with small arrays, and says which
#             are unknown and why (20 minutes): FRAMEWORKS="jax", ONLY="jax.numpy.cumsum", OUTPUT=results.jsonl
# make docs   writes the documentation as a site to site/, which can be read from there (seconds)
# make bench  start-up, overhead and agreement with a ten-line script, as ratios (takes minutes; not part of the tests)
# make fuzz   fuzzes every reader and every renderer of data that come from anywhere, SECONDS=20 of processor time each
#             (20 minutes), or ONLY="hlo kineto", readers or renderers; fuzz/ has what was found, and the next run goes on
# make gpu    everything that a GPU has to show, in pieces of under ten minutes: make gpu PIECE=calibration; broken off, it
#             goes on where it was; gpu-wheels makes what it installs, gpu-report prints what it found (docs/a100.md)

PYTHON ?= python3
BIN := .venv/bin
DEMO := demo
WORKERS ?= 2
N ?= 100
# Compiled files are kept, even where the shell says not to: else each of some hundred processes compiles all of ours.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder

.PHONY: demo test test-all quick check docs bench fuzz truth functions cells reference claims annotations plants settled gpu gpu-wheels gpu-report clean
.DELETE_ON_ERROR:

demo: .venv/torch
	mkdir -p $(DEMO)
	$(BIN)/roofline profile bert --backend torch -o $(DEMO)/bert.json --force
	for kind in bound roofline breakdown; do \
	  $(BIN)/roofline plot $(DEMO)/bert.json --kind $$kind --width 7in -o $(DEMO)/bert-$$kind.png --force || exit 1; \
	done

test: .venv/installed .venv/browser check
	$(PYTEST) -m "not thorough"

test-all: .venv/installed .venv/browser check
	$(PYTEST) --hypothesis-profile=all

quick: .venv/installed check
	$(PYTEST) -q -m "not slow and not gpu and not thorough" --hypothesis-profile=few

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy

docs: .venv/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

bench: .venv/installed
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/running.py
	$(BIN)/python benchmarks/read_xplane.py
	$(BIN)/python benchmarks/import_kineto.py
	$(BIN)/python benchmarks/import_ranks.py
	$(BIN)/python benchmarks/show_large.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/sweep.py

fuzz: .venv/fuzz
	$(BIN)/python benchmarks/fuzz/run.py $(if $(SECONDS),--seconds $(SECONDS)) $(if $(ONLY),--only $(ONLY))

truth: .venv/installed
	$(BIN)/python benchmarks/truth/run.py --models $(N) $(if $(ONLY),--only $(ONLY)) $(if $(SMALL),--small) \
	  $(if $(BACKENDS),--backends $(BACKENDS)) $(if $(OUTPUT),--output $(OUTPUT))

functions: .venv/installed
	$(BIN)/python benchmarks/functions/run.py $(if $(FRAMEWORKS),--frameworks $(FRAMEWORKS)) \
	  $(if $(ONLY),--only $(ONLY)) $(if $(OUTPUT),--output $(OUTPUT))

cells: .venv/installed
	$(BIN)/python benchmarks/cells/run.py

reference: .venv/installed
	$(BIN)/python benchmarks/reference_profiles.py

claims: .venv/installed
	$(BIN)/python benchmarks/published/claims.py

annotations: .venv/installed
	$(BIN)/python benchmarks/annotations.py --write
	$(BIN)/python benchmarks/h100_accounts.py --write
	$(BIN)/python benchmarks/measured_tables.py

# Named, not a folder: a folder's date changes whenever something is put into it.
.venv/torch: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[torch]'
	touch $@

# Every framework: the tests run all of them.
.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[torch,jax,tensorflow,keras,keras2,ray,dev]'
	touch $@

# A fuzzer that watches bytecode, and what counts lines: there is no wheel of the first for every Python and machine.
.venv/fuzz: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt 'atheris>=3.0' 'coverage>=7.6'
	touch $@

# A browser for the tests of `roofline report`: the system's, else Debian's where it may be installed; without one these
# tests are skipped, and say so.
.venv/browser: .venv/installed
	command -v chromium >/dev/null || command -v google-chrome >/dev/null \
	  || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-liberation; } \
	  || echo "no Chromium here: the tests of the report's page will be skipped"
	touch $@

plants: .venv/installed
	$(BIN)/python benchmarks/plants.py
	$(BIN)/python benchmarks/plants.py --set second
	$(BIN)/python benchmarks/plants.py --set third

settled: .venv/installed
	$(BIN)/python benchmarks/settled.py

# On the machine with the GPU, whose Python has the frameworks; from gpu-wheels/ where it has no network.
gpu:
	$(PYTHON) benchmarks/gpu/run.py $(foreach piece,$(PIECE),--piece $(piece)) $(if $(MINUTES),--minutes $(MINUTES))

gpu-wheels: .venv/installed
	$(BIN)/python benchmarks/gpu/wheels.py gpu-wheels

gpu-report: .venv/installed
	$(BIN)/python benchmarks/gpu/run.py --report

clean:
	rm -rf .venv $(DEMO) build dist site *.egg-info
