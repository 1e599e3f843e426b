"""Faults of a deployment: one change each, and all problems that the rules then report."""

from __future__ import annotations

from typing import Any, Final

from hopwatch.monitor.settings.durations import ALLOWED_FORMS
from tests.repository.deployment.confinement import CONDITIONS

GONE: Final = object()
"""Stands for a key that is taken away."""

CONFIG: Final = "/etc/hopwatch/hopwatch.toml"
RUN: Final = f"hopwatch run --config {CONFIG}"
NO_NUMBER: Final = "'--partitions': Input should be a valid integer, unable to parse string as an integer"
NO_KEY: Final = "there is no such key; did you mean {!r}? Known here"
NO_WORKDIR: Final = f"{NO_KEY.format('workdir')}: workdir, master, tasks, spark, trigger, pulse"
TOPIC_URL: Final = "kafka://kafka:9092/hopwatch.observations"
TRANSPORT: Final = ("monitor", "environment", "HOPWATCH_TRANSPORT__URL")
STORE: Final = ("monitor", "environment", "HOPWATCH_STORE__URL")
METRICS: Final = ("monitor", "environment", "HOPWATCH_METRICS__LISTEN")
CHECK: Final = "find $HOPWATCH_MONITOR__WORKDIR/checkpoint/commits -name '[0-9]*' -mmin -2 | grep -q ."

