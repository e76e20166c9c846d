# Two commands need nothing else: `make demo` and `make test`. They set themselves up in .venv, as all others do.
# PYTHON is any Python from 3.11 on; Spark needs Java 17 or 21.

PYTHON ?= python3
ACTIONLINT ?= actionlint
VENV := .venv
BIN := $(VENV)/bin
# What a user needs, and all that development needs beside it.
DEMO_READY := $(VENV)/.demo-ready
READY := $(VENV)/.ready
# A file's tests stay in one process: they share what is slow to make. A process that ends, as pytest lets it where a test
# hangs, ends the run.
PYTEST := $(BIN)/python -m pytest --numprocesses=2 --dist=loadfile --max-worker-restart=0

export PYSPARK_PYTHON := $(abspath $(BIN)/python)
export PYSPARK_DRIVER_PYTHON := $(PYSPARK_PYTHON)

.PHONY: setup demo test lint types imports unit without-java pages coverage unit-oldest unit-newest lock spark integration matrix bench docs site wheel wheels distributions release kernels golden clean java

# Everything that the other targets need, and nothing else: it runs no test and no program.
setup: $(READY)

# The programs of README.md.
demo: java $(DEMO_READY)
	@$(BIN)/python sql/quickstart.py

# The tests that need neither Spark nor processes, and the most important ones of the others; tests/targets.py names them.
# Kernels are compiled while the other core checks types, so that no two processes of the tests compile the same one.
test: java $(READY)
	@$(MAKE) --no-print-directory --jobs=2 types kernels lint imports
	$(PYTEST) -m "unit or everyday"

# The documentation: the site, code on the pages, notebooks, recipes, SQL examples.
pages: $(READY) java site
	$(PYTEST) -m "pages"

# All others: with Spark, with processes, with many cases. The files that take longest begin.
spark: $(READY) java
	$(PYTEST) --no-loadscope-reorder -m "spark or thorough"

kernels: $(READY)
	$(BIN)/python -m sparkwire warm

