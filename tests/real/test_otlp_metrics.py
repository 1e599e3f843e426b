"""Monitor that sends its results to a receiver of OTLP as metrics."""

from __future__ import annotations

from pathlib import Path

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from tests.real.monitor_process import Monitor
from tests.real.program_folder import Workplace
from tests.support.http_receiver import Receiver, answers, receiving
from tests.support.spool import START_US, at_us, observation_batch, write_segment
from tests.support.workspace import closing_batches


def read_points(receiver: Receiver, name: str) -> dict[tuple[str, int], int]:
    """Return the values of a gauge by node and start of the window, in µs."""
    found = {}
    for posted in receiver.requests:
        request = ExportMetricsServiceRequest()
        request.ParseFromString(posted.body)
        for metric in request.resource_metrics[0].scope_metrics[0].metrics:
            if metric.name == name:
                for point in metric.gauge.data_points:
                    of = {one.key: one.value.string_value for one in point.attributes}
                    found[of["hopwatch.node"], point.start_time_unix_nano // 1_000] = point.as_int
    return found


def test_each_final_window_is_sent_as_metrics(tmp_path: Path) -> None:
    """Also those that a receiver did not take at first; to the path of the protocol, in protobuf."""
    batches = [observation_batch(range(10), "entrance"), observation_batch(range(9), "billing")]
    closing = closing_batches(seq=1, nodes=("entrance", "billing"))
    write_segment(tmp_path / "spool" / "0" / "0000000000.seg", *batches, *closing, arrival_us=at_us(400))
    with receiving(answers(503), answers(200)) as receiver:
        streams = f'[streams.orders]\npath = "entrance -> billing"\n[otlp]\nurl = "{receiver.url("")}"\n'
        monitor = Monitor(Workplace(tmp_path, "spool:./spool", streams=streams)).start()
        try:
            place = "billing", START_US
            # At first the missing message is in flight: the window is judged again, and sent again.
            monitor.until(lambda: read_points(receiver, "hopwatch.node.lost").get(place) == 1, "the metrics")
        finally:
            monitor.kill()
    assert receiver.connections > 1
    assert read_points(receiver, "hopwatch.node.seen")["entrance", START_US] == 10
    assert {one.path for one in receiver.requests} == {"/v1/metrics"}
    assert {one.headers["content-type"] for one in receiver.requests} == {"application/x-protobuf"}