CHANGES: Final[list[tuple[tuple[str, ...], Any, list[str]]]] = [
    # images
    (("kafka", "image"), "apache/kafka", ["kafka: the image 'apache/kafka' is not pinned to a version"]),
    (("postgres", "image"), "postgres:latest", ["postgres: the image 'postgres:latest' is not pinned to a version"]),
    (("postgres", "image"), "postgres:15", ["postgres: the image 'postgres:15' is not pinned to a version"]),
    (("kafka", "image"), "apache/kafka:4.0.0", ["kafka: the image is apache/kafka:4.0.0, the tests are of 4.1.1"]),
    (("topic", "image"), "hopwatch:0.0.9", ["topic: the image is hopwatch:0.0.9, the tests are of 0.1.0"]),
    # users and what they may do
    (("kafka", "user"), GONE, ["kafka: runs as root"]),
    (("postgres", "user"), "root", ["postgres: runs as root"]),
    (("postgres", "user"), "0:999", ["postgres: runs as root"]),
    (("monitor", "user"), "10002:10002", ["monitor: runs as 10002:10002, the image is made for 10001:10001"]),
    (("kafka", "cap_drop"), ["NET_RAW"], ["kafka: has capabilities, or may gain privileges"]),
    (("topic", "security_opt"), GONE, ["topic: has capabilities, or may gain privileges"]),
    (("monitor", "read_only"), False, ["monitor: its root file system can be written"]),
    (("postgres", "deploy"), GONE, ["postgres: has no limit on processors or memory"]),
    (("kafka", "logging"), GONE, ["kafka: its log has no bound"]),
    # health and order
    (
        ("monitor", "healthcheck"),
        GONE,
        ["monitor: goes on, and has no healthcheck"],
    ),
    (
        ("monitor", "healthcheck", "test"),
        ["CMD", "hopwatch", "report"],
        [f"monitor: its healthcheck is not that of the image: {CHECK}"],
    ),
    (("topic", "healthcheck"), GONE, ["topic: ends, and has a healthcheck, if only that of its image"]),
    (
        ("postgres", "healthcheck"),
        {},
        [
            "postgres: goes on, and has no healthcheck",
            "monitor: waits for postgres to be healthy, which has no healthcheck",
            "dashboard: waits for postgres to be healthy, which has no healthcheck",
        ],
    ),
    (
        ("monitor", "depends_on", "zookeeper"),
        {"condition": "service_healthy"},
        ["monitor: depends on zookeeper, which is no service"],
    ),
    (
        ("topic", "depends_on", "kafka", "condition"),
        "service_started",
        [
            f"topic: waits for kafka to be service_started, which is none of {', '.join(CONDITIONS)}",
        ],
    ),
    (
        ("topic", "depends_on", "kafka", "condition"),
        "service_completed_successfully",
        ["topic: waits for kafka, which never comes to service_completed_successfully"],
    ),
    (("monitor", "depends_on", "postgres"), GONE, ["monitor: does not wait for postgres"]),
    # commands
    (
        ("monitor", "command"),
        ["hopwatch", "watch", "--config", CONFIG],
        [
            f"monitor: hopwatch watch --config {CONFIG}: Error: No such command 'watch'.",
            "monitor: is started again whenever it ends, and its command is one that ends",
            "prometheus: looks for monitor:9464, where no service listens",
        ],
    ),
    (
        ("monitor", "command"),
        [*RUN.split(), "--forever"],
        [f"monitor: {RUN} --forever: Error: No such option: --forever"],
    ),
    (
        ("topic", "command", "2"),
        f"hopwatch topics create --partitions none --config {CONFIG}",
        [
            f"topic: hopwatch topics create --partitions none --config {CONFIG}: Error: Invalid value for {NO_NUMBER}",
        ],
    ),
    (("topic", "command", "2"), "hopwatch topics", ["topic: hopwatch topics: Error: no command is named"]),
    (
        ("topic", "command", "2"),
        f"hopwatch topics check --config {CONFIG} && make topic",
        ["topic: calls make, which the image hopwatch is not known to have"],
    ),
    (
        ("kafka", "healthcheck", "test"),
        ["CMD", "curl", "localhost:9092"],
        ["kafka: calls curl, which the image apache/kafka is not known to have"],
    ),
    (("topic", "command"), ["grep", "x"], ["topic: does not say what it runs of hopwatch"]),
    # files
    (
        ("topic", "volumes", "0"),
        f"./docker/hopwatch.yml:{CONFIG}:ro",
        ["topic: ./docker/hopwatch.yml is mounted, and is not in the repository"],
    ),
    (
        ("topic", "volumes", "0"),
        f"./docker/hopwatch.toml:{CONFIG}",
        [f"topic: {CONFIG} can be written, and is a file of the repository"],
    ),
    (
        ("topic", "command", "2"),
        "hopwatch topics check --config ./hopwatch.toml",
        ["topic: --config ./hopwatch.toml is a file that is not mounted"],
    ),
    (
        ("monitor", "volumes", "0"),
        GONE,
        [f"monitor: --config {CONFIG} is a file that is not mounted", "monitor: watches no stream"],
    ),
    (
        ("monitor", "volumes", "1"),
        "work:/var/lib/hopwatch",
        ["monitor: the volume work is not declared", "the volume monitor is not used"],
    ),
    (
        ("monitor", "volumes", "1"),
        "kafka:/var/lib/hopwatch",
        ["monitor: the volume kafka is that of kafka", "the volume monitor is not used"],
    ),
    (
        ("monitor", "volumes", "1"),
        "monitor:/var/lib/other",
        ["monitor: the work folder /var/lib/hopwatch is in no volume"],
    ),
    (
        ("postgres", "volumes", "0"),
        "postgres:/var/lib/postgresql/other",
        ["postgres: the database /var/lib/postgresql/data is in no volume"],
    ),
    (
        ("kafka", "environment", "KAFKA_LOG_DIRS"),
        GONE,
        ["kafka: KAFKA_LOG_DIRS by default is in no volume"],
    ),
    (("topic", "tmpfs"), GONE, ["topic: has no /tmp"]),
    (
        ("monitor", "tmpfs"),
        ["/tmp"],  # noqa: S108 - the container's own
        ["monitor: nothing can be run in its /tmp, where Spark unpacks libraries"],
    ),
    # ports
    (
        ("kafka", "ports"),
        ["29092:29092"],
        ["kafka: the port 29092 is open to all of the network"],
    ),
    (
        ("kafka", "ports"),
        ["127.0.0.1:9092:9092"],
        ["kafka: the port 9092 is published, and nothing is advertised there"],
    ),
    (
        ("kafka", "environment", "KAFKA_LISTENERS"),
        "INTERNAL://:9092,CONTROLLER://:9093",
        ["kafka: the port 29092 is published, and nothing is advertised there"],
    ),
    # variables
    (
        ("monitor", "environment", "HOPWATCH_WORKDIR"),
        "/var/lib/hopwatch",
        ["monitor: HOPWATCH_WORKDIR is nothing to the image hopwatch"],
    ),
    (
        ("postgres", "environment", "PGDATABASE"),
        "hopwatch",
        ["postgres: PGDATABASE is nothing to the image postgres"],
    ),
    (
        ("postgres", "environment", "POSTGRES_PASSWORD"),
        "hopwatch",
        ["postgres: POSTGRES_PASSWORD is written down, where it should be asked for"],
    ),
    (
        ("monitor", "environment", "PGPASSWORD"),
        "${POSTGRES_PASSWORD:-hopwatch}",
        ["monitor: PGPASSWORD is written down, where it should be asked for"],
    ),
    (
        STORE,
        "postgresql+psycopg://hopwatch:x@postgres:5432/hopwatch",
        ["monitor: HOPWATCH_STORE__URL holds a password"],
    ),
    (
        ("monitor", "environment", "HOPWATCH_STORE__URI"),
        "sqlite:///x.db",
        [
            f"monitor: environment HOPWATCH_STORE__URI: store.uri: {NO_KEY.format('url')}: url, retry_for, digests_for",
        ],
    ),
    (
        ("monitor", "environment", "HOPWATCH_MONITOR__TRIGGER"),
        "5",
        [
            f"monitor: environment HOPWATCH_MONITOR__TRIGGER: monitor.trigger: a duration is {ALLOWED_FORMS}; got 5",
        ],
    ),
    (
        TRANSPORT,
        TOPIC_URL.replace("//kafka", "//broker"),
        ["monitor: reads from broker:9092, where no service is", "monitor: does not wait for broker"],
    ),
    (TRANSPORT, TOPIC_URL.replace("9092", "9093"), ["monitor: reads from kafka:9093, where no service is"]),
    (
        STORE,
        "postgresql+psycopg://hopwatch@postgres:5433/hopwatch",
        ["monitor: writes to postgres:5433, where no service has that user and database"],
    ),
    (
        ("postgres", "environment", "POSTGRES_DB"),
        "other",
        [
            "topic: writes to postgres:5432, where no service has that user and database",
            "monitor: writes to postgres:5432, where no service has that user and database",
            "dashboard: writes to postgres:5432, where no service has that user and database",
        ],
    ),
    (("demo", "command", "2"), "--kafka=broker:9092", ["demo: is linked by broker:9092, where no service is"]),
    (("demo", "command", "3"), "--into=spool:./spool", ["demo: writes to spool:./spool, which nobody reads"]),
    (
        ("demo", "environment"),
        {"PGPASSWORD": "${POSTGRES_PASSWORD:?say}"},
        ["demo: has PGPASSWORD, which it has no use for"],
    ),
    (
        ("monitor", "environment", "HOPWATCH_MONITOR__TASKS"),
        "8",
        ["monitor: works on 8 tasks, and may use 2 processors"],
    ),
    (
        ("kafka", "environment", "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR"),
        GONE,
        ["kafka: KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR is 3, and the brokers are 1"],
    ),
    (
        ("kafka", "environment", "KAFKA_AUTO_CREATE_TOPICS_ENABLE"),
        GONE,
        ["kafka: makes topics by itself, which have no time of arrival"],
    ),
    # the dashboard
    (
        ("dashboard", "command", "5"),
        "127.0.0.1",
        ["dashboard: the port 8501 is published, and nothing is advertised there"],
    ),
    (
        ("dashboard", "command", "7"),
        "8502",
        [
            "dashboard: the port 8501 is published, and nothing is advertised there",
            "dashboard: its healthcheck does not ask http://127.0.0.1:8502/_stcore/health",
            "monitor: links of its alerts lead to http://localhost:8501/, where no dashboard is",
        ],
    ),
    (("dashboard", "ports", "0"), "8501:8501", ["dashboard: the port 8501 is open to all of the network"]),
    (
        ("dashboard", "ports"),
        GONE,
        ["monitor: links of its alerts lead to http://localhost:8501/, where no dashboard is"],
    ),
    # metrics and alerts
    (
        METRICS,
        "127.0.0.1:9464",
        ["prometheus: looks for monitor:9464, where no service listens"],
    ),
    (
        METRICS,
        "0.0.0.0:9465",
        [
            "prometheus: looks for monitor:9464, where no service listens",
            "monitor: serves metrics that nobody scrapes",
        ],
    ),
    (METRICS, GONE, ["prometheus: looks for monitor:9464, where no service listens"]),
    (
        ("alertmanager", "command", "3"),
        "--web.listen-address=:9094",
        [
            "alertmanager: the port 9093 is published, and nothing is advertised there",
            "prometheus: looks for alertmanager:9093, where no service listens",
            "monitor: tells alertmanager:9093, where no service listens",
        ],
    ),
    (
        ("alertmanager", "command", "0"),
        "--config.file=/etc/alertmanager/config.yml",
        ["alertmanager: --config.file=/etc/alertmanager/config.yml is a file that is not mounted"],
    ),
    (
        ("prometheus", "volumes", "1"),
        "./alerts/prometheus/hopwatch.rules.yml:/etc/prometheus/rules.yml:ro",
        ["prometheus: the rules hopwatch.rules.yml are a file that is not mounted"],
    ),
    (
        ("prometheus", "command", "1"),
        "--storage.tsdb.path=/data",
        ["prometheus: --storage.tsdb.path=/data is in no volume"],
    ),
    (("prometheus", "ports", "0"), "9090:9090", ["prometheus: the port 9090 is open to all of the network"]),
    (
        ("prometheus", "image"),
        "prom/prometheus:latest",
        ["prometheus: the image 'prom/prometheus:latest' is not pinned to a version"],
    ),
    (
        ("kafka", "user"),
        "${KAFKA_USER:-appuser}",
        ["${KAFKA_USER} is put in, and docs/DEPLOY.md does not tell of it"],
    ),
]
"""Where a service is changed, to what, and all that is then told."""

