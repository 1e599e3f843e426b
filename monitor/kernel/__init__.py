"""The pure core: arrays and values in, values out; no clock, no input or output, no environment, no randomness."""
