"""Schema registry: Avro schemas by subject and by fingerprint, with checks of compatibility.

avro_schema.py     a schema: text, canonical form, fingerprint, meaning
compatibility.py   compatibility of two schemas, as decided by Apache Avro's library
breaks.py          reasons of an incompatibility: place, kind, both types
explanations.py    the same in words: what would break, what to do
differences.py     differences between two versions
python_code.py     generation of a typed Python module for a version
subjects.py        registration and look-up, over a schema store
schema_store.py    interface of the schema store
routes.py          HTTP routes, with the models of answers.py
confluent.py       HTTP routes of Confluent's API
"""