DOCKERFILE_CHANGES: Final[list[tuple[str, str, list[str]]]] = [
    (
        "ARG BASE=python:3.11.14-slim-bookworm",
        "ARG BASE=python:3-slim",
        4 * ["Dockerfile: the image 'python:3-slim' is not pinned to a version"],
    ),
    ("USER 10001:10001\n", "", ["Dockerfile: the image runs as root"]),
    (
        "COPY requirements/production.txt requirements/",
        "COPY requirements/all.txt requirements/",
        [
            "Dockerfile: requirements/all.txt is copied, and is not in the repository",
            "Dockerfile: requirements/all.txt is copied, and .dockerignore keeps it back",
        ],
    ),
    (
        "COPY demo demo",
        "COPY bench bench",
        ["Dockerfile: bench is copied, and .dockerignore keeps it back"],
    ),
    (
        'CMD ["hopwatch", "run",',
        'CMD ["hopwatch", "frobnicate",',
        [f"Dockerfile: hopwatch frobnicate --config {CONFIG}: Error: No such command 'frobnicate'."],
    ),
    (
        "CMD find $HOPWATCH",
        "CMD fd $HOPWATCH",
        [
            f"monitor: its healthcheck is not that of the image: {CHECK.replace('find', 'fd')}",
            "Dockerfile: its healthcheck calls fd, which the image is not known to have",
        ],
    ),
    (
        "HOPWATCH_MONITOR__WORKDIR=/var/lib/hopwatch",
        "HOPWATCH_MONITOR__WORKDIRS=/var/lib/hopwatch",
        [
            f"{name}: environment HOPWATCH_MONITOR__WORKDIRS: monitor.workdirs: {NO_WORKDIR}"
            for name in ("topic", "monitor", "dashboard", "demo")
        ],
    ),
]
"""What is replaced in the Dockerfile, by what, and all that is then told."""
