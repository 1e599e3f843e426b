"""Keys of the alerts on loss, and the configuration that has no other rule."""

from __future__ import annotations

LOSS, BURN = "loss/page/orders", "burn_rate/page/orders"
ONLY_LOSS = '[alerts]\ndefaults = false\n[[alerts.rules]]\nkind = "loss"\n'
