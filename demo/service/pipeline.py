"""Processes of the service: started, killed at their moments or at random, restarted, and drained in order."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Final, Self

from hopwatch.demo.broker_cluster import BrokerCluster
from hopwatch.demo.entrance.settings import SenderSettings
from hopwatch.demo.layout import Layout
from hopwatch.demo.link import RESTART_EXIT_CODE
from hopwatch.demo.options import RunOptions, ServiceOptions
from hopwatch.demo.ports import hold_port
from hopwatch.demo.processes import PACKAGES, RESTART_AFTER_S, NodeDiedError, Processes, Program, read_last_line
from hopwatch.demo.service.kills import BROKER, KILLABLE, RandomKill
from hopwatch.demo.service.settings import ReceiverSettings, TransactionalSettings
from hopwatch.demo.service.topics import ServiceTopics
from hopwatch.demo.stream import GATE, RECEIVERS, SENDER
from hopwatch.demo.truth import count_entries
from hopwatch.monitor.errors import DependencyError

DRAIN: Final = "drain-"
RESUME: Final = "resume-"
RECEIVER: Final = "receiver-"
DRAIN_TIMEOUT: Final = "30m"
SENDER_PATIENCE_S: Final = 180.0
"""Several processes may be killed at once, and restarted on a machine that has no time for them."""
MAX_INTERRUPTIONS: Final = 50
"""Times that a process may ask to be started again: what fails so often fails for good."""
DOWN_AFTER_S: Final = 10.0
LINE: Final = (
    *(SENDER, *KILLABLE[:3]),
    *(f"{DRAIN}{name}" for name in RECEIVERS),
    *(f"{RESUME}{name}" for name in RECEIVERS),
    *KILLABLE[3:],
    *(f"{RECEIVER}{name}" for name in RECEIVERS),
)
"""The processes, in the order in which they end."""


class ServicePipeline(Processes):
    """The processes of one run of the service."""

    def __init__(  # noqa: PLR0913 - the parts of a run
        self,
        layout: Layout,
        topics: ServiceTopics,
        wishes: RunOptions,
        *,
        cluster: BrokerCluster | None = None,
        random_kills: Sequence[RandomKill] = (),
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the run's files and topics, the options, the brokers if they are its own, and the kills by progress."""
        # A delivery that was drained is paused; brokers that are not the run's would keep that.
        line = [name for name in LINE if cluster is None or not name.startswith(RESUME)]
        super().__init__(line, layout.log, wishes.faults.kills, now_s)
        self._layout, self._topics, self._wishes, self._cluster = layout, topics, wishes, cluster
        self._service = wishes.service or ServiceOptions()
        self._random_kills = list(random_kills)
        self._gate_port = 0
        self._held = ExitStack()
        self.kill_count = 0
        self.delivery_kill_count = 0
        self._interruptions = Counter[str]()
        self.interrupted: set[str] = set()
        """Processes that were killed, or ended to be started again."""

    def __enter__(self) -> Self:
        """Make the topics of the deliveries, and start the processes, the last one first.

        Raises:
            NodeDiedError: the topics could not be made.
        """
        self._gate_port, held = hold_port(0)
        self._held.enter_context(held)
        self._make_topics()
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End whatever still runs."""
        super().__exit__(kind, error, trace)
        self._held.close()

    @property
    def has_finished(self) -> bool:
        """Return whether all messages were sent, all are settled but a few, and all kills were made."""
        sender = self._processes[SENDER]
        return sender.poll() == 0 and not self._random_kills and not self._kills

    @property
    def ratio(self) -> float:
        """Return the share of the work that is done: messages answered and messages settled, of twice their count."""
        total = max(2 * self._service.message_count, 1)
        return min((self.acknowledged_count + self.settled_count) / total, 1.0)

    @property
    def acknowledged_count(self) -> int:
        """Return how many events the gate has answered for good."""
        return count_entries(self._layout.truth_log(GATE)) // 2

    @property
    def settled_count(self) -> int:
        """Return how many messages receivers have taken or refused, each time they did."""
        return sum(count_entries(self._layout.truth_log(name)) for name in RECEIVERS)

    def describe_program(self, name: str) -> Program:
        """Return the program of a process."""
        kind, _, receiver = name.partition("-")
        if kind == "receiver":
            return Program(["hopwatch.demo.service.receiver", self._receiver_settings(receiver).to_json()])
        if name == SENDER:
            return Program(["hopwatch.demo.nodes.sender", self._sender_settings().to_json()])
        commands = {
            "gate": ["gate", "--port", str(self._gate_port), "--allow-weak"],
            "deliver": ["deliver", "run", "--allow-weak", "--json"],
            "retrier": ["deliver", "retrier", "--allow-weak", "--json"],
            "drain": ["deliver", "drain", receiver, "--timeout", DRAIN_TIMEOUT],
            "resume": ["deliver", "resume", receiver],
        }
        if kind not in commands:
            return Program(["hopwatch.demo.service.node", self._node_settings(name).to_json()])
        command = ["hopwatch", *commands[kind], "--config", str(self._layout.config)]
        return Program(command, ends_by_signal=True, is_drainer=kind in {"drain", "resume"})

    def _start(self, name: str) -> None:
        if self._cluster is not None and name.startswith(BROKER):
            self._cluster.launch(int(name.removeprefix(BROKER)) - 1)
            self._restarts_s.pop(name, None)
        else:
            super()._start(name)

    def _next_kill(self) -> str | None:
        due = super()._next_kill()
        if due is not None or not self._random_kills or self.ratio < self._random_kills[0].at_ratio:
            return due
        if self._random_kills[0].process in self._restarts_s:
            return None
        return self._random_kills.pop(0).process

    def _kill(self, name: str) -> None:
        self.kill_count += 1
        self.delivery_kill_count += name in {"deliver", "retrier"}
        if self._cluster is not None and name.startswith(BROKER):
            self._cluster.kill(int(name.removeprefix(BROKER)) - 1)
            self._restarts_s[name] = self._now_s() + RESTART_AFTER_S
            return
        self.interrupted.add(name)
        super()._kill(name)

    def _is_interrupted(self, name: str) -> bool:
        # While a broker of three is away, a program that starts may find a topic without a leader, and says so by 3.
        codes = {RESTART_EXIT_CODE} | ({DependencyError.exit_code} if self._has_broker_kills else set())
        if self._processes[name].returncode not in codes or self._interruptions[name] >= MAX_INTERRUPTIONS:
            return False
        self._interruptions[name] += 1
        self.interrupted.add(name)
        return True

    def _may_end(self, name: str) -> bool:
        return name == SENDER and self._processes[name].returncode == 0

    @property
    def _has_broker_kills(self) -> bool:
        return self._cluster is not None and self._cluster.size > 1

    def _make_topics(self) -> None:
        log = self._layout.log("create-topics")
        asked = ["--config", str(self._layout.config), "--allow-weak"]
        asked += ["--replication", str(self._topics.replication), "--min-insync", str(self._topics.min_insync)]
        with log.open("ab") as said:
            done = subprocess.run(  # noqa: S603 - our own program, our own arguments
                [sys.executable, "-m", "hopwatch", "deliver", "create-topics", *asked],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd=PACKAGES,
                check=False,
            )
        if done.returncode:
            text = f"the topics of the deliveries cannot be made; {read_last_line(log)} ({log})"
            raise NodeDiedError(text, done.returncode)

    def _sender_settings(self) -> SenderSettings:
        return SenderSettings(
            folder=str(self._layout.folder),
            port=self._gate_port,
            rate_per_s=self._wishes.rate_per_s,
            seed=self._wishes.faults.seed,
            faults=self._wishes.faults.select_node(GATE),
            count=self._service.message_count,
            patience_s=SENDER_PATIENCE_S,
        )

    def _node_settings(self, node: str) -> TransactionalSettings:
        return TransactionalSettings(
            node=node,
            folder=str(self._layout.folder),
            ends=self._topics.ends(node),
            sink=self._layout.sink_url,
            seed=self._wishes.faults.seed,
            faults=self._wishes.faults.select_node(node),
        )

    def _receiver_settings(self, name: str) -> ReceiverSettings:
        (plan,) = (plan for plan in self._layout.deliveries if plan.name == name)
        is_down_once = name == RECEIVERS[0]
        return ReceiverSettings(
            name=name,
            log=str(self._layout.truth_log(name)),
            port=plan.receiver_port,
            seed=self._wishes.faults.seed + RECEIVERS.index(name),
            fail_ratio=self._service.fail_ratio,
            down_after_s=DOWN_AFTER_S,
            down_s=self._service.down_s if is_down_once else 0.0,
        )
