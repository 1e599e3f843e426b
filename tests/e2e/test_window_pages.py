"""The pages of a window and of a message as a person meets them: a real Chromium over a small store of their own."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest
from playwright.sync_api import Page, expect

from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.store import dialect, schema
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.batch import Batch, BatchKind, Drop
from hopwatch.probes.contract.ids import id_bytes
from tests.e2e.browser import REFRESH_MS, SEEN_WITHIN_MS
from tests.support.command_call import called
from tests.support.micro_batches import MicroBatches
from tests.support.spool import (
    WINDOW_POLICY,
    at_us,
    make_batch,
    observation_batch,
    pack_lags,
    window_ms,
    write_segment,
)
from tests.support.workspace import CONFIGURATION, Workspace

NODES: Final = ("a", "b", "c")
HOPS: Final = {
    node: {"lag_in_us": 2_000 * place + 1_000, "lag_out_us": 2_000 * place + 2_000} for place, node in enumerate(NODES)
}
MINUTES: Final = 12
A_MINUTE: Final = 200
LOSSY: Final = 1
"""The minute in which the last messages of b do not arrive at c."""
LOST: Final = 70
LATE: Final = 5
"""The minute of which b tells late, so that it is amended."""
HOLED: Final = 10
"""The minute in which a batch of c is missing and a drops observations."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return a place whose monitor has judged a clean minute, a lossy one, one that was amended and one with holes."""
    made = Workspace(tmp_path_factory.mktemp("window")).configure(CONFIGURATION.replace("a -> b", " -> ".join(NODES)))
    engine = dialect.create_engine(made.store_url)
    schema.prepare_store(engine)
    stream = MicroBatches({"orders": StreamConfig(Pathway.parse(" -> ".join(NODES)), WINDOW_POLICY)}, engine)
    spool = made.folder / "spool" / "0"
    stream.run(list(_in_time(spool)))
    stream.run([_words(spool / "20.seg", 1_000, seq=MINUTES)])
    stream.run([write_segment(spool / "30.seg", _told(LATE, "b"), arrival_us=at_us(1_060))])
    stream.run([_words(spool / "40.seg", 1_200, seq=MINUTES + 1)])
    engine.dispose()
    return made


def numbers(number: int) -> range:
    """Return the messages of a minute."""
    return range(number * A_MINUTE, (number + 1) * A_MINUTE)


def lost() -> list[str]:
    """Return the ids that were lost, as they are shown."""
    return sorted(id_bytes(one).hex() for one in numbers(LOSSY)[-LOST:])


def _in_time(folder: Path) -> Iterator[Path]:
    for number in range(MINUTES):
        batches = [_told(number, node) for node in NODES if (number, node) not in {(LATE, "b"), (HOLED, "c")}]
        yield write_segment(folder / f"{number:02d}.seg", *batches, arrival_us=at_us(60 * number + 70))


def _told(number: int, node: str) -> Batch:
    chosen = numbers(number)[:-LOST] if (number, node) == (LOSSY, "c") else numbers(number)
    drops = (Drop(window_ms(number), 3, "queue_full"),) if (number, node) == (HOLED, "a") else ()
    spans = {name: pack_lags(*[lag_us] * len(chosen)) for name, lag_us in HOPS[node].items()}
    through_us = at_us(60 * number + 65)
    told: dict[str, Any] = {"window_start_ms": window_ms(number), "seq": number, "complete_through_us": through_us}
    return observation_batch(chosen, node, drops=drops, **told, **spans)


def _words(path: Path, seconds: int, seq: int) -> Path:
    """Write that the probes are there, and that nothing happens."""
    batches = [make_batch(BatchKind.HEARTBEAT, node, seq=seq, complete_through_us=at_us(seconds)) for node in NODES]
    return write_segment(path, *batches, arrival_us=at_us(seconds))


def said_by(place: Workspace, *command: str) -> Any:  # noqa: ANN401 - what JSON holds
    """Return what a command says with ``--json``."""
    return json.loads(called(*command, "--config", str(place.config), "--json").stdout)


def test_a_person_follows_a_lost_message_to_its_journey(place: Workspace, url: str, page: Page) -> None:
    """From the stream's figures to the minute to the second page of its ids to the journey, and back to the minute."""
    page.goto(f"{url}?stream=orders&window=2026-01-01T00:{LOSSY:02d}:00Z")
    page.get_by_role("link", name="Everything about this minute").click()
    expect(page.locator(".hw-sum")).to_have_text("200 known = 130 delivered + 0 filtered + 0 rejected + 70 lost")
    expect(page.locator(".hw-ids tbody tr")).to_have_count(25)
    page.get_by_role("link", name="the next ones").click()
    expect(page.locator(".hw-ids tbody tr").first).to_contain_text(lost()[25])
    page.get_by_role("link", name=lost()[30]).click()
    expect(page.locator(".hw-journey")).to_be_visible()
    told = said_by(place, "find", str(UUID(hex=lost()[30])))
    shown = [row.split("\t")[:2] for row in page.locator(".hw-journey tbody tr").all_inner_texts()]
    assert [stamp["node"] for stamp in told["stamps"]] == ["a", "b"]
    assert shown == [["a", "in"], ["a", "out"], ["b", "in"], ["b", "out"], ["c", ""]]
    expect(page.locator(".hw-loud")).to_have_text("lost on its way to c")
    here = {"stream": "orders", "window_start": "2026-01-01T00:01:00Z", "node": "c"}
    assert told["lost"] == [here | {"message_id": lost()[30], "loss": 70, "loss_lower": 70, "stamp_count": 2}]
    page.get_by_role("link", name=re.compile("^orders, window")).click()
    expect(page.locator(".hw-ids tbody tr")).to_have_count(25)
    assert "node=c" in page.url


