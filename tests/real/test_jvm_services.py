"""Services on the JVM that know nothing of Hopwatch, with interceptors by configuration, over a real broker."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from hopwatch.demo.broker_cluster import JARS, JAVA
from servers.kafka import Kafka
from servers.process import PATIENCE_S
from tests.support.judged_spool import judge_spool

MESSAGES: Final = 200
SKIPPED: Final = 3
SHOP: Final = """
import java.util.Map;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.StringSerializer;

public class Shop {
    public static void main(String[] said) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", said[0],
            "interceptor.classes", "hopwatch.probe.kafka.StampingProducerInterceptor",
            "hopwatch.service", "shop", "hopwatch.sink", said[1]);
        var text = new StringSerializer();
        try (var producer = new KafkaProducer<String, String>(settings, text, text)) {
            for (int number = 0; number < Integer.parseInt(said[3]); number++) {
                producer.send(new ProducerRecord<>(said[2], 0, "key", String.valueOf(number)));
            }
        }
    }
}
"""
BILLING: Final = """
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

public class Billing {
    public static void main(String[] said) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", said[0], "max.poll.records", 10,
            "interceptor.classes", "hopwatch.probe.kafka.StampingConsumerInterceptor",
            "hopwatch.service", "billing", "hopwatch.sink", said[1]);
        int last = Integer.parseInt(said[3]) - 1;
        var text = new StringDeserializer();
        try (var consumer = new KafkaConsumer<String, String>(settings, text, text)) {
            var place = new TopicPartition(said[2], 0);
            consumer.assign(List.of(place));
            consumer.seek(place, 0);
            for (long offset = 0; offset < last; ) {
                for (var message : consumer.poll(Duration.ofSeconds(1))) {
                    offset = message.offset();
                }
                if (offset == 49) {
                    consumer.seek(place, 50 + Integer.parseInt(said[4]));  // the bug
                }
            }
        }
    }
}
"""


def start(folder: Path, name: str, script: str, *said: str) -> subprocess.Popen[str]:
    """Start a service from its source."""
    path = folder / f"{name}.java"
    path.write_text(script)
    jars = f"{JARS}/*:{JARS.with_name('probe')}/*"
    return subprocess.Popen(
        [*JAVA, "-cp", jars, str(path), *said], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def test_one(kafka: Kafka, tmp_path: Path) -> None:
    """x."""
    kafka.create_topic("jvm-orders")
    said = kafka.bootstrap, f"spool:{tmp_path / 'spool'}", "jvm-orders", str(MESSAGES)
    services = [start(tmp_path, "Billing", BILLING, *said, str(SKIPPED)), start(tmp_path, "Shop", SHOP, *said)]
    for service in services:
        _, told = service.communicate(timeout=PATIENCE_S)
        print(told)
        assert service.returncode == 0, told
    found = judge_spool(tmp_path, '[streams.jvm-orders]\npath = "shop -> billing"\nstamps = { shop = "out", billing = "in" }\n')
    for w in found["jvm-orders"]["windows"]:
        print(w)
    assert 0
