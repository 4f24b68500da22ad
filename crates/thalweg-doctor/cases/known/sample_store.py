# BLOCKING-IO: stores samples of sensors in SQLite, and commits each of them on its own. SQLite
# waits for the disk several times in each commit, and the program does nothing meanwhile.
#
# Checked on 2 cores of a virtual machine that others used too, in 1.5 s: `perf stat`: 2,210
# samples, 26,554 switches, 0.06 s user, 0.60 s system, and asleep for the rest. `strace -c -w`: 4
# fdatasync for each commit, 47 % of the time in calls. With `PRAGMA synchronous=OFF`, which leaves
# out nothing else, 24,519 samples: fdatasync takes 91 % of the time. All samples in one commit:
# 983,760.
import os
import sqlite3
import sys
import time

store = sqlite3.connect("samples.db", isolation_level=None)
store.execute("CREATE TABLE samples (sensor INTEGER, taken REAL, value REAL)")
end = time.monotonic() + float(sys.argv[1])
samples = 0
while time.monotonic() < end:
    row = (samples % 16, time.time(), samples * 0.25)
    store.execute("INSERT INTO samples VALUES (?, ?, ?)", row)
    samples += 1
store.close()
os.remove("samples.db")
print(samples, "samples")
