"""Retry policy of a delivery: local tries with full jitter, then retry topics, then rejection. Pure.

1. A message is tried up to ``local_tries`` times while it is in hand, within ``local_time_limit_s``. The waits are
   drawn evenly between 0 and a bound that doubles from ``backoff_base_s`` up to ``backoff_max_s`` (full jitter, as
   Marc Brooker's "Exponential Backoff and Jitter", AWS 2015, has it). A wait that the receiver asks for is the least.
2. Then it is deferred, to the tier that its tries lead to: each ``local_tries`` of them to the next tier, and all
   further ones to the last. If the receiver asks for a longer wait, the first tier that waits so long is taken.
3. A message that fails ``max_age_s`` or longer after its first request is rejected as expired. It is never rejected
   without a last try, and one that was not sent yet does not expire.
4. In order by key (3) holds, and nothing is deferred: local tries go on.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from hopwatch.deliver.policy import DeliveryPolicy, Order

EXPIRED: Final = "expired"
"""Beginning of the reason for rejecting a message that could not be delivered within its maximum age."""
_MAX_DOUBLINGS: Final = 32


class NextStep(Enum):
    """Steps after a failed try."""

    RETRY = "retry"
    DEFER = "defer"
    EXPIRE = "expire"


class NextTry(NamedTuple):
    """Decision after a failed try: a retry in hand, or a deferral to a tier, after ``wait_s``; or expiry."""

    step: NextStep
    wait_s: float = 0.0
    tier: int = 0


class FailedTry(NamedTuple):
    """Failure of a message.

    ``local_tries`` counts the requests since the message came in hand, for ``held_s`` now; ``tries`` those over all
    tiers. ``age_s`` is the time since the first request, and ``asked_wait_s`` the wait that the receiver asks for.
    """

    tries: int
    local_tries: int
    held_s: float
    age_s: float
    asked_wait_s: float = 0.0


def decide_retry(policy: DeliveryPolicy, failed: FailedTry, chance: float) -> NextTry:
    """Decide about a failed message; ``chance`` is drawn evenly from 0 to 1."""
    if failed.tries and failed.age_s >= policy.max_age_s:
        return NextTry(NextStep.EXPIRE)
    asked_wait_s = min(max(failed.asked_wait_s, 0.0), policy.retry_after_max_s)
    wait_s = max(chance * max_backoff_s(policy, failed.local_tries), asked_wait_s)
    if policy.order is Order.KEY:
        return NextTry(NextStep.RETRY, wait_s)
    if failed.local_tries < policy.local_tries and failed.held_s + wait_s <= policy.local_time_limit_s:
        return NextTry(NextStep.RETRY, wait_s)
    return decide_deferral(policy, failed.tries, asked_wait_s)


def decide_deferral(policy: DeliveryPolicy, tries: int, asked_wait_s: float = 0.0) -> NextTry:
    """Return the deferral of a message after so many tries."""
    last = len(policy.tiers_s) - 1
    tier = min(max(tries - 1, 0) // policy.local_tries, last)
    while tier < last and policy.tiers_s[tier] < asked_wait_s:
        tier += 1
    return NextTry(NextStep.DEFER, policy.tiers_s[tier], tier)


def max_backoff_s(policy: DeliveryPolicy, local_tries: int) -> float:
    """Return the bound of the wait after so many local tries."""
    doublings = min(max(local_tries - 1, 0), _MAX_DOUBLINGS)
    return min(policy.backoff_base_s * 2.0**doublings, policy.backoff_max_s)
