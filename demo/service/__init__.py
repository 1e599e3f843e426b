"""The service: events by HTTP, two nodes in transactions over Kafka, deliveries by HTTP to receivers that fail.

    sender ──► gate ──► topic ──► router ──► topic ──► norm ──► a topic each ──► deliver ──► two receivers
                                                                                    └ retrier

``run.py`` has the whole run; ``receiver_book.py`` says in which ways a receiver fails; ``account.py`` holds what the
sender and the receivers wrote down against each other, without a word from Hopwatch.
"""
