"""Tmp."""
import os, random, signal, time
from tests.real.test_deliver import build  # noqa
from servers.process import until

def test_stops(build, rep_):
    """Tmp."""
    place, receiver = build(None, "batch = 5")
    chance = random.Random(rep_ * 7 + int(os.environ["SEED"]))
    with place.running() as first:
        place.send([f"one{number}" for number in range(100)])
        until(lambda: len(receiver.acknowledged) == 100, "first", 100)
        with place.running() as second:
            end = time.monotonic() + chance.uniform(3, 25)
            while time.monotonic() < end:
                who = chance.choice([first, second])
                time.sleep(chance.choice([0.05, 0.2, 0.5, 1.5]))
                who.send_signal(signal.SIGSTOP)
                time.sleep(chance.choice([0.1, 0.5, 2, 7, 11]))
                who.send_signal(signal.SIGCONT)
            until(lambda: len(place.shared()) == 2 and all(place.shared()), "both have partitions", 90)
