# make install   .venv with everything in it; .venv/bin/hopwatch is the program
# make demo      the demo pipeline, its monitor and its table; flags in ARGS="--drop router=0.02 --minutes 3"
# make test      all tests; some of them in ARGS="tests/monitor -k books"
# make soak      all tests, with every repetition of kills, faults and chances; takes hours
# make check     linter, formatter, types, import contracts, and whether tests are found: testers then start sooner
# make servers   fetches the servers that tests and benches start, and the jars that Spark reads Kafka with
# make orchestrators  Airflow, Dagster and dbt in an environment of their own, for the soak of their sensors
# make bench     measures against peers; flags in ARGS
# make pictures  takes the pictures of the dashboard that the docs show anew, into docs/images
# make lock      writes requirements/ anew, the newest of all packages with ARGS=--upgrade
# make audit     looks for advisories of the packages that are locked
# make changelog moves the fragments in changes/ into CHANGELOG.md; ARGS="--version 0.2.0", with --draft it only prints
# make clean     removes what the above made

PYTHON ?= python3
VENV := .venv
LOCK := requirements/dev.txt
# What the image has, at the same versions; and what makes its wheel.
PRODUCTION := requirements/production.txt
BUILD := requirements/build.txt
EXTRAS := monitor kafka taps files tables gate deliver dashboards demo
# So many processes test: most of them wait for real servers, or for the clock.
TESTERS := 7
# Servers that are no jar, and the browser, beside PostgreSQL: each program with the package of Debian's that has it.
SERVERS := prometheus:prometheus promtool:prometheus prometheus-alertmanager:prometheus-alertmanager amtool:prometheus-alertmanager chromium:chromium redis-server:redis-server \
  rabbitmq-server:rabbitmq-server nats-server:nats-server go:golang-go node:nodejs tsc:node-typescript
