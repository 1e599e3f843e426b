"""Acceptance of delivery, in a small language of time: what receivers do when, and what people hear when."""

from __future__ import annotations

import json
import socket
import threading
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

import pytest
from sqlalchemy import Engine

from hopwatch.alerts.channels.channel import Failure
from hopwatch.alerts.channels.routing import Routing
from hopwatch.alerts.delivery.dispatcher import Dispatcher
from hopwatch.alerts.storage.acknowledgements import acknowledge_incident
from hopwatch.alerts.storage.history import Acknowledgement
from servers.postgres import Postgres
from tests.alerts.channels.open_channels import open_alertmanager
from tests.alerts.conftest import prepared
from tests.support.alert_scenario import BATCHES_PER_MINUTE, FIRING, RESOLVED, build_rules
from tests.support.channel import BUSY, ERROR, REFUSED, TIMEOUT, TLS, WRONG
from tests.support.clock import ManualClock
from tests.support.delivery_scenario import Post
from tests.support.http_receiver import answers, receiving
from tests.support.loss_rules import LOSS, ONLY_LOSS
from tests.support.notifications import notification
from tests.support.outbox import put, states
from tests.support.streams import STREAMS, a_drop
from tests.support.windows import at

KEYS: Final = {f"loss/page/{stream}" for stream in STREAMS}
DOWN: Final[dict[str, tuple[Failure, float]]] = {
    "refuses": (REFUSED, 0.0),
    "answers 500": (ERROR, 0.1),
    "answers 429": (BUSY, 0.1),
    "hangs": (TIMEOUT, 10.0),
    "bad TLS": (TLS, 0.1),
    "goes away for good in its own words": (Failure("HTTP 503", wait_s=1e9), 0.1),
}


def losses(engine: Engine, **more: Any) -> Post:  # noqa: ANN401 - fields of a post
    """Return a post office with a rule about losses alone."""
    return Post(build_rules(ONLY_LOSS, STREAMS), engine=engine, **more)


def test_a_drop_is_heard_at_once_and_so_is_its_end(store: Engine) -> None:
    """Once each, within the batch that tells it."""
    post = a_drop(losses(store))
    for key in KEYS:
        post.want(11, 11.1, FIRING, key).want(20, 20.1, RESOLVED, key)
    post.run(25)
    assert len(post.pager.asked) == 6


@pytest.mark.parametrize(("outcome", "takes_s"), DOWN.values(), ids=DOWN)
def test_a_receiver_that_is_away_for_ten_minutes_misses_nothing(
    outcome: Failure, takes_s: float, store: Engine
) -> None:
    """All begins and ends are heard within the longest wait after it is back, no incident is opened twice."""
    missed_nothing(losses(store), outcome, takes_s)


def test_the_same_holds_on_postgresql(postgres: Postgres) -> None:
    """Another store, the same deliveries."""
    with prepared(postgres.database()) as engine:
        missed_nothing(losses(engine), ERROR, 0.1)


def missed_nothing(post: Post, outcome: Failure, takes_s: float) -> None:
    """Let the pager be away from minute 10.5 to 20.5, over beginning and end."""
    a_drop(post).answer(10.5, 20.5, outcome, takes_s=takes_s)
    for key in KEYS:
        post.want(20.5, 31, FIRING, key).want(20.5, 31, RESOLVED, key)
    post.run(32)
    assert post.pager.opened == dict.fromkeys(KEYS, 1)
    assert (post.pager.open, post.pager.ends_of_nothing) == (set(), 0)
    assert states(post.engine) == {("pager", "sent"): 6}
    # Bounded: nobody who is down is hammered.
    assert len(post.pager.asked) < 60


def test_an_answer_that_is_lost_opens_no_second_incident(store: Engine) -> None:
    """The receiver has heard it, the sender does not know: it is sent again under the same key."""
    post = a_drop(losses(store)).answer(10.5, 12, TIMEOUT, takes_s=10, is_heard=True)
    for key in KEYS:
        post.want(10.9, 13, FIRING, key).want(20, 20.1, RESOLVED, key)
    post.run(25)
    assert post.pager.opened == dict.fromkeys(KEYS, 1)
    assert len(post.pager.heard) > len(post.pager.told) == 6


def test_the_second_channel_hears_what_the_first_does_not_take(store: Engine) -> None:
    """After a minute and a half; the first hears it too, once it is back, and both hear the end."""
    post = a_drop(losses(store, fallbacks={"pager": "mail"})).answer(10.5, 17, ERROR)
    for key in KEYS:
        post.want(12, 13, FIRING, key, by="mail").want(17, 22, FIRING, key)
        post.want(20, 20.1, RESOLVED, key, by="mail").want(20, 22.1, RESOLVED, key)
    post.run(25)


def test_the_second_channel_hears_of_what_is_over_already(store: Engine) -> None:
    """Handed over after the end: beginning and end, in order."""
    rules = build_rules(ONLY_LOSS + 'keep_firing_for = "1m"\n')
    post = Post(rules, engine=store, fallbacks={"pager": "mail"}).answer(0, 60, BUSY)
    post.push(1, lost={"b": 20}).push(2, 9)
    post.want(3, 6, FIRING, LOSS, by="mail").want(3, 6, RESOLVED, LOSS, by="mail").run(10)


def test_what_is_refused_is_handed_over_at_once(store: Engine) -> None:
    """The first channel is not asked again."""
    post = a_drop(losses(store, fallbacks={"pager": "mail"})).answer(0, 15, WRONG)
    for key in KEYS:
        post.want(11, 11.1, FIRING, key, by="mail").want(20, 20.1, RESOLVED, key, by="mail")
    post.run(25)
    assert [delivery.notification.event for _, delivery in post.pager.asked] == [FIRING] * 3 + [RESOLVED] * 3


