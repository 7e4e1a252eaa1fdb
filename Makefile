# The commands of the project. Everything is installed from requirements.lock into .venv.

PYTHON ?= python3
BIN := .venv/bin
SEEDS ?= 1000
FIRST ?= 1

.PHONY: pictures run test bench lint format lock simulate venue install clean

run: install  ## a whole desk with a simulated venue, on loopback
	@exec $(BIN)/python manage.py desk --demo

test: install  ## everything, with SQLite, PostgreSQL and Chromium
	@$(BIN)/python -m tests

bench: install  ## the benchmark table
	@$(BIN)/python -m tests.bench

lint: install  ## what needs no test run
	@$(BIN)/python -m tests format lint types arrows migrations deployment

format: install
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lock:  ## after a change of the dependencies in pyproject.toml
	uv pip compile --upgrade --universal --generate-hashes --extra dev --python-version 3.11 \
		-o requirements.lock pyproject.toml

simulate: install  ## search SEEDS runs in simulated time for one that breaks the promise
	@$(BIN)/python -m tests.simulation --seeds $(SEEDS) --first $(FIRST)

venue: install  ## the simulated venue alone
	@exec $(BIN)/python manage.py simulate --port 9100

pictures: install  ## the README's pictures, from a running demo
	@$(BIN)/python -m tests.pictures

install: .venv/requirements.lock

# The copy tells which lock file .venv was made from; a checkout may only have touched the file.
.venv/requirements.lock: requirements.lock
	@cmp -s requirements.lock $@ || { \
		$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "orderdesk needs Python 3.11 or later: make PYTHON=python3.11")' && \
		$(PYTHON) -m venv --clear .venv && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock && \
		cp requirements.lock $@; }
	@touch $@

clean:  ## keeps var/, which holds the journal
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .playwright staticfiles
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
