"""Change records as Debezium's documentation shows them, without the schema that may stand around them.

Each is from the section of that name ("Change event values", "Transaction metadata", "Schema change topic") of the page
of its connector at https://debezium.io/documentation/reference/stable/connectors/ (Apache License 2.0). Placeholders,
comments and commas that no parser takes are left out.
"""

from __future__ import annotations

import json
from typing import Any, Final

MYSQL_SOURCE: Final[dict[str, Any]] = {
    "version": "2.7.0.Final", "connector": "mysql", "name": "mysql-server-1", "snapshot": False, "db": "inventory",
    "table": "customers", "server_id": 223344, "gtid": None, "file": "mysql-bin.000003", "row": 0, "thread": 7,
}  # fmt: skip
ANNE: Final = {"id": 1004, "first_name": "Anne", "last_name": "Kretchmar", "email": "annek@noanswer.org"}
ANNE_MARIE: Final = ANNE | {"first_name": "Anne Marie"}
MYSQL_KEY: Final = {"id": 1004}
MYSQL_UPDATE: Final[dict[str, Any]] = {
    "before": ANNE,
    "after": ANNE_MARIE,
    "source": MYSQL_SOURCE | {
        "ts_ms": 1465581029100, "pos": 484, "query": "UPDATE customers SET first_name='Anne Marie' WHERE id=1004",
    },
    "op": "u",
    "ts_ms": 1465581029523,
}  # fmt: skip
MYSQL_DELETE: Final[dict[str, Any]] = {
    "before": ANNE_MARIE,
    "after": None,
    "source": MYSQL_SOURCE | {"ts_ms": 1465581902300, "pos": 805, "query": "DELETE FROM customers WHERE id=1004"},
    "op": "d",
    "ts_ms": 1465581902461,
}

POSTGRESQL_SOURCE: Final[dict[str, Any]] = {
    "version": "2.7.0.Final", "connector": "postgresql", "name": "PostgreSQL_server", "snapshot": False,
    "db": "postgres", "schema": "public", "table": "customers", "txId": 556, "xmin": None,
}  # fmt: skip
POSTGRESQL_KEY: Final = {"id": 1}
POSTGRESQL_UPDATE: Final[dict[str, Any]] = {
    "before": {"id": 1},
    "after": ANNE_MARIE | {"id": 1},
    "source": POSTGRESQL_SOURCE | {
        "ts_ms": 1559033904863, "ts_us": 1559033904863769, "ts_ns": 1559033904863769000, "lsn": 24023128,
    },
    "op": "u",
    "ts_ms": 1465584025523,
    "ts_us": 1465584025523514,
    "ts_ns": 1465584025523514964,
}  # fmt: skip
POSTGRESQL_DELETE: Final[dict[str, Any]] = {
    "before": {"id": 1},
    "after": None,
    "source": POSTGRESQL_SOURCE | {
        "ts_ms": 1559033904863, "ts_us": 1559033904863852, "ts_ns": 1559033904863852000, "lsn": 46523128,
    },
    "op": "d",
    "ts_ms": 1465581902461,
    "ts_us": 1465581902461496,
    "ts_ns": 1465581902461496187,
}  # fmt: skip
POSTGRESQL_TRUNCATE: Final[dict[str, Any]] = {
    "source": POSTGRESQL_SOURCE | {
        "ts_ms": 1559033904863, "ts_us": 1559033904863112, "ts_ns": 1559033904863112000, "lsn": 46523128,
    },
    "op": "t",
    "ts_ms": 1559033904961,
}  # fmt: skip
POSTGRESQL_MESSAGE: Final[dict[str, Any]] = {
    "source": POSTGRESQL_SOURCE | {
        "ts_ms": 1559033904863, "ts_us": 1559033904863879, "ts_ns": 1559033904863879000, "schema": "", "table": "",
        "lsn": 46523128, "txId": None,
    },
    "op": "m",
    "ts_ms": 1559033904961,
    "message": {"prefix": "foo", "content": "Ymfy"},
}  # fmt: skip