def test_an_incident_that_somebody_has_taken_on_wakes_nobody_else(store: Engine) -> None:
    """An acknowledged incident is not handed over, and its own channel is retried for beginning and end."""
    post = Post(build_rules(ONLY_LOSS), engine=store, fallbacks={"pager": "mail"}).answer(10.5, 20, ERROR)
    post.push(0, 9).push(10, 24, lost={"b": 20}).push(25, 40)
    post.want(20, 25, FIRING, LOSS).want(30, 30.1, RESOLVED, LOSS)
    for number in range(67):
        post.step(number / BATCHES_PER_MINUTE)
    acknowledge_incident(store, LOSS, Acknowledgement("ann", at(11), ""))
    post.run(35, begin=67 / BATCHES_PER_MINUTE)
    assert post.receivers["mail"].asked == []


def test_a_storm_is_one_page(store: Engine) -> None:
    """5,000 nodes of twenty streams that break at once: one delivery."""
    streams = tuple(f"s{number:02}" for number in range(20))
    names = tuple(f"n{number:03}" for number in range(250))
    post = Post(build_rules(ONLY_LOSS, streams, " -> ".join(names)), engine=store)
    for stream in streams:
        post.push(1, stream=stream, names=names, lost=dict.fromkeys(names, 1_100), known=100_000)
    post.want(2, 2.1, FIRING, "loss/page/*").run(2.2, begin=1.9)
    ((_, delivery),) = post.pager.asked
    assert (delivery.notification.total, len(delivery.notification.alerts)) == (5_000, 20)


@pytest.mark.parametrize("period", [2, 7, 30])
def test_flapping_is_heard_a_bounded_number_of_times(period: int, store: Engine) -> None:
    """Eight hours of it, half of them with a receiver that fails."""
    post = Post(build_rules(ONLY_LOSS), engine=store).answer(0, 240, ERROR)
    for minute in range(480):
        post.push(minute, lost={"b": 0 if minute % period else 500})
        post.step(minute + 1)
    assert 1 <= len(post.pager.told) <= 10
    assert len(post.pager.heard) <= 10


def test_a_heartbeat_is_sent_only_while_the_watermark_moves(store: Engine) -> None:
    """Once a minute; a monitor that stands still is silent, however long its dispatcher lives."""
    post = Post(build_rules("[[alerts.rules]]\nkind = 'heartbeat'\n[alerts]\ndefaults = false\n"), engine=store)
    post.pager.again_after_s = 60
    post.push(0, 30).run(10)
    assert 8 <= len(post.pager.heard) <= 11
    heard = len(post.pager.heard)
    for number in range(60, 120):
        post.carry(number / BATCHES_PER_MINUTE)
    assert len(post.pager.heard) <= heard + 1
    post.run(25, begin=20)
    assert len(post.pager.heard) >= heard + 5


def test_a_heartbeat_that_fails_is_not_handed_over(store: Engine) -> None:
    """A heartbeat that fails is neither handed over nor given up."""
    rules = build_rules("[[alerts.rules]]\nkind = 'heartbeat'\n[alerts]\ndefaults = false\n")
    post = Post(rules, engine=store, fallbacks={"pager": "mail"}).answer(0, 15, WRONG).push(0, 30).run(25)
    assert post.receivers["mail"].asked == []
    assert len(post.pager.heard) >= 1


def test_what_stands_is_sent_again_until_its_end(store: Engine) -> None:
    """As Alertmanager wants it, and as long as it fails in between."""
    post = a_drop(losses(store)).answer(13, 15, ERROR)
    post.pager.again_after_s = 60
    for key in KEYS:
        post.want(11, 11.1, FIRING, key).want(20, 20.1, RESOLVED, key)
    post.run(40)
    assert post.pager.opened == dict.fromkeys(KEYS, 1)
    assert max(now_us for now_us, _ in post.pager.heard) < at(21)
    assert len(post.pager.heard) >= 3 * 7


@pytest.mark.parametrize(("resend", "down_s"), [("10s", 25), ("1m", 165)])
def test_an_alert_does_not_run_out_while_its_channel_is_tried_again(resend: str, down_s: int, store: Engine) -> None:
    """Alertmanager would tell people that it is over, and then page them again, for an outage that is shorter."""
    clock = ManualClock(at(6))
    taken: list[tuple[int, str, int]] = []

    def behave(sock: socket.socket, over: threading.Event) -> None:
        is_down = at(8.9) <= clock.now_us() < at(8.9 + down_s / 60)
        if not is_down:
            (told,) = json.loads(receiver.requests[-1].body)
            ends_us = round(datetime.fromisoformat(told["endsAt"]).timestamp() * 1e6)
            taken.append((clock.now_us(), told["labels"]["stream"], ends_us))
        answers(500 if is_down else 200)(sock, over)

    put(store, *[notification(stream=stream) for stream in (*STREAMS, "fees")], channels=("am",))
    with receiving(behave) as receiver:
        dispatcher = Dispatcher(store, Routing({"am": open_alertmanager(receiver, resend=resend)}), clock)
        while clock.now_us() < at(14):
            dispatcher.deliver_due()
            clock.advance(1)
    for stream in (*STREAMS, "fees"):
        heard = [(now_us, ends_us) for now_us, of, ends_us in taken if of == stream]
        assert len(heard) > 4
        assert all(now_us < ends_us for (_, ends_us), (now_us, _) in pairwise(heard))
