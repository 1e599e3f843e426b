"""Accounts of SDKs and services: how many messages may be missing, and up to when all is told."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray

from hopwatch.probes.taps.otlp import sdk_account, service_books
from hopwatch.probes.taps.otlp.sdk_account import PATIENCE_S, SdkAccount, ToldPeriod
from hopwatch.probes.taps.otlp.sdk_metrics import SdkReading
from hopwatch.probes.taps.otlp.service_books import ABSENT_S, ServiceBooks

S: Final = 1_000_000_000


def reading(
    at_s: int, ended: int, *, live: int = 0, unsampled: int = 0, dropped: int = 0, since: int = 1
) -> SdkReading:
    """Return a reading of an SDK of which so many spans have ended."""
    return SdkReading(at_s * S, since, ended + live, live, unsampled, dropped)


def told(account: SdkAccount, now_s: float = 0.0) -> list[ToldPeriod]:
    """Return the periods that are told."""
    return list(account.take_told(now_s))


def opened(*readings: SdkReading) -> SdkAccount:
    """Return an account with readings, and one more like the last, without which that is not told."""
    account = SdkAccount()
    for one in readings:
        account.add_reading(one, one.at_ns, 0.0)
    last = readings[-1]._replace(at_ns=readings[-1].at_ns + 10 * S)
    account.add_reading(last, last.at_ns, 0.0)
    return account


def spans(*times_s: tuple[float, float]) -> NDArray[np.int64]:
    """Return starts and ends as an account takes them."""
    return (np.array(times_s) * S).astype(np.int64)


def test_nothing_is_told_before_the_second_reading() -> None:
    """The first one says where the numbers begin."""
    account = opened(reading(100, 7))
    assert told(account, 1_000.0) == []
    assert account.told_since_ns is None


def test_spans_that_came_are_not_missing() -> None:
    """Those between two readings, wherever the numbers began."""
    account = opened(reading(100, 7), reading(110, 9))
    account.add_spans(spans((103, 104), (105, 106)), 0.0)
    assert told(account) == [ToldPeriod(100 * S, 110 * S, 0)]
    assert (account.told_since_ns, account.told_until_ns) == (100 * S, 110 * S)


def test_spans_that_did_not_come_are_missing_once_they_had_their_time() -> None:
    """An SDK sends them some seconds later than it counts them."""
    account = opened(reading(100, 7), reading(110, 9))
    account.add_spans(spans((103, 104)), 0.0)
    assert told(account, PATIENCE_S - 0.1) == []
    assert told(account, PATIENCE_S) == [ToldPeriod(100 * S, 110 * S, 1)]


@pytest.mark.parametrize(("at_s", "missing"), [(109.96, 1), (109.94, 0)])
def test_a_span_that_ends_close_to_a_reading_may_be_in_it_or_not(at_s: float, missing: int) -> None:
    """An account never says too little of what is missing, where readings did not agree so far."""
    account = opened(reading(100, 0), reading(110, 1))
    account.add_spans(spans((105, at_s)), 0.0)
    assert [period.missing for period in told(account, PATIENCE_S)] == [missing]


def test_a_span_that_begins_close_to_a_reading_may_hide_another() -> None:
    """The numbers of begun and of open spans are not read at once."""
    account = opened(reading(100, 0), reading(110, 0, live=1), reading(120, 1))
    account.add_spans(spans((110.01, 115)), 0.0)
    assert [period.missing for period in told(account, PATIENCE_S)] == [2, 0]


def test_readings_that_agree_with_what_came_leave_no_doubt() -> None:
    """Between the inner two of four; before them, every span close to a reading is one more that may be missing."""
    account = opened(reading(100, 0), reading(110, 2), reading(120, 3))
    account.add_spans(spans((101, 109.99), (102, 110), (112, 119.99)), 0.0)
    assert [period.missing for period in told(account, PATIENCE_S)] == [2, 0]


def test_readings_that_disagree_are_doubted_again() -> None:
    """One that is off says that more is missing than is, and then that less is."""
    account = opened(*(reading(100 + 10 * number, number + (number == 3)) for number in range(6)))
    account.add_spans(spans(*((105 + 10 * number, 109.99 + 10 * number) for number in range(6))), 0.0)
    assert [period.missing for period in told(account, PATIENCE_S)] == [1, 1, 2, 0, 1]


def test_open_spans_may_be_messages() -> None:
    """A message that is being handled has come, and its span says so only at its end."""
    account = opened(reading(100, 0), reading(110, 0, live=3))
    account.add_spans(spans((105, 115), (106, 110.01)), 0.0)
    assert told(account, PATIENCE_S - 0.1) == []
    assert [period.missing for period in told(account, PATIENCE_S)] == [2]


def test_a_span_that_stays_open_counts_once() -> None:
    """The windows of its message are those of the period in which it was open first."""
    account = opened(*(reading(100 + 10 * number, 0, live=number > 0) for number in range(5)))
    assert [period.missing for period in told(account, PATIENCE_S)] == [1, 0, 0, 0]


def test_an_open_span_does_not_stand_for_another() -> None:
    """One that came meanwhile leaves its place to the next one that is open."""
    account = opened(reading(100, 0), reading(110, 0, live=1), reading(120, 1, live=1), reading(130, 1, live=1))
    account.add_spans(spans((105, 115)), 0.0)
    assert [period.missing for period in told(account, PATIENCE_S)] == [0, 1, 0]


def test_open_spans_that_came_since_are_not_missing() -> None:
    """Beginning or ending close to the reading makes no difference."""
    account = opened(reading(100, 0), reading(110, 0), reading(120, 0, live=2), reading(130, 2))
    account.add_spans(spans((115, 125), (119.99, 122)), 0.0)
    assert [period.missing for period in told(account)] == [0, 0, 0]


def test_what_an_sdk_says_it_dropped_is_missing() -> None:
    """Even where as many spans came as have ended."""
    account = opened(reading(100, 0), reading(110, 1, dropped=3))
    account.add_spans(spans((104, 105)), 0.0)
    assert [period.missing for period in told(account)] == [3]


def test_with_a_sampler_nobody_knows_what_is_missing() -> None:
    """The period is a gap, and all is told anew from its end on."""
    account = opened(reading(100, 0), reading(110, 0, unsampled=1))
    assert told(account) == [ToldPeriod(100 * S, 110 * S, None)]
    assert account.told_since_ns == 110 * S


def test_an_sdk_of_which_more_comes_than_it_says_is_not_believed() -> None:
    """One that counts too few spans may have dropped any number."""
    account = opened(reading(100, 0), reading(110, 1))
    account.add_spans(spans((104, 105), (104, 106)), 0.0)
    assert told(account) == [ToldPeriod(100 * S, 110 * S, None)]


def test_a_process_that_began_anew_is_told_anew() -> None:
    """Its numbers begin at another moment: what the one before it did not tell is not known."""
    account = opened(reading(100, 50), reading(110, 3, since=2), reading(120, 4, since=2))
    account.add_spans(spans((114, 115)), 0.0)
    assert told(account) == [ToldPeriod(110 * S, 120 * S, 0)]
    assert account.told_since_ns == 110 * S


def test_an_old_reading_is_passed_over() -> None:
    """A collector may send one again."""
    account = opened(reading(100, 0), reading(110, 1), reading(110, 1), reading(105, 1))
    account.add_spans(spans((104, 105)), 0.0)
    assert told(account) == [ToldPeriod(100 * S, 110 * S, 0)]


def test_an_account_has_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many spans or readings that wait make it begin anew, and it tells no more than it knows."""
    monkeypatch.setattr(sdk_account, "MAX_SPANS", 3)
    monkeypatch.setattr(sdk_account, "MAX_READINGS", 2)
    account = opened(reading(100, 0), reading(110, 4))
    account.add_spans(spans(*[(104, 105)] * 4), 0.0)
    assert told(account, PATIENCE_S) == []
    account = opened(*(reading(100 + 10 * number, 0) for number in range(3)))
    for at_s in (140, 150):
        account.add_reading(reading(at_s, 0), at_s * S, 0.0)
    assert [period.until_ns for period in told(account, PATIENCE_S)] == [140 * S]


