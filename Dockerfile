# The image of the program `hopwatch`: the monitor, and every other command.

# Debian 12 for all stages, as the tests run on it: later ones have no Java 17.
ARG BASE=python:3.11.14-slim-bookworm

# What Spark reads Kafka with.
FROM ${BASE} AS jars
RUN apt-get update \
    && apt-get install --yes --no-install-recommends maven \
    && rm -rf /var/lib/apt/lists/*
COPY jars/connector.pom.xml /build/
RUN mvn -q -B -f /build/connector.pom.xml org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
    -DoutputDirectory=/build/connector -DincludeScope=runtime

FROM ${BASE} AS wheel
WORKDIR /build
RUN python -m venv /build/tools
COPY requirements/build.txt requirements/
RUN /build/tools/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY probes probes
COPY gate gate
COPY deliver deliver
COPY scale scale
COPY rate rate
COPY monitor monitor
COPY alerts alerts
COPY display display
COPY dashboards dashboards
COPY cli cli
COPY demo demo
RUN /build/tools/bin/pip wheel --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir /build/dist .

FROM ${BASE} AS packages
WORKDIR /build
RUN python -m venv /opt/hopwatch
COPY requirements/production.txt requirements/
RUN /opt/hopwatch/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements/production.txt
COPY --from=wheel /build/dist /build/dist
RUN /opt/hopwatch/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --no-index /build/dist/*.whl
# What no command needs becomes no layer; the last command loads the largest of what is left.
COPY docker/pruning.py docker/pruned.txt docker/
RUN apt-get update \
    && apt-get install --yes --no-install-recommends binutils \
    && rm -rf /var/lib/apt/lists/* \
    && python -m pip --python /opt/hopwatch uninstall --yes --disable-pip-version-check pip setuptools \
    && python docker/pruning.py /opt/hopwatch/lib/python3.11/site-packages \
    && /opt/hopwatch/bin/python -c "import hopwatch.monitor.spark.job, hopwatch.monitor.outliers.step, pyspark.sql, streamlit"

FROM ${BASE}
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 hopwatch \
    && useradd --uid 10001 --gid 10001 --home-dir /var/lib/hopwatch --no-create-home --shell /usr/sbin/nologin hopwatch \
    && install --directory --owner=hopwatch --group=hopwatch /var/lib/hopwatch \
    && install --directory /etc/hopwatch
COPY --from=packages /opt/hopwatch /opt/hopwatch
COPY --from=jars /build/connector /opt/hopwatch/jars/connector
ENV PATH=/opt/hopwatch/bin:$PATH \
    HOPWATCH_MONITOR__WORKDIR=/var/lib/hopwatch
# Commands look for hopwatch.toml in the current folder.
WORKDIR /etc/hopwatch
USER 10001:10001
# Its own pulse makes the monitor finish a micro-batch every few seconds, even when all is quiet.
HEALTHCHECK --interval=10s --timeout=10s --retries=3 --start-period=120s \
    CMD find $HOPWATCH_MONITOR__WORKDIR/checkpoint/commits -name '[0-9]*' -mmin -2 | grep -q .
CMD ["hopwatch", "run", "--config", "/etc/hopwatch/hopwatch.toml"]
