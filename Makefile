# make demo   sets everything up, profiles BERT-base on this machine, and draws it
# make test   sets everything up and runs the whole test suite in two processes (WORKERS=n for more); test-all with all
#             examples of every property, where test takes 10, and the tests that record what others record a part of
# make quick  what a developer needs between two edits: check, and the quick tests of the rooms that need no framework
#             (half a minute)
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
# make mutants  breaks rules on purpose, one at a time, N=40 of them drawn with SEED=1, and says which no test notices
#             (docs/reliability.md; an hour or two): OUTPUT=mutants.jsonl; AGAIN=FILE takes those of an earlier result
# make dist   builds wheel and source distribution twice, from copies of what git knows, and fails unless they are equal to
#             the byte (a minute); audit lists what the wheel needs (CycloneDX) and fails if a vulnerability of it is known
# make compat installs the wheel with the lowest and the newest release of each dependency on Python 3.11, 3.12 and 3.13,
#             runs it, and writes docs/reference/versions.md (half an hour; what is in compat/ is not run again)
# make gpu    everything that a GPU has to show, in pieces of under ten minutes: make gpu PIECE=calibration; broken off, it
#             goes on where it was; gpu-wheels makes what it installs, gpu-report prints what it found (docs/a100.md)

PYTHON ?= python3
BIN := .venv/bin
DEMO := demo
WORKERS ?= 2
# The rooms of `make quick`.
QUICK := analysis comparison content core costs devices memory projection published ranks regression traces
N ?= 100
# Compiled files are kept, even where the shell says not to: else each of some hundred processes compiles all of ours.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder

.PHONY: demo test test-all quick check docs bench fuzz mutants truth functions cells reference claims annotations plants settled dist audit compat gpu gpu-wheels gpu-report clean
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
	$(PYTEST) -q -m "not slow and not gpu and not thorough" --hypothesis-profile=few $(QUICK:%=tests/%)

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
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/sweep.py

fuzz: .venv/fuzz
	$(BIN)/python benchmarks/fuzz/run.py $(if $(SECONDS),--seconds $(SECONDS)) $(if $(ONLY),--only $(ONLY))

mutants: N = 40
mutants: .venv/installed
	PYTHONDONTWRITEBYTECODE= $(BIN)/python benchmarks/mutants.py --number $(N) $(if $(SEED),--seed $(SEED)) \
	  $(if $(AGAIN),--again $(AGAIN)) $(if $(OUTPUT),--output $(OUTPUT))

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

RELEASE := .venv/release/bin

.venv/release/installed: constraints.txt
	$(PYTHON) -m venv .venv/release
	$(RELEASE)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt build setuptools packaging \
	  cyclonedx-bom pip-audit
	touch $@

# Of the same commit the same bytes: the time of all files is the commit's, and setuptools is the one in constraints.txt.
dist: .venv/release/installed
	rm -rf dist build
	set -e; for copy in first second; do \
	  mkdir -p build/$$copy/source; \
	  git ls-files -z | tar -c --null -T - | tar -x -C build/$$copy/source; \
	  SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(RELEASE)/python -m build --no-isolation --outdir build/$$copy/dist \
	    build/$$copy/source > build/$$copy/log 2>&1 || { cat build/$$copy/log; exit 1; }; \
	done
	diff -r build/first/dist build/second/dist
	mv build/first/dist dist && rm -r build
	cd dist && sha256sum * | tee SHA256SUMS

# What the wheel needs today, with the light extras; and what the tests run against. --strict: what could not be looked up
# is no release without known vulnerabilities.
audit: dist
	rm -rf .venv/audited
	$(PYTHON) -m venv --without-pip .venv/audited
	$(RELEASE)/python -m pip --python .venv/audited/bin/python install --quiet --disable-pip-version-check \
	  "$$(echo dist/*.whl)[pandas,parquet]"
	$(RELEASE)/python -m pip --python .venv/audited/bin/python freeze --exclude roofline > .venv/audited/requirements.txt
	$(RELEASE)/cyclonedx-py environment .venv/audited/bin/python --output-reproducible --output-format JSON \
	  --output-file dist/roofline.cdx.json
	for list in .venv/audited/requirements.txt constraints.txt; do \
	  $(RELEASE)/pip-audit --strict --no-deps --disable-pip --progress-spinner off --requirement $$list || exit 1; \
	done

compat: dist
	$(RELEASE)/python benchmarks/compat.py dist/*.whl --write

# On the machine with the GPU, whose Python has the frameworks; from gpu-wheels/ where it has no network.
gpu:
	$(PYTHON) benchmarks/gpu/run.py $(foreach piece,$(PIECE),--piece $(piece)) $(if $(MINUTES),--minutes $(MINUTES))

gpu-wheels: .venv/installed
	$(BIN)/python benchmarks/gpu/wheels.py gpu-wheels

gpu-report: .venv/installed
	$(BIN)/python benchmarks/gpu/run.py --report

clean:
	rm -rf .venv $(DEMO) build dist site *.egg-info