# All complaints at once: each check runs, and any of them fails the target.
lint: $(READY)
	@status=0; \
	$(BIN)/ruff check . || status=1; \
	$(BIN)/ruff format --check . || status=1; \
	$(BIN)/python -m tools.prose || status=1; \
	$(BIN)/codespell *.md .github docs udfs tests tools benchmarks sql || status=1; \
	$(BIN)/yamllint .github mkdocs.yml .pre-commit-config.yaml || status=1; \
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml || status=1; \
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-actions .github/actions/*/action.yml || status=1; \
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml || status=1; \
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml || status=1; \
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml)) || status=1; \
	if command -v $(ACTIONLINT); then $(ACTIONLINT); else echo "actionlint is not here: what it says of .github is said in CI."; fi || status=1; \
	exit $$status

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

# Those that need neither Java nor processes of their own. The folders left out need Java, and some of their modules a newer
# Spark than the oldest one.
WITHOUT_JAVA := --ignore=tests/spark --ignore=tests/docs
unit: $(READY)
	$(PYTEST) $(WITHOUT_JAVA) -m "unit"

# Those, and the ones with many cases.
without-java: $(READY)
	$(PYTEST) $(WITHOUT_JAVA) -m "unit or thorough"

# Which lines of the package these run; no other test counts toward the floor in pyproject.toml. Kernels are compiled anew, with a mark for each statement and a check of each access.
coverage: export SPARKWIRE_CHECKED := 1
coverage: export SPARKWIRE_KERNEL_CACHE := off
coverage: export PYTHONPATH := .
coverage: $(READY)
	rm -rf build/coverage
	PYTEST_PLUGINS=tests.support.kernel_lines $(PYTEST) $(WITHOUT_JAVA) -m "unit or thorough"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

# The same, on the oldest that pyproject.toml allows, and on the newest with Numba's pre-releases; each in a .venv of its own.
# The oldest that go together, then of these the package's own: what they need in turn is as new as the tools of development.
USERS := spark registry tiered picture delta
EXTRAS := spark,registry,tiered,picture,delta,dev
OLDEST := build/uv/bin/uv pip compile --quiet --resolution lowest-direct --python-version 3.11 $(USERS:%=--extra %)
unit-oldest: build/uv
	$(OLDEST) --output-file build/together.txt pyproject.toml
	$(OLDEST) --no-deps --constraint build/together.txt --output-file build/oldest.txt pyproject.toml
	build/uv/bin/uv venv --quiet --clear --python $(PYTHON) build/oldest
	build/uv/bin/uv pip install --quiet --python build/oldest/bin/python --constraint build/oldest.txt --editable '.[$(EXTRAS)]'
	$(MAKE) without-java READY= BIN=build/oldest/bin

unit-newest: build/uv
	printf 'numba>=0.0.dev0\nllvmlite>=0.0.dev0\n' > build/newest.txt
	build/uv/bin/uv venv --quiet --clear --python $(PYTHON) build/newest
	build/uv/bin/uv pip install --quiet --python build/newest/bin/python --override build/newest.txt --editable '.[$(EXTRAS)]'
	$(MAKE) without-java READY= BIN=build/newest/bin

# What development and the demo install, to the last digit: commit what it writes.
lock: build/uv
	build/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
		$(USERS:%=--extra %) --extra dev --extra ready --custom-compile-command 'make lock' \
		--output-file requirements-dev.txt pyproject.toml
	build/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--extra spark --constraint requirements-dev.txt --custom-compile-command 'make lock' \
		--output-file requirements-demo.txt pyproject.toml

build/uv:
	$(PYTHON) -m venv $@
	$@/bin/pip install --quiet --disable-pip-version-check 'uv>=0.9,<1'

# Against real servers and clusters; it fetches what they need from Maven Central and PyPI. Prints what they went through, and
# what it skips: the database is the system's own. WHOLE=1: also older brokers and connectors, benchmarks, and what is similar.
integration: $(READY) java build/uv
	$(PYTEST) --no-loadscope-reorder -o faulthandler_timeout=1800 -rPs --durations=10 tests/integration

# Golden data once more, by the programs that they came from; what differs from those in tests/data is printed, and fails.
golden: $(READY) java
	$(BIN)/python -m tests.data.generators

# MATRIX=3.5.0: the oldest Spark; MATRIX="4.1 4.2": those.
matrix: $(READY) java build/uv
	$(BIN)/python -m tests.support.matrix $(MATRIX)

bench: $(READY) java build/uv
	$(BIN)/python -m benchmarks

docs: $(READY)
	$(BIN)/python -m tools.reference

# The documentation as a site, in build/site; a link that leads nowhere fails it.
site: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

wheel: $(READY)
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .

# Beside it one with machine code for this Python and the Numba in .venv, so that nobody waits for a compiler.
wheels: $(READY)
	$(BIN)/python -m tools.wheels

# What a release publishes, as PyPI would take it.
distributions: $(READY)
	rm -rf dist
	$(BIN)/python -m build --sdist --outdir dist .
	$(BIN)/python -m tools.wheels
	$(BIN)/twine check --strict dist/*

# What the workflow of a release runs: the tag, if there is one, and the change log have the version of the package.
release: distributions
	$(BIN)/python -m tools.release $(GITHUB_REF_NAME)

clean:
	rm -rf $(VENV) build dist

# The arguments say what is installed, and by which command. It prints nothing for up to a minute while it unpacks files.
PIP := $(BIN)/pip install --disable-pip-version-check
define install
	@echo "Installing $(1) into .venv, once."
	@while sleep 8; do echo "… still installing $(1)"; done & clock=$$!; trap "kill $$clock" EXIT; $(2)
endef

# Python compiles a module when it first imports it. Development compiles all of them, also those that are in no valid Python: a
# warning of the compiler would fail a test.
$(DEMO_READY): pyproject.toml requirements-demo.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "sparkwire needs Python 3.11 or later; $(PYTHON) is older: set PYTHON to a newer one."; exit 1; }
	@echo "Setting up .venv."
	@$(PYTHON) -m venv $(VENV)
	$(call install,Spark and what sparkwire needs,$(PIP) --no-compile --require-hashes --requirement requirements-demo.txt)
	$(call install,sparkwire,$(PIP) --quiet --no-deps --editable .)
	@touch $@

# The demo needs nothing but pip. Development has uv, which takes a quarter of pip's time.
$(READY): $(DEMO_READY) requirements-dev.txt | build/uv
	$(call install,what development needs,build/uv/bin/uv pip install --quiet --python $(BIN)/python --require-hashes --requirement requirements-dev.txt)
	@$(BIN)/python -m compileall -qq --workers=2 $(VENV)/lib || true
	@touch $@

java:
	@version=$$("$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p'); \
	if [ -z "$$version" ]; then echo "Spark needs Java 17 or 21, and no java was found: install one, or set JAVA_HOME."; exit 1; fi; \
	if [ "$$version" -lt 17 ]; then echo "Spark needs Java 17 or 21, and java is version $$version: set JAVA_HOME to a newer one."; exit 1; fi
