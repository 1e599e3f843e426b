"""Rules: variables are settings of the program or of an image, and name the hosts, ports and users that there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from sqlalchemy.engine import make_url

from hopwatch.monitor import settings
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.settings import Settings
from tests.repository import ROOT
from tests.repository.deployment import commands, compose
from tests.repository.deployment.deployment import Deployment, image_of, is_monitor, is_pipeline

VARIABLES: Final = {
    # libpq's own; a password in a URL would be shown to whoever lists processes or settings.
    "hopwatch": re.compile(r"HOPWATCH_[A-Z_]+__[A-Z_]+|PGPASSWORD|PATH"),
    "postgres": re.compile(r"POSTGRES_(USER|DB|PASSWORD)"),
    # The image makes a broker's property of each other one; tests/real holds their names.
    "apache/kafka": re.compile(r"KAFKA_[A-Z_]+"),
}
"""What each image makes something of."""
SECRET: Final = re.compile(r"PASSWORD|SECRET|TOKEN")
POSTGRES_PORT: Final = 5432
COPIES: Final = {
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "3",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "3",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "2",
}
"""How many copies a broker wants of its own topics when it is not told."""


def variables_are_known(deployment: Deployment) -> Iterator[str]:
    """Each variable is one that the image makes something of; a password is asked for and not written down."""
    for name, service in deployment.services.items():
        known = VARIABLES.get(image_of(service), re.compile("(?!)"))
        for variable in compose.environment(service):
            if not known.fullmatch(variable):
                yield f"{name}: {variable} is nothing to the image {image_of(service)}"
    for name, service in deployment.raw["services"].items():
        for variable, value in service.get("environment", {}).items():
            if SECRET.search(variable) and not re.fullmatch(r"\$\{\w+:\?[^}]+\}", str(value)):
                yield f"{name}: {variable} is written down, where it should be asked for"
            if re.search(r"://[^/@]*:[^/@]*@", str(value)):
                yield f"{name}: {variable} holds a password"


def settings_are_valid(deployment: Deployment) -> Iterator[str]:
    """Exactly the environment and the file of each service make settings, and a monitor watches something."""
    for name, service in deployment.own.items():
        try:
            chosen = _settings(deployment, name)
        except ConfigurationError as error:
            yield f"{name}: {error}"
            continue
        if is_monitor(service) and not chosen.streams:
            yield f"{name}: watches no stream"


def places_are_services(deployment: Deployment) -> Iterator[str]:
    """Topic and store are where services listen, under the names that they have there."""
    offered = {place for name in deployment.services for place in advertised(deployment, name)}
    for name, service in deployment.own.items():
        chosen = valid_settings(deployment, name)
        if chosen is None or is_pipeline(service):
            continue
        brokers = _brokers(chosen)
        yield from (f"{name}: reads from {broker}, where no service is" for broker in brokers if broker not in offered)
        store = make_url(chosen.store.url)
        server = compose.environment(deployment.services.get(store.host or "", {}))
        found = (server.get("POSTGRES_USER"), server.get("POSTGRES_DB"), POSTGRES_PORT)
        if (store.username, store.database, store.port) != found:
            yield f"{name}: writes to {store.host}:{store.port}, where no service has that user and database"


def the_pipeline_is_watched(deployment: Deployment) -> Iterator[str]:
    """The demo's nodes are linked by a broker that there is, and its probes write to the topic of the others."""
    offered = {place for name in deployment.services for place in advertised(deployment, name)}
    others = [valid_settings(deployment, name) for name, service in deployment.own.items() if not is_pipeline(service)]
    topics = {chosen.transport.url for chosen in others if chosen}
    for name, service in deployment.own.items():
        if not is_pipeline(service):
            continue
        broker, into = (commands.option(service["command"], flag) for flag in ("--kafka", "--into"))
        if broker not in offered:
            yield f"{name}: is linked by {broker}, where no service is"
        if topics and into not in topics:
            yield f"{name}: writes to {into}, which nobody reads"
        for variable in compose.environment(service):
            yield f"{name}: has {variable}, which it has no use for"


def the_monitor_waits(deployment: Deployment) -> Iterator[str]:
    """A monitor starts when all that it needs is there, and works on as many tasks as it may use processors."""
    for name, service in deployment.services.items():
        chosen = valid_settings(deployment, name) if is_monitor(service) else None
        if chosen is None:
            continue
        hosts = {make_url(chosen.store.url).host, *(broker.partition(":")[0] for broker in _brokers(chosen))}
        for host in sorted(map(str, hosts - set(service.get("depends_on", {})))):
            yield f"{name}: does not wait for {host}"
        cpus = service.get("deploy", {}).get("resources", {}).get("limits", {}).get("cpus")
        if str(chosen.monitor.tasks) != cpus:
            yield f"{name}: works on {chosen.monitor.tasks} tasks, and may use {cpus} processors"


def brokers_are_enough(deployment: Deployment) -> Iterator[str]:
    """Nothing wants more copies than there are brokers, and no topic is made by itself."""
    brokers = [name for name in deployment.services if advertised(deployment, name)]
    for name in brokers:
        environ = compose.environment(deployment.services[name])
        for variable, default in COPIES.items():
            copies = environ.get(variable, default)
            if int(copies) > len(brokers):
                yield f"{name}: {variable} is {copies}, and the brokers are {len(brokers)}"
        if environ.get("KAFKA_AUTO_CREATE_TOPICS_ENABLE") != "false":
            yield f"{name}: makes topics by itself, which have no time of arrival"


def advertised(deployment: Deployment, name: str) -> list[str]:
    """Return the HOST:PORT that a broker tells its clients, of those that it listens on."""
    environ = compose.environment(deployment.services[name])
    listening = {text.rpartition(":")[2] for text in environ.get("KAFKA_LISTENERS", "").split(",")}
    told = [text.partition("://")[2] for text in environ.get("KAFKA_ADVERTISED_LISTENERS", "").split(",")]
    return [place for place in told if place and place.rpartition(":")[2] in listening]


def valid_settings(deployment: Deployment, name: str) -> Settings | None:
    """Return the settings of a service, none where another rule tells that they are not valid."""
    try:
        return _settings(deployment, name)
    except ConfigurationError:
        return None


def _settings(deployment: Deployment, name: str) -> Settings:
    """Return the settings of a service.

    Raises:
        ConfigurationError: they are not valid.
    """
    # A file that is not there is told by another rule.
    files = [ROOT / source for source, _, _ in compose.mounts(deployment.services[name]) if source.endswith(".toml")]
    file = next((path for path in files if path.is_file()), None)
    return _loaded(file, frozenset(deployment.environment(name).items()))


@cache
def _loaded(file: Path | None, environ: frozenset[tuple[str, str]]) -> Settings:
    return settings.load(file, flags={}, environ=dict(environ))


def _brokers(chosen: Settings) -> list[str]:
    place = chosen.transport.kafka_place
    return place.brokers.split(",") if place else [chosen.transport.url]


RULES: Final = (
    variables_are_known,
    settings_are_valid,
    places_are_services,
    the_pipeline_is_watched,
    the_monitor_waits,
    brokers_are_enough,
)
