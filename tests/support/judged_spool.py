"""Spool of real services, judged as ``hopwatch run --once`` does it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hopwatch.monitor import settings
from hopwatch.monitor.store import dialect, schema
from tests.support.micro_batches import run_once
from tests.support.report import reported


def judge_spool(folder: Path, streams: str, store: str = "sqlite:///./store.db") -> dict[str, dict[str, Any]]:
    """Return the streams of a report on the folder's ``spool``, by name; ``streams`` configures them."""
    config = folder / "hopwatch.toml"
    config.write_text(
        f'[transport]\nurl = "spool:./spool"\n[store]\nurl = "{store}"\n[monitor]\nworkdir = "./work"\n{streams}'
    )
    chosen = settings.load(config, flags={}, environ={})
    engine = dialect.create_engine(chosen.store.url)
    schema.prepare_store(engine)
    run_once(engine, chosen.stream_configs(), sorted((folder / "spool").rglob("*.seg")))
    engine.dispose()
    return {stream["stream"]: stream for stream in reported(chosen.store.url)["streams"]}
