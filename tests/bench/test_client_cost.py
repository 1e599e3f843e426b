"""Cost of clients of Kafka, as the bench shows it; that it measures them is seen where it runs, beside a broker."""

from __future__ import annotations

from bench.client_cost import ClientCost, build_table
from tests.bench.table_cells import drawn


def test_the_table_has_bare_clients_beside_stamped_ones() -> None:
    """A row for each client and step, with medians and their spread."""
    costs = [
        ClientCost("aiokafka", step, is_stamped, (1.0, 2.0, 4.0 + is_stamped), 3.0 + is_stamped)
        for step in ("send", "receive")
        for is_stamped in (False, True)
    ]
    (send,) = [[cell.strip() for cell in line] for line in drawn(build_table(costs)) if "send" in "".join(line)]
    assert send == ["aiokafka", "send", "2.0 (1.0 to 4.0)", "2.0 (1.0 to 5.0)", "3.0", "4.0"]
