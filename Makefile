# `make run` and `make test` need nothing but Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCKS := .ci/requirements
STORE ?= .demo/demo.duckdb
PORT ?= 8501
# Compiled once and kept: a run of the tests starts a hundred processes.
export PYTHONDONTWRITEBYTECODE =

.PHONY: install dev engines run test test-long snapshots check fuzz faults simulate bench bench-agreement bench-calibration bench-asr bench-scale bench-judge bench-pages bench-trials bench-startup bench-import load screens vendor lock clean

install: $(VENV)/.installed

dev: $(VENV)/.installed-dev

$(BIN)/uv: $(LOCKS)/uv.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCKS)/uv.lock
	touch $@

$(VENV)/.installed: $(BIN)/uv $(LOCKS)/run.lock pyproject.toml
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r $(LOCKS)/run.lock
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --no-deps --no-build-isolation --editable .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed $(LOCKS)/dev.lock
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r $(LOCKS)/dev.lock
	touch $@

# Spark and PostgreSQL as sources of production traces, for their tests; half a gigabyte. Without
# a cache: Spark is built from its source every time, and each build would stay, 1.3 GB of it.
engines: dev $(VENV)/.installed-engines

$(VENV)/.installed-engines: $(LOCKS)/engines.lock
	$(BIN)/uv pip install --quiet --no-cache --python $(BIN)/python --require-hashes -r $(LOCKS)/engines.lock
	touch $@

# The demo store is made once; `make clean` removes it.
run: install
	$(BIN)/asr demo --store $(STORE) --port $(PORT)

# Several tests share the processors: threads of one calculation would wait for each other.
test test-long: export OMP_NUM_THREADS := 1
test test-long: export OPENBLAS_NUM_THREADS := 1

# Three at once: those at the browser mostly wait.
test: dev
	$(BIN)/python -m pytest -q -m "not slow and not long" -n 3 --dist loadfile

# Minutes at the browser and under load; CI runs them after the others. Three at once: with four on
# two processors a page waits so long that tests at the browser run out of time.
test-long: dev
	$(BIN)/python -m pytest -q -m long -n 3 --dist loadfile

# What every command prints and writes, anew: for a change that is meant; look at the difference.
snapshots: dev
	ASR_SNAPSHOTS=write $(BIN)/python -m pytest -q tests/test_snapshots.py tests/test_page_snapshots.py tests/test_public_names.py

check: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.dependencies
	$(BIN)/python -m pytest -q --doctest-modules calibration reference_dataset app \
	  --ignore=app/views --ignore=app/main.py --ignore=app/asgi.py

# Random tables against the coefficients' properties and the krippendorff package, and 10,000 changed
# files of each trace format, other ones in every run: adds to docs/fuzz. A run is repeated with
# `make fuzz SEED=...`.
fuzz: dev
	@seed=$${SEED:-$$(date +%s)}; echo "seed $$seed"; \
	ASR_FUZZ_TABLE=docs/fuzz/agreement.md $(BIN)/python -m pytest -q --hypothesis-profile=fuzz \
	  --hypothesis-seed=$$seed tests/agreement/test_properties.py \
	  tests/agreement/test_against_krippendorff.py; \
	ASR_FUZZ_IMPORTERS=docs/fuzz/importers.md ASR_FUZZ_CASES=10000 $(BIN)/python -m pytest -q \
	  --hypothesis-profile=fuzz --hypothesis-seed=$$seed tests/trace_formats/test_arbitrary_input.py

# The long one: coverage of every interval method; writes docs/methods/coverage.md. Of one file:
# ASR_SIMULATION_TABLE=docs/methods/coverage.md .venv/bin/python -m pytest -m slow FILE
simulate: dev
	rm -f docs/methods/coverage.md
	ASR_SIMULATION_TABLE=docs/methods/coverage.md $(BIN)/python -m pytest -q -m slow tests/simulation

# Every operation of a store under every fault, five times: writes docs/faults.md; about ten minutes.
faults: dev
	{ echo "# Faults"; echo; date -u +%F; echo; $(BIN)/python -m tests.store.faults 5; } > docs/faults.md
	cat docs/faults.md

# The desk in a browser, twenty reviewers, 25 kills: adds to docs/benchmarks/labelling.md. Wants a
# quiet machine for about ten minutes.
bench: bench-agreement bench-calibration bench-asr
	$(BIN)/python -m benchmarks.labelling