# Sources of the probe for the JVM, and the golden files that its tests read.
JVM := pom.xml src/*/java/hopwatch/probe/*.java src/*/java/hopwatch/probe/*/*.java
GOLDEN := tests/probes/contract/vectors.jsonl tests/probes/contract/sessions.jsonl
# A program, which root installs where it is missing: its name, Debian's package, what needs it, Homebrew's package.
NEED = command -v $(1) >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(2) >/dev/null; } || { \
	  echo "$(3), which is not here: install it with" \
	  "'apt-get install $(2)' (Debian, Ubuntu) or 'brew install $(4)' (macOS)" >&2; exit 1; }
PIP_TOOLS := pip-tools==7.6.2
PIP_AUDIT := pip-audit==2.10.1
# The orchestrators that sensors and a query are tested in. The build of dbt-core 1.12 fetches one more file from elsewhere.
ORCHESTRATORS := apache-airflow==3.3.2 dagster==1.13.29 openlineage-python==1.54.0 dbt-core==1.11.16 dbt-postgres==1.11.0
TOWNCRIER := towncrier==26.9.0
ARGS ?=

# Programs that tests start would compile every module at each start without.
test soak check: export PYTHONDONTWRITEBYTECODE :=

.PHONY: install demo test soak check bench pictures lock audit changelog clean java servers orchestrators
.NOTPARALLEL:

install: java $(VENV)/installed

demo: java $(VENV)/installed
	@$(VENV)/bin/hopwatch demo $(ARGS)

test: java $(VENV)/installed servers
	@$(VENV)/bin/python -m pytest --numprocesses=$(TESTERS) --dist=loadfile --no-loadscope-reorder $(ARGS)

# Spark compacts tables of Iceberg there.
soak: java $(VENV)/installed servers $(VENV)/jars/iceberg
	@$(VENV)/bin/python -m pytest --soak --session-timeout=86400 --numprocesses=$(TESTERS) --dist=loadfile --no-loadscope-reorder $(ARGS)

check: $(VENV)/installed
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy --strict
	@$(VENV)/bin/lint-imports
	@told=$$($(VENV)/bin/python -m pytest --collect-only -qq 2>&1) || { echo "$$told" | tail -40; exit 1; }

orchestrators:
	@$(PYTHON) -m venv .venv-orchestrators
	@.venv-orchestrators/bin/python -m pip install --quiet $(ORCHESTRATORS) --editable ./

bench: java $(VENV)/installed servers
	@$(VENV)/bin/python -m bench $(ARGS)

pictures: $(VENV)/installed
	@PICTURES=1 $(VENV)/bin/python -m pytest tests/e2e/test_pictures.py $(ARGS)

# Spark takes the Java of JAVA_HOME, and only without one that of PATH.
java:
	@major=$$("$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p'); \
	[ "$${major:-0}" -ge 17 ] || { echo "Hopwatch needs Java 17 or newer, found $${major:-none}: install it with" \
	  "'apt-get install openjdk-17-jre-headless' (Debian, Ubuntu) or 'brew install openjdk@17' (macOS), and let" \
	  "JAVA_HOME, if it is set, point to it" >&2; exit 1; }

$(VENV)/installed: $(LOCK) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Hopwatch needs Python 3.11 or newer, found $$($(PYTHON) --version 2>&1): install it with" \
	  "'apt-get install python3 python3-venv' (Debian 12 or newer) or 'brew install python@3.11' (macOS)," \
	  "or name one with 'make PYTHON=python3.12 install'" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "Hopwatch needs Python's venv module, which Debian and Ubuntu keep in a package of its own: install it with" \
	  "'apt-get install python3-venv'" >&2; exit 1; }
	@echo "installing into $(VENV); the first time Spark alone is a download of 400 MB" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCK)
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# The real servers of the tests, and what Spark reads Kafka with. Each server is looked for by itself; of Debian's packages it
# installs those that are missing, as root.
servers: $(VENV)/jars/connector $(VENV)/jars/broker $(VENV)/jars/archived $(VENV)/jars/probe $(VENV)/jars/agent
	@missing=; [ -n "$$(ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null)" ] || missing=" postgresql"; \
	for one in $(SERVERS); do command -v $${one%:*} >/dev/null || missing="$$missing $${one#*:}"; done; \
	[ -z "$$missing" ] || { [ "$$(id -u)" = 0 ] && apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	  apt-get install -y -qq --no-install-recommends $$missing >/dev/null; } || { \
	  echo "the tests need servers of Debian's: install them with 'apt-get install$$missing'" >&2; exit 1; }

$(VENV)/jars/%: jars/%.pom.xml $(VENV)/installed
	@$(call NEED,mvn,maven,jars come by Maven,maven)
	@rm -rf $@
	@mvn -q -B -Dstyle.color=never -f $< org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
	  -DoutputDirectory=$(CURDIR)/$@ -DincludeScope=runtime
	@touch $@

# The probe for the JVM, built and tested; the target before has fetched Maven.
$(VENV)/jars/probe: $(wildcard $(JVM:%=probes/jvm/%) $(GOLDEN)) $(VENV)/jars/broker
	@$(call NEED,javac,openjdk-17-jdk-headless,the probe for the JVM is built by javac,openjdk@17)
	@mvn -q -B -Dstyle.color=never -f probes/jvm/pom.xml package
	@mkdir -p $@ && cp build/jvm/hopwatch-probe.jar $@
	@touch $@

# Classes that Java reads once, for all Sparks and brokers that the tests start (ADR 0161).
$(VENV)/jars/archived: $(VENV)/jars/broker $(VENV)/installed
	@$(VENV)/bin/python -m servers.archive_writer >/dev/null
	@touch $@

# Run it after a change of the dependencies in pyproject.toml. It has a .venv of its own, because pip-tools pins no pip.
lock: $(VENV)/lock/bin/pip-compile
	@$(COMPILE) --all-extras --output-file $(LOCK) $(ARGS) pyproject.toml
	@$(COMPILE) $(EXTRAS:%=--extra=%) --constraint $(LOCK) --output-file $(PRODUCTION) $(ARGS) pyproject.toml
	@$(COMPILE) --only-build-deps --build-deps-for wheel --constraint $(LOCK) --output-file $(BUILD) $(ARGS) pyproject.toml

COMPILE = CUSTOM_COMPILE_COMMAND="make lock" $(VENV)/lock/bin/pip-compile --quiet --strip-extras --generate-hashes \
  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links

$(VENV)/lock/bin/pip-compile: Makefile
	@$(PYTHON) -m venv $(VENV)/lock
	@$(VENV)/lock/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_TOOLS)
	@touch $@

# Where the database of advisories cannot be reached, it says so and fails: nothing was looked at then.
audit: $(VENV)/audit/bin/pip-audit
	@$< $(LOCK:%=--requirement=%) $(PRODUCTION:%=--requirement=%) $(BUILD:%=--requirement=%) --require-hashes --disable-pip --strict --progress-spinner off $(ARGS) || { \
	  echo "advisories were found, or the database of advisories was not reached: what it says stands above;" \
	  "ARGS=--vulnerability-service=osv asks another one" >&2; \
	  exit 1; }

$(VENV)/audit/bin/pip-audit: Makefile
	@$(PYTHON) -m venv $(VENV)/audit
	@$(VENV)/audit/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_AUDIT)
	@touch $@

changelog: $(VENV)/changelog/bin/towncrier
	@$< build --yes $(ARGS)

$(VENV)/changelog/bin/towncrier: Makefile
	@$(PYTHON) -m venv $(VENV)/changelog
	@$(VENV)/changelog/bin/python -m pip install --quiet --disable-pip-version-check $(TOWNCRIER)
	@touch $@

clean:
	@rm -rf $(VENV) .venv-orchestrators .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist var
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
