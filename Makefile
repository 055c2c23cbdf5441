# SPDX-License-Identifier: Apache-2.0
# A front over meson. README.md's two commands are `make demo` and `make test`.
BUILD ?= build
PREFIX ?= /usr/local
ONLY ?=
# Debian's own tools, whatever else stands before them in PATH.
MESON := $(firstword $(wildcard /usr/bin/meson) meson)
NINJA := $(firstword $(wildcard /usr/bin/ninja) ninja)
PYTHON := $(firstword $(wildcard /usr/bin/python3) python3)

.PHONY: all deps venv demo test test-long bench install wheel format clean

all: $(BUILD)/build.ninja
	@$(NINJA) -C $(BUILD) $(if $(VERBOSE),,--quiet)

deps:
	@deploy/install-deps

# What the front ends are tested with; where it cannot be had their tests are skipped.
venv: $(BUILD)/build.ninja
	@deploy/install-python $(BUILD)/venv

$(BUILD)/build.ninja: | deps
	@$(MESON) setup $(BUILD) --prefix "$(PREFIX)" >$(BUILD).setup.log 2>&1 || { cat $(BUILD).setup.log; exit 1; }; rm -f $(BUILD).setup.log

demo: deps all
	@$(PYTHON) examples/demo.py --build $(BUILD)

test: deps venv all
	@$(PYTHON) tests/run --build $(BUILD) $(if $(ONLY),--only $(ONLY))

test-long: deps venv all
	@$(PYTHON) tests/run --build $(BUILD) --long $(if $(ONLY),--only $(ONLY))

bench: deps all
	@$(PYTHON) bench/run --build $(BUILD) --out $(BUILD)/bench.json $(if $(ONLY),--only $(ONLY))

# A prefix that is given replaces the build's own; DESTDIR is honoured.
install: all
ifneq ($(origin PREFIX),file)
	@$(MESON) configure $(BUILD) --prefix "$(abspath $(PREFIX))"
	@$(NINJA) -C $(BUILD) $(if $(VERBOSE),,--quiet)
endif
	@$(MESON) install -C $(BUILD) --no-rebuild --quiet
	@echo "installed in $(DESTDIR)$$($(MESON) introspect $(BUILD) --buildoptions | $(PYTHON) -c 'import json, sys; print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))')"

# build/wheel/autofuse-*.whl: the Python package with libraries, server, rules and twin.
wheel: deps venv all
	@$(if $(wildcard $(BUILD)/venv/bin/python),$(BUILD)/venv/bin/python,$(PYTHON)) python/build_wheel.py --build $(BUILD) --out $(BUILD)/wheel
	@ls $(BUILD)/wheel/*.whl

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	rm -rf $(BUILD)
