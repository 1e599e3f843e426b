"""Airflow: a sensor that waits until a span of a stream is complete, in the triggerer or in a worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any, Final, NoReturn

from airflow.configuration import conf
from airflow.sdk import BaseHook, BaseSensorOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from hopwatch.client.errors import ResultsError
from hopwatch.client.results_client import ResultsClient
from hopwatch.client.sensors import COMPLETE, FAILED, ask_contract

CONNECTION_ID: Final = "hopwatch_default"
POLL_S: Final = 30.0


class CompletenessTrigger(BaseTrigger):  # type: ignore[misc]  # Airflow is not installed where types are checked
    """Trigger that ends when a contract is met, or will not be."""

    def __init__(self, contract: str, until: str, connection_id: str, poll_s: float) -> None:
        """Take what the sensor was given."""
        super().__init__()
        self.contract, self.until, self.connection_id, self.poll_s = contract, until, connection_id, poll_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what the triggerer makes the trigger from; the token is not in it."""
        values: dict[str, Any] = {"contract": self.contract, "until": self.until}
        values |= {"connection_id": self.connection_id, "poll_s": self.poll_s}
        return "hopwatch.integrations.airflow.CompletenessTrigger", values

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event: the state, and the answer in one line."""
        client = await sync_to_async(_build_client)(self.connection_id)
        while True:
            try:
                state, text = await asyncio.to_thread(ask_contract, client, self.contract, self.until)
            except ResultsError as error:
                state, text = FAILED, f"{self.contract}: the API refuses: {error}"
            self.log.info("%s", text)
            if state in {COMPLETE, FAILED}:
                yield TriggerEvent({"state": state, "text": text})
                return
            await asyncio.sleep(self.poll_s)


class CompletenessSensor(BaseSensorOperator):  # type: ignore[misc]  # as above
    """Sensor that succeeds when the span of a contract that ends at ``until`` is complete, and fails when it is lossy.

    The connection has the host, the port and, as its password, the token of a reader of ``hopwatch api``; its schema is
    http or https. While the API does not answer, the sensor waits; its ``timeout`` bounds all waiting. With
    ``soft_fail`` the task is skipped instead of failed.
    """

    template_fields: Sequence[str] = ("contract", "until")

    def __init__(
        self,
        *,
        contract: str,
        until: str = "{{ data_interval_end }}",
        connection_id: str = CONNECTION_ID,
        deferrable: bool | None = None,
        poke_interval: float = POLL_S,
        **more: Any,  # noqa: ANN401 - of Airflow's own
    ) -> None:
        """Take the contract, the moment in ISO 8601, and whatever a sensor of Airflow takes."""
        super().__init__(poke_interval=poke_interval, **more)
        self.contract, self.until, self.connection_id = contract, until, connection_id
        default = conf.getboolean("operators", "default_deferrable", fallback=False)
        self.deferrable = default if deferrable is None else deferrable

    def execute(self, context: Any) -> Any:  # noqa: ANN401 - Airflow's
        """Wait here, or in the triggerer."""
        if not self.deferrable:
            return super().execute(context)
        if not self.poke(context):
            trigger = CompletenessTrigger(self.contract, self.until, self.connection_id, float(self.poke_interval))
            self.defer(timeout=timedelta(seconds=self.timeout), trigger=trigger, method_name="execute_complete")
        return None

    def poke(self, context: Any) -> bool:  # noqa: ANN401, ARG002 - Airflow's
        """Return whether the contract is met.

        Raises:
            AirflowFailException: it will not be, or the API refuses: a retry changes nothing.
        """
        try:
            state, text = ask_contract(_build_client(self.connection_id), self.contract, self.until)
        except ResultsError as error:
            self._fail(f"{self.contract}: the API refuses: {error}")
        self.log.info("%s", text)
        if state == FAILED:
            self._fail(text)
        return state == COMPLETE

    def execute_complete(self, context: Any, event: dict[str, str]) -> None:  # noqa: ANN401, ARG002 - Airflow's
        """End as the trigger says."""
        self.log.info("%s", event["text"])
        if event["state"] != COMPLETE:
            self._fail(event["text"])

    def _fail(self, text: str) -> NoReturn:
        if self.soft_fail:
            raise AirflowSkipException(text)
        raise AirflowFailException(text)


def _build_client(connection_id: str) -> ResultsClient:
    found = BaseHook.get_connection(connection_id)
    scheme = found.schema or "http"
    url = f"{scheme}://{found.host}:{found.port or (443 if scheme == 'https' else 8082)}"
    return ResultsClient(url, token=found.password or "")
