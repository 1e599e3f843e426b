"""Traffic rating: the highest rate at which a stream keeps a target, found by open-loop load.

Pure are the target, the intervals, the judgement of a step, the search and the finding of what saturates; sender,
receivers, observations and processes are thin edges around them.
"""
