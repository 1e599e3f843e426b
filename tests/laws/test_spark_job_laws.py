"""Laws of a Spark job's probe: whatever is killed, refused or late, only what the job has lost is lost."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from hopwatch import Probe
from hopwatch.monitor.store import dialect, schema
from hopwatch.testing import ManualClock
from tests.support.examples import examples
from tests.support.micro_batches import run_once
from tests.support.model_comparison import rules_of
from tests.support.report import reported
from tests.support.simulated_job import FlakySink, SimulatedJob

STREAM: Final = {"path": "shop -> enrich", "stamps": {"shop": "out"}, "transit": "150s"}
KILLS: Final = ("no", "no", "no", "before sending", "before commit", "after commit")
KEPT: Final = {"sink": "take", "loses_state": False}
STEPS: Final = st.fixed_dictionaries(
    {
        "orders": st.integers(0, 4),
        "wait_s": st.sampled_from([1, 5, 30, 30, 100, 400, 900]),
        "limit": st.sampled_from([1, 3, 100]),
        "killed": st.sampled_from(KILLS),
        "runs": st.integers(1, 2),
        "sink": st.sampled_from(["take", "take", "take", "refuse", "lose", "late"]),
        "is_down": st.booleans(),
        "loses_state": st.sampled_from([False, False, False, True]),
    }
)


class World:
    """A shop, a job, and the spool of both."""

    def __init__(self, folder: Path, *, has_state: bool, is_late: bool = False) -> None:
        """Start both."""
        self.folder, self.clock = folder, ManualClock()
        self.sink = FlakySink(folder / "spool", self.clock)
        self.state = folder / "state.json" if has_state else None
        self.shop_sink = FlakySink(folder / "shop", self.clock)
        self.shop = Probe("orders", "shop", self.shop_sink, probe="shop", clock=self.clock, flush_every_s=1e6)
        self.job = SimulatedJob(self.sink, self.clock, self.state, is_late=is_late)

    def step(self, plan: dict[str, Any]) -> None:
        """Send some orders, and run one trigger, unless the job is down."""
        for _ in range(plan["orders"]):
            self.clock.advance(0.5)
            number = len(self.job.orders)
            self.job.orders.append((number, self.clock.us, number % 3 > 0))
            self.shop.departed(number, self.clock.us)
        self.shop.flush()
        self.clock.advance(plan["wait_s"])
        self.sink.mode = plan["sink"]
        if plan["loses_state"] and self.state is not None and not plan["is_down"]:
            self.job.probe.close()
            self.state.unlink(missing_ok=True)
            self.job.start()
        if plan["is_down"]:
            self.job.probe.close()
            self.clock.advance(plan["wait_s"])
            self.job.start()
        self.job.trigger(plan["limit"], plan["killed"], plan["runs"])
        if plan["limit"] > 1:
            self.sink.deliver_late()

    def finish(self) -> None:
        """Let the job read all there is, with a sink that takes it, and be idle until all is judged."""
        self.shop.close()
        self.sink.mode = "take"
        self.sink.deliver_late()
        for _ in range(len(self.job.orders) + 3):
            self.job.trigger(100, "no", 1)
            self.clock.advance(6)
        self.clock.advance(600)
        self.job.trigger(100, "no", 1)

    def judge(self, name: str) -> list[dict[str, Any]]:
        """Return the windows, as they are if nothing more comes."""
        self.shop.flush()
        (self.folder / name).mkdir()
        segments = [path for sink in (self.shop_sink, self.sink) for path in sorted(sink.spool.glob("*.seg"))]
        url = f"sqlite:///{self.folder / name / 'store.db'}"
        engine = dialect.create_engine(url)
        schema.prepare_store(engine)
        run_once(engine, rules_of(self.folder / name, {"orders": STREAM}), segments)
        engine.dispose()
        streams = reported(url)["streams"]
        return [window for window in streams[0]["windows"] if window["known"]] if streams else []

    def count_lost(self) -> int:
        """Return how many orders the job has lost."""
        return sum(not leaves for _, _, leaves in self.job.orders)

    def close(self) -> None:
        """End both."""
        self.job.probe.close()
        self.shop.close()


@settings(max_examples=examples(400, every_run=40), deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=6), st.booleans(), st.booleans())
def test_no_order_is_lost_but_those_that_the_job_has_lost(
    plans: list[dict[str, Any]],
    has_state: bool,  # noqa: FBT001
    is_late: bool,  # noqa: FBT001
) -> None:
    """While it is behind, and when it has read all: no more orders are surely lost than the join has lost."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), has_state=has_state, is_late=is_late)
        for plan in plans:
            world.step(plan)
        before, lost_before = world.judge("before"), world.count_lost()
        world.finish()
        after = world.judge("after")
        world.close()
    assert sum(window["lost_lower"] for window in before) <= lost_before
    assert sum(window["lost_lower"] for window in after) <= world.count_lost()


@settings(max_examples=examples(200, every_run=30), deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=6))
def test_a_job_that_goes_on_by_its_state_is_as_if_nobody_had_killed_it(plans: list[dict[str, Any]]) -> None:
    """With a sink that takes all, and a state that is kept, each figure is exact, and no verdict is unknown."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), has_state=True)
        for plan in plans:
            # That a killed process has noted all is known by the number of the next micro-batch.
            is_unproven = world.job.is_unproven
            orders, is_down = max(plan["orders"], is_unproven), plan["is_down"] and not is_unproven
            world.step(plan | KEPT | {"orders": orders, "is_down": is_down})
        if world.job.is_unproven:
            world.step(plans[0] | KEPT | {"orders": 1, "killed": "no", "is_down": False})
        world.finish()
        windows = world.judge("after")
        world.close()
    orders = world.job.orders
    assert sum(window["known"] for window in windows) == len(orders)
    enrich = [node for window in windows for node in window["nodes"] if node["node"] == "enrich"]
    assert sum(node["duplicates_in"] + node["duplicates_out"] for node in enrich) == 0
    for name in ("lost", "lost_lower", "lost_upper"):
        assert sum(window[name] for window in windows) == world.count_lost()
    assert {window["verdict"] for window in windows} <= {"LOSSY", "CLEAN"}