def test_the_csv_has_the_ids_of_the_report(place: Workspace, url: str, page: Page) -> None:
    """All of them and no other, whatever page is shown and whatever is looked for."""
    page.goto(f"{url}?page=window&stream=orders&window=2026-01-01T00:{LOSSY:02d}:00Z&part=2")
    with page.expect_download() as coming:
        page.get_by_role("button", name="CSV of all 70").click()
    rows = list(csv.DictReader(Path(coming.value.path()).read_text("utf-8").splitlines()))
    window = said_by(place, "report")["streams"][0]["windows"][LOSSY]
    assert coming.value.suggested_filename == "lost-orders-c-20260101T000100Z.csv"
    assert [row["message_id"] for row in rows] == window["nodes"][2]["lost_ids"] == lost()
    assert {row["last_seen"] for row in rows} == {"left b"}


def test_a_loss_has_the_command_that_sends_it_again(place: Workspace, url: str, page: Page) -> None:
    """A window with a sure loss shows the commands, which the program takes; one without shows none."""
    page.goto(f"{url}?page=window&stream=orders&window=2026-01-01T00:{LOSSY:02d}:00Z")
    page.get_by_role("button", name="Redrive").click()
    codes = page.locator('[data-testid="stPopoverBody"] code')
    expect(codes).to_have_count(2)
    find, send = codes.all_inner_texts()
    assert find == "hopwatch redrive --stream orders --node c --window 2026-01-01T00:01:00Z --dry-run"
    for told in (find, send):
        # The topic of the node before is not in this configuration: the losses were found, the flags were taken.
        done = called(*shlex.split(told)[1:], "--config", str(place.config), folder=place.folder)
        assert "messages that are lost at c are in the topic that b writes" in done.stdout + done.stderr, done
    page.goto(f"{url}?page=window&stream=orders&window=2026-01-01T00:00:00Z")
    expect(page.locator(".hw-title .hw-chip")).to_contain_text("CLEAN")
    assert page.get_by_role("button", name="Redrive").count() == 0


def test_an_id_is_looked_for_among_the_lost_and_copied(url: str, page: Page) -> None:
    """A search for a lost id is in the URL and survives a refresh, and the ids that are shown can be copied."""
    page.goto(f"{url}?page=window&stream=orders&window=2026-01-01T00:{LOSSY:02d}:00Z")
    box = page.get_by_label("Look for an id")
    box.fill(str(numbers(LOSSY)[-1]))
    box.press("Enter")
    page.wait_for_url(re.compile("find=399"), timeout=SEEN_WITHIN_MS)
    expect(page.locator(".hw-ids tbody tr")).to_have_count(1)
    page.wait_for_timeout(REFRESH_MS)
    expect(page.locator(".hw-ids tbody tr")).to_contain_text([lost()[-1]])
    page.get_by_role("button", name="Copy").first.click()
    expect(page.locator('[data-testid="stPopoverBody"] code')).to_have_text(lost()[-1])


def test_what_was_amended_and_what_was_hidden_is_told(url: str, page: Page) -> None:
    """The minute of which b told late says what that changed; the one with holes is UNKNOWN, and says whose."""
    page.goto(f"{url}?page=window&stream=orders&window=2026-01-01T00:{LATE:02d}:00Z")
    expect(page.locator(".hw-revision")).to_contain_text("Revision 1")
    expect(page.locator(".hw-revision + .hw-apart")).to_contain_text("unobserved 200 → 0")
    page.goto(f"{url}?page=window&stream=orders&window=2026-01-01T00:{HOLED:02d}:00Z")
    expect(page.locator(".hw-title .hw-chip")).to_contain_text("UNKNOWN")
    expect(page.locator(".hw-holes tbody tr")).to_contain_text(
        ["3 observations dropped: queue_full", "1 missing batch"]
    )
    page.get_by_role("link", name="← 2026-01-01 00:09 UTC").click()
    expect(page.locator(".hw-title .hw-chip")).to_contain_text("CLEAN")


def test_a_pasted_id_shows_its_journey(url: str, page: Page) -> None:
    """The journey of an id is in its URL, and an unknown id gets a line that says so."""
    page.goto(url)
    page.get_by_role("link", name="Find a message").click()
    box = page.get_by_label("Message id")
    box.fill("7")
    box.press("Enter")
    expect(page.locator(".hw-title .hw-chip")).to_contain_text("DELIVERED")
    expect(page.locator(".hw-journey tbody tr")).to_have_count(6)
    assert "id=7" in page.url
    box = page.get_by_label("Message id")
    box.fill("nobody")
    box.press("Enter")
    expect(page.get_by_text("Nothing is kept of 'nobody'")).to_be_visible()
