# OVERSUBSCRIBED: a pool that forks three computing processes for each core. None of them ever
# blocks; each waits for a core two thirds of its time.
#
# Checked on 2 cores of a virtual machine that others used too, in 1 s: `/proc/PID/schedstat` after
# 0.8 s: each of the 6 has run for 0.08 s and waited for a core for 0.68 to 0.70 s (others had most
# of the two cores). `perf stat`: 264 switches.
import os
import sys
import time


def compute(end):
    rounds = 0
    state = 1
    while time.monotonic() < end:
        for _ in range(10_000):
            state = state * 1103515245 % 2147483647
        rounds += 1
    return rounds


end = time.monotonic() + float(sys.argv[1])
children = []
for _ in range(3 * len(os.sched_getaffinity(0))):
    child = os.fork()
    if child == 0:
        compute(end)
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
print(len(children), "processes")
