"""Import of files: ids and event times of CSV, JSON lines, Parquet and Avro, read in blocks as arrays.

Nothing here looks at a single row in Python unless it is broken, or its id is a text, which has to be hashed.
"""
