# SPDX-License-Identifier: Apache-2.0
# Two commands on a bare machine: `make demo` and `make test`. PYTHON=… chooses the interpreter.
BIN := .venv/bin
PINNED := setup.py setup.cfg pyproject.toml constraints.txt mt_nodes/__init__.py scripts/setup.sh
export PYTHON
# Hundreds of processes are started; each would compile our modules anew.
export PYTHONDONTWRITEBYTECODE :=
# Tests at a time; files stay whole, in their order, so that each worker makes the fixtures of its own files only.
# More than there are processors: many tests wait for other processes. Those of `make check` do not: one a processor,
# for each worker collects all of them.
JOBS := 4
WORKERS = -n $(JOBS) --dist loadfile --no-loadscope-reorder

.PHONY: help demo check test tests test-long test-extras lint style types bench faults kills attacks fuzz physics soak docs site gallery pictures picture-figures fog-agreement dist clean
.DEFAULT_GOAL := help

help: ## Say what there is
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST))

demo: .venv/demo.stamp ## Set up, then run the main job on a generated drive: an honest and a faulty stack
	$(BIN)/mt demo $(ARGS)

check: JOBS := auto
check: style ## Set up, then check format, style, rooms and types, and run the tests of test/unit: after each change
	@# Types take one processor for a minute; the tests run meanwhile.
	@$(MAKE) --no-print-directory types > .venv/types.log 2>&1 & \
	$(BIN)/python -m pytest $(WORKERS) -m "not long and not alone" test/unit; tests=$$?; \
	wait $$!; types=$$?; cat .venv/types.log; exit $$((tests || types))

test: .venv/test.stamp ## Set up, then run every check and test but the long ones; JOBS=… at a time, or those that ARGS says one after the other
	@# Types take one processor for a minute; new tests are compiled meanwhile, once and not by each worker, and all run.
	@$(MAKE) --no-print-directory types > .venv/types.log 2>&1 & types=$$!; \
	$(MAKE) --no-print-directory -s .venv/compiled.stamp & compiled=$$!; \
	status=0; $(MAKE) --no-print-directory style || status=$$?; wait $$compiled; \
	[ $$status != 0 ] || $(MAKE) --no-print-directory tests || status=$$?; \
	wait $$types || status=$$?; cat .venv/types.log; exit $$status
ifndef ARGS
	@# Only what has such tests is collected: all of it takes longer than some of them.
	$(BIN)/python -m pytest -m "alone and not long" $$(grep -l "mark\.alone" test/*/*.py)
endif

tests: # Those that may run beside others
	$(BIN)/python -m pytest $(if $(ARGS),$(ARGS),$(WORKERS) -m "not long and not alone")

test-long: .venv/test.stamp ## Run the tests that take long: whole matrices, tiny benchmarks, faults injected into each process, properties with more examples (half an hour and more)
	$(BIN)/python -m pytest -m long $(ARGS)
ifndef ARGS
	$(BIN)/python -m pytest -m "hypothesis and not long and not alone" --hypothesis-profile long
endif

test-extras: .venv/test.stamp ## Test what needs the extras `diffusion` and `models` (torch: 3 GB), on tiny models
	scripts/setup.sh test,diffusion,models
	$(BIN)/python -m pytest test/extras $(ARGS)

lint: style types ## Format, style, rooms and types

style: .venv/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo --no-cache

types: .venv/test.stamp
	@# Types are checked against NumPy's of Python 3.11 and later; those of its last release for 3.10 know less.
	$(BIN)/python -c "import sys; sys.exit(sys.version_info >= (3, 11))" || $(BIN)/mypy

bench: .venv/demo.stamp ## Time mutations, transport, the mutator against a bare relay, and replays by stage
	$(BIN)/python scripts/bench.py $(ARGS)

faults: .venv/test.stamp ## Kill, stop, starve and deceive the suite's processes, one whole run each (some minutes)
	$(BIN)/python -m pytest -m long test/ros/test_fault_injection.py $(ARGS)

kills: .venv/demo.stamp ## Kill 50 runs of all kinds at random moments, resume them, compare with undisturbed ones (an hour)
	$(BIN)/python scripts/kills.py $(ARGS)

attacks: .venv/test.stamp ## Attack every kind of run in every known way; write the table of docs/reliability.md (an hour)
	$(BIN)/python scripts/attacks.py $(ARGS)

fuzz: .venv/test.stamp ## Hold 10,000 malformed clouds, messages, bags, files and results each to the invariant (hours)
	$(BIN)/python -m fuzz $(ARGS)

physics: .venv/demo.stamp ## Hold figures of changed clouds and pictures to their goals, on a recorded drive: ARGS=BAG
	$(BIN)/python scripts/physics.py $(ARGS)

pictures: .venv/demo.stamp ## Make a page of forty pictures before and after a change, beside other libraries: ARGS=BAG
	$(BIN)/python scripts/picture_pairs.py $(ARGS)

picture-figures: .venv/demo.stamp ## Measure how well changed pictures pass for recorded ones: ARGS=BAG
	$(BIN)/python scripts/picture_measure.py $(ARGS)

fog-agreement: .venv/demo.stamp ## Compare a detector's verdicts in our fog with those in plain Koschmieder fog: ARGS=BAG
	$(BIN)/python scripts/fog_agreement.py $(ARGS)

soak: .venv/demo.stamp ## Run mt live and a campaign for an hour while stacks die: every pair accounted for, memory of every process
	$(BIN)/python scripts/soak.py $(ARGS)

docs: .venv/test.stamp ## Make the tables of docs/, docs/catalogue.md and docs/gallery.md anew
	$(BIN)/python scripts/make_docs.py

site: .venv/test.stamp ## Build the documentation as a site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

gallery: docs ## Draw what each mutation does to a frame, for docs/gallery.md (some minutes)
	$(BIN)/python scripts/make_gallery.py $(ARGS)

dist: .venv/demo.stamp ## Build sdist and wheel, check them, install the wheel into an empty environment and run the demo there
	scripts/build_release.sh

clean: ## Remove what was made here, .venv too
	rm -rf .venv build dist install log site *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/compiled.stamp: .venv/test.stamp $(wildcard test/*.py test/*/*.py)
	@$(BIN)/python -m pytest -q --collect-only > /dev/null
	@touch $@

.venv/demo.stamp: $(PINNED)
	scripts/setup.sh
	@touch $@

.venv/test.stamp: $(PINNED)
	scripts/setup.sh test
	@touch $@ .venv/demo.stamp
