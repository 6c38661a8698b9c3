# `make demo` and `make test` install what they need on a fresh machine; later runs reinstall nothing.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
LOWEST := .venv-lowest
DIST := .venv-dist

.PHONY: demo test test-avx2 lint docs docs-serve test-lowest sizes pictures mutants audit dist clean

demo: $(INSTALLED)
	$(BIN)/python examples/demo.py --output simlte-demo

# Two processes share the tests by file, so that the fixtures of a file are built once.
test: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 --dist loadfile

# The numerical tests again, with the instructions of any x86 processor of the last ten years.
NUMERICAL := tests/losses tests/longformer tests/modules tests/models
test-avx2: $(INSTALLED)
	ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 \
		$(BIN)/python -m pytest -n 2 --dist loadfile $(NUMERICAL)

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy

# Build the site in docs/_build, offline; warnings are errors.
docs: $(INSTALLED)
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --fresh-env docs docs/_build

docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory docs/_build 8000

# Install torch first, so that no other package pulls in another build.
$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@

# Update the line counts in CONTRIBUTING.md; tests/test_sizes.py has the caps.
sizes: $(INSTALLED)
	$(BIN)/python tests/write_sizes.py

# Update the pictures in README and docs; needs Chromium.
pictures: $(INSTALLED)
	PYTHONPATH=. $(BIN)/python tests/write_pictures.py

# Make wrong changes that the tests must catch; takes minutes.
mutants: $(INSTALLED)
	$(BIN)/python tests/mutants.py

# Look up known vulnerabilities of the installed packages; needs the network.
audit: $(INSTALLED)
	$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/pip-audit --local --skip-editable

# The tests again, with the lowest versions that pyproject.toml allows.
test-lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/python -m pytest -p no:cacheprovider -n 2 --dist loadfile

$(LOWEST)/.installed: pyproject.toml constraints.txt tests/lowest_versions.py
	test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet -c constraints.txt torch setuptools
	$(LOWEST)/bin/python tests/lowest_versions.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet -c constraints.txt -c $(LOWEST)/constraints.txt -e ".[test]"
	touch $@

# Build the wheel and source distribution, then try the wheel in an empty environment without extras.
dist:
	rm -rf dist $(DIST)
	$(PYTHON) -m venv $(DIST)
	$(DIST)/bin/python -m pip install --quiet build twine
	$(DIST)/bin/python -m build --outdir dist .
	$(DIST)/bin/python -m twine check --strict dist/*
	rm -rf $(DIST)
	$(PYTHON) -m venv $(DIST)
	$(DIST)/bin/python -m pip install --quiet -c constraints.txt torch
	$(DIST)/bin/python -m pip install --quiet dist/*.whl
	$(DIST)/bin/python tests/installed_wheel.py

clean:
	rm -rf $(VENV) $(LOWEST) $(DIST) dist docs/_build docs/results docs/commands.md simlte-demo simlte-demo.run simlte-demo.trained
