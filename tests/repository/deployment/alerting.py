"""Rules: what is measured is scraped, whoever is told is there, what Prometheus and Alertmanager read is mounted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import urlsplit

from hopwatch.monitor.settings import Settings
from hopwatch.monitor.settings.channels import AlertmanagerChannel
from tests.repository import ROOT
from tests.repository.deployment import commands, compose
from tests.repository.deployment.deployment import Deployment, dashboard_place, image_of, is_monitor
from tests.repository.deployment.variables import valid_settings

PORTS: Final = {"prom/prometheus": 9090, "prom/alertmanager": 9093}
"""The port that each image listens on."""
KEPT: Final = {"prom/prometheus": "--storage.tsdb.path", "prom/alertmanager": "--storage.path"}
"""The flag that says where each keeps its data."""
LISTENS: Final = "--web.listen-address"
CONFIG: Final = "--config.file"
OWN: Final = ("127.0.0.1", "localhost", "::1")
"""Names by which a service finds itself, and no other."""


def configurations_are_mounted(deployment: Deployment) -> Iterator[str]:
    """The file that a service is told to read is a mounted one, and so are the files of rules that it names."""
    for name in _servers(deployment):
        mounted = {target for _, target, _ in compose.mounts(deployment.services[name])}
        config = commands.option(deployment.services[name]["command"], CONFIG)
        if config not in mounted:
            yield f"{name}: {CONFIG}={config} is a file that is not mounted"
            continue
        for rules in _configuration(deployment, name).get("rule_files", []):
            if str(PurePosixPath(config).parent / rules) not in mounted:
                yield f"{name}: the rules {rules} are a file that is not mounted"


def targets_listen(deployment: Deployment) -> Iterator[str]:
    """Yield targets of Prometheus at which no service listens, and pages of metrics that it does not scrape."""
    offered, scraped = listening(deployment), set[str]()
    # Of a monitor whose settings are not valid another rule tells.
    unsettled = {name for name, one in _monitors(deployment).items() if one is None}
    for name in _servers(deployment):
        told = _configuration(deployment, name)
        targets = _targets(told.get("scrape_configs", []))
        for target in (*targets, *_targets(told.get("alerting", {}).get("alertmanagers", []))):
            host, _, port = target.rpartition(":")
            if (f"{name}:{port}" if host in OWN else target) not in offered and host not in unsettled:
                yield f"{name}: looks for {target}, where no service listens"
        scraped.update(targets)
    for name, chosen in _monitors(deployment).items():
        if chosen and chosen.metrics.listen and f"{name}:{chosen.metrics.listen.port}" not in scraped:
            yield f"{name}: serves metrics that nobody scrapes"


def channels_listen(deployment: Deployment) -> Iterator[str]:
    """The Alertmanagers of a monitor's channels are services."""
    offered = listening(deployment)
    for name, chosen in _monitors(deployment).items():
        channels = chosen.alerts.channels.values() if chosen else ()
        for channel in channels:
            places = channel.urls if isinstance(channel, AlertmanagerChannel) else ()
            for place in map(urlsplit, places):
                if place.netloc not in offered:
                    yield f"{name}: tells {place.netloc}, where no service listens"


def data_is_kept(deployment: Deployment) -> Iterator[str]:
    """Yield servers whose data is in no volume."""
    for name in _servers(deployment):
        service = deployment.services[name]
        flag = KEPT[image_of(service)]
        folder = commands.option(service["command"], flag)
        volumes = {target for source, target, _ in compose.mounts(service) if not source.startswith(".")}
        if folder not in volumes:
            yield f"{name}: {flag}={folder} is in no volume"


def listening(deployment: Deployment) -> set[str]:
    """Return the SERVICE:PORT at which metrics, dashboard, Prometheus and Alertmanager are found from elsewhere."""
    found = set()
    for name in _servers(deployment):
        service = deployment.services[name]
        told = commands.option(service["command"], LISTENS) or f":{PORTS[image_of(service)]}"
        found.add(f"{name}:{told.rpartition(':')[2]}")
    for name, chosen in _monitors(deployment).items():
        if chosen and chosen.metrics.listen and chosen.metrics.listen.host not in OWN:
            found.add(f"{name}:{chosen.metrics.listen.port}")
    for name, service in deployment.services.items():
        host, port = dashboard_place(service)
        if host and host not in OWN:
            found.add(f"{name}:{port}")
    return found


def configuration_file(deployment: Deployment, name: str) -> Path | None:
    """Return the file of the repository that is a server's configuration, none where it is not mounted or not there."""
    service = deployment.services[name]
    config = commands.option(service["command"], CONFIG)
    sources = [ROOT / source for source, target, _ in compose.mounts(service) if target == config]
    return next((source for source in sources if source.is_file()), None)


def _configuration(deployment: Deployment, name: str) -> dict[str, Any]:
    file = configuration_file(deployment, name)
    return compose.read(file.read_text("utf-8")) if file else {}


def _servers(deployment: Deployment) -> list[str]:
    return [name for name, service in deployment.services.items() if image_of(service) in PORTS]


def _monitors(deployment: Deployment) -> dict[str, Settings | None]:
    services = deployment.services.items()
    return {name: valid_settings(deployment, name) for name, service in services if is_monitor(service)}


def _targets(configs: list[dict[str, Any]]) -> list[str]:
    static = [one for config in configs for one in config.get("static_configs", [])]
    return [target for one in static for target in one["targets"]]


RULES: Final = (configurations_are_mounted, targets_listen, channels_listen, data_is_kept)