SQLSERVER_KEY: Final = {"id": 1005}
SQLSERVER_UPDATE: Final[dict[str, Any]] = {
    "before": {"id": 1005, "first_name": "john", "last_name": "doe", "email": "john.doe@example.org"},
    "after": {"id": 1005, "first_name": "john", "last_name": "doe", "email": "noreply@example.org"},
    "source": {
        "version": "2.7.0.Final", "connector": "sqlserver", "name": "server1", "ts_ms": 1559729995937,
        "ts_us": 1559729995937000, "ts_ns": 1559729995937000000, "snapshot": False, "db": "testDB", "schema": "dbo",
        "table": "customers", "change_lsn": "00000027:00000ac0:0002", "commit_lsn": "00000027:00000ac0:0007",
        "event_serial_no": "2",
    },
    "op": "u",
    "ts_ms": 1559729998706,
}  # fmt: skip
SQLSERVER_SCHEMA_CHANGE: Final[dict[str, Any]] = {
    "source": {
        "version": "2.7.0.Final", "connector": "sqlserver", "name": "server1", "ts_ms": 0, "snapshot": "true",
        "db": "testDB", "schema": "dbo", "table": "customers", "change_lsn": None,
        "commit_lsn": "00000025:00000d98:00a2", "event_serial_no": None,
    },
    "ts_ms": 1588252618953,
    "databaseName": "testDB",
    "schemaName": "dbo",
    "ddl": None,
    "tableChanges": [
        {"type": "CREATE", "id": '"testDB"."dbo"."customers"', "table": {"primaryKeyColumnNames": ["id"]}},
    ],
}  # fmt: skip

MONGODB_KEY: Final = {"id": "1004"}
MONGODB_UPDATE: Final[dict[str, Any]] = {
    "op": "u",
    "ts_ms": 1465491461815,
    "before": '{"_id": {"$numberLong": "1004"},"first_name": "unknown","last_name": "Kretchmar"}',
    "after": '{"_id": {"$numberLong": "1004"},"first_name": "Anne Marie","last_name": "Kretchmar"}',
    "updateDescription": {
        "removedFields": None, "updatedFields": '{"first_name": "Anne Marie"}', "truncatedArrays": None,
    },
    "source": {
        "version": "2.7.0.Final", "connector": "mongodb", "name": "fulfillment", "ts_ms": 1558965508000,
        "ts_us": 1558965508000000, "ts_ns": 1558965508000000000, "snapshot": False, "db": "inventory", "rs": "rs0",
        "collection": "customers", "ord": 1, "h": None, "tord": None, "stxnid": None, "txnNumber": 1,
        "lsid": '{"id": {"$binary": "FA7YEzXgQXSX9OxmzllH2w==","$type": "04"},"uid": {"$binary": '
        '"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=","$type": "00"}}',
    },
}  # fmt: skip

TRANSACTION_BEGIN: Final[dict[str, Any]] = {
    "status": "BEGIN", "id": "0e4d5dcd-a33b-11ea-80f1-02010a22a99e:10", "ts_ms": 1486500577125, "event_count": None,
    "data_collections": None,
}  # fmt: skip
TRANSACTION_END: Final[dict[str, Any]] = {
    "status": "END", "id": "0e4d5dcd-a33b-11ea-80f1-02010a22a99e:10", "ts_ms": 1486500577691, "event_count": 2,
    "data_collections": [
        {"data_collection": "s1.a", "event_count": 1}, {"data_collection": "s2.a", "event_count": 1},
    ],
}  # fmt: skip
HEARTBEAT: Final = {"ts_ms": 1580390884335}

SAMPLES: Final[dict[str, tuple[object, dict[str, Any]]]] = {
    "mysql update": (MYSQL_KEY, MYSQL_UPDATE),
    "mysql delete": (MYSQL_KEY, MYSQL_DELETE),
    "postgresql update": (POSTGRESQL_KEY, POSTGRESQL_UPDATE),
    "postgresql delete": (POSTGRESQL_KEY, POSTGRESQL_DELETE),
    "postgresql truncate": (None, POSTGRESQL_TRUNCATE),
    "postgresql message": ({"prefix": "foo"}, POSTGRESQL_MESSAGE),
    "sqlserver update": (SQLSERVER_KEY, SQLSERVER_UPDATE),
    "mongodb update": (MONGODB_KEY, MONGODB_UPDATE),
}


def write_json(record: object, *, with_schema: bool = False) -> bytes | None:
    """Return a key or a value as the JSON converter of Kafka Connect writes it; None of none."""
    if record is None:
        return None
    return json.dumps({"schema": {"type": "struct"}, "payload": record} if with_schema else record).encode()
