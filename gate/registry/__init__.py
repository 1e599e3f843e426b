"""The registry: Avro schemas by subject and by fingerprint, and what a new one would break.

lint.py            refuses what would harm a decoder, before one sees it
avro_schema.py     a text and what it says: canonical form, fingerprint, meaning
compatibility.py   whether one schema reads what another wrote; Apache Avro's library decides
breaks.py          why not: which field, what breaks, what to do
differences.py     what one version says otherwise than another
python_code.py     a version as a typed module
subjects.py        what happens when somebody registers; pure, over a shelf
shelf.py           the seam to where schemas are kept
"""
