# Needs a POSIX shell and a Python of 3.11 or newer; everything else lands in .venv (deploy/bootstrap.py).
# PYTHON=… names the Python; ARGS=… goes on to the program that the target runs.

SHELL = /bin/sh
PYTHON ?=
ARGS =
DATA =
BENCH = *
BIN = .venv/bin

# The Python of an existing .venv comes first, so that a choice once made stays made.
BOOTSTRAP = \
	if [ -n '$(PYTHON)' ]; then set -- '$(PYTHON)'; \
	else set -- $(BIN)/python python3 python3.14 python3.13 python3.12 python3.11 python; fi; \
	found=; \
	for python in "$$@"; do \
		"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue; \
		found=$$python; break; \
	done; \
	if [ -z "$$found" ]; then \
		echo "remem: error: expected Python 3.11 or newer, found none as $$*" >&2; \
		echo 'remem: hint: apt install python3 python3-venv, or name one: make PYTHON=…' >&2; \
		exit 2; \
	fi; \
	"$$found" deploy/bootstrap.py

.PHONY: help serve serve-postgres test demo lint fmt bench clean

help:
	@echo 'make serve    run a commons on this machine (DATA=folder, ARGS="--port 8700 …")'
	@echo 'make serve-postgres  the same over a PostgreSQL of its own'
	@echo 'make test     run the tests (ARGS="-k name …")'
	@echo 'make demo     watch one publisher, three confirmers, a reader and a poisoned lesson'
	@echo 'make lint     formatting, lint, types, and the direction of the imports'
	@echo 'make fmt      format, and mend what can be mended'
	@echo 'make bench    measure, and print tables (BENCH=name for one of them)'
	@echo 'make clean    remove .venv and everything else that was made here, but no data'

serve:
	@$(BOOTSTRAP) server
	@exec $(BIN)/remem-server serve $${DATA:+--data "$$DATA"} $(ARGS)

serve-postgres:
	@$(BOOTSTRAP) server postgres
	@exec $(BIN)/python deploy/serve_postgres.py $${DATA:+--data "$$DATA"} $(ARGS)

test:
	@$(BOOTSTRAP) dev
	@# Without what Python keeps of modules that it has compiled, each of the many processes compiles them anew.
	@unset PYTHONDONTWRITEBYTECODE; exec $(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

demo:
	@$(BOOTSTRAP) server
	@exec $(BIN)/python deploy/demo.py

lint:
	@$(BOOTSTRAP) dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fmt:
	@$(BOOTSTRAP) dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench:
	@$(BOOTSTRAP) dev
	@for bench in tests/bench/bench_$(BENCH).py; do $(BIN)/python "$$bench" $(ARGS) || exit 1; done

clean:
	rm -rf .venv .venv.lock build dist .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find alembic client deploy gossip server tests -name __pycache__ -type d -prune -exec rm -rf {} +