@pytest.mark.parametrize(("heard_s", "since_s", "until_s"), [(400, 100, 110), (50, 50, 50)])
def test_a_clock_that_is_off_tells_no_more_than_was_heard(heard_s: int, since_s: int, until_s: int) -> None:
    """One that is behind by its own time, one that is ahead up to when it was heard; a period is of both clocks."""
    account = SdkAccount()
    for at_s in (100, 110, 120):
        account.add_reading(reading(at_s, 0), heard_s * S, 0.0)
    (period,) = told(account)
    assert account.told_since_ns == max(100, heard_s) * S
    assert (period.since_ns, period.until_ns) == (since_s * S, max(110, heard_s) * S)
    assert until_s * S == account.told_until_ns


def service(instances: int, *names: str, until_s: int = 110) -> ServiceBooks:
    """Return the account of a service of whose SDKs each has told ten seconds."""
    account = ServiceBooks(instances)
    for name in names:
        for at_s in (until_s - 10, until_s, until_s + 1):
            account.add_reading(name, reading(at_s, 0), at_s * S, 0.0)
    return account


def test_a_service_is_told_while_all_that_may_run_are_heard() -> None:
    """Up to the moment up to which each of them has told all."""
    account = service(2, "a", "b")
    told_of = account.advance(0.0)
    assert (told_of.until_ns, told_of.has_gap) == (110 * S, False)
    account.add_reading("a", reading(120, 0), 120 * S, 0.0)
    assert account.advance(0.0).until_ns is None
    account.add_reading("b", reading(119, 0), 119 * S, 0.0)
    assert account.advance(0.0).until_ns == 111 * S


@pytest.mark.parametrize(("instances", "names"), [(2, ["a"]), (1, ["a", "b"]), (1, [""])], ids=["few", "many", "no id"])
def test_a_service_is_not_told_where_another_process_may_run(instances: int, names: list[str]) -> None:
    """Fewer or more are heard than run at once, or they cannot be told apart."""
    assert service(instances, *names).advance(0.0).until_ns is None


def test_a_process_that_is_replaced_leaves_a_gap() -> None:
    """One that nobody heard of may have run between the two."""
    account = service(1, "a")
    account.advance(0.0)
    for at_s in (120, 130, 140):
        account.add_reading("b", reading(at_s, 0), at_s * S, ABSENT_S)
    told_of = account.advance(ABSENT_S)
    assert (told_of.until_ns, told_of.has_gap) == (130 * S, True)


def test_a_service_has_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more SDKs than can be told apart the one that was there first makes room."""
    monkeypatch.setattr(service_books, "MAX_SDKS", 2)
    assert len(service(2, "a", "b", "c")._sdks) == 2