# Coefficients, intervals and resamples beside krippendorff, nltk, statsmodels and irrCAC, which are
# fetched into environments that are thrown away: adds to docs/benchmarks/agreement.md.
bench-agreement: dev
	$(BIN)/python -m benchmarks.agreement

# A million verdicts through every estimator, beside ppi_py and a plain two-source bootstrap: adds to
# docs/benchmarks/calibration.md.
bench-calibration: dev
	$(BIN)/python -m benchmarks.calibration

# `asr report` on files of 100,000 to 10 million runs, beside numpy, scipy and pandas: adds to
# docs/benchmarks/asr.md. 100 million: `make bench-asr ROWS="--rows 100000000"`.
bench-asr: dev
	$(BIN)/python -m benchmarks.asr $(ROWS)

# What a run costs on DuckDB, PostgreSQL and Spark, by the difference of two sizes: adds to
# docs/benchmarks/scale.md; about five minutes.
bench-scale: engines
	$(BIN)/python -m benchmarks.scale

# pass@k and pass^k of 100,000 tasks, beside a plain loop and scorio: adds to docs/benchmarks/trials.md.
bench-trials: dev
	$(BIN)/python -m benchmarks.trials

# Prompts a second, what the runner adds to a bare client, and memory by number of traces: adds to
# docs/benchmarks/judge.md; about five minutes.
bench-judge: dev
	$(BIN)/python -m benchmarks.judge

# `asr --help`, and three commands on small files, beside Python itself; what each loads: adds to
# docs/benchmarks/startup.md; about two minutes.
bench-startup: dev
	$(BIN)/python -m benchmarks.startup

# MB/s and memory of `asr import`, beside `json.load` and pandas: adds to docs/benchmarks/imports.md;
# about ten minutes.
bench-import: dev
	$(BIN)/python -m benchmarks.imports

# Height, words, accessibility and seconds of every page of the demo, and of two on 200,000 traces:
# adds to docs/benchmarks/pages.md; about twenty minutes.
bench-pages: dev
	$(BIN)/python -m benchmarks.pages $(PART)

# Fifty reviewers for five minutes, how many are too many, and half an hour of twenty: adds to
# docs/benchmarks/load.md. Wants a quiet machine for an hour; one part: `make load PART=soak`.
load: dev
	$(BIN)/python -m benchmarks.load $(addprefix --part ,$(PART))

# Every page, full and empty, wide and narrow, light and dark: .screens. Those that a document shows
# are copied to docs/screens.
screens: dev
	$(BIN)/python -m benchmarks.screens

# The Markdown parser of the desk as one file, byte for byte what `package-lock.json` pins; wants Node
# and npm. `npm audit` in that folder asks for known advisories.
VENDOR := .ci/vendor
vendor:
	npm ci --prefix $(VENDOR) --ignore-scripts --no-audit --no-fund
	cd $(VENDOR) && echo 'export {parser, Table, Strikethrough} from "@lezer/markdown";' | \
	  node_modules/.bin/esbuild --bundle --format=esm --target=es2022 --minify --legal-comments=none \
	  --banner:js="// @lezer/markdown $$(node -p 'JSON.parse(fs.readFileSync("node_modules/@lezer/markdown/package.json")).version'), made by make vendor; licence: LICENSE" \
	  --outfile=$(CURDIR)/app/desk/vendor/markdown.js
	cp $(VENDOR)/node_modules/@lezer/markdown/LICENSE app/desk/vendor/LICENSE

# Universal for Python 3.11 to 3.14, hashes, no index addresses.
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header
lock: $(BIN)/uv
	$(LOCK) $(LOCKS)/uv.in -o $(LOCKS)/uv.lock
	$(LOCK) --extra build pyproject.toml -o $(LOCKS)/run.lock
	$(LOCK) --extra build --extra oidc -c $(LOCKS)/run.lock pyproject.toml -o $(LOCKS)/oidc.lock
	$(LOCK) --extra build --extra judge -c $(LOCKS)/oidc.lock pyproject.toml -o $(LOCKS)/judge.lock
	$(LOCK) --extra build --extra oidc --extra judge --extra dev -c $(LOCKS)/oidc.lock -c $(LOCKS)/judge.lock pyproject.toml -o $(LOCKS)/dev.lock
	$(LOCK) --extra postgres --extra spark -c $(LOCKS)/dev.lock pyproject.toml -o $(LOCKS)/engines.lock

clean:
	rm -rf .demo .pytest_cache .mypy_cache .ruff_cache build *.egg-info
