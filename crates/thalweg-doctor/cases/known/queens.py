# CPU-COMPUTE: counts the ways to place queens on a board, in pure Python on one thread.
#
# Checked on 2 cores of a virtual machine: `time`: 1.33 s user, 0.01 s system in 1.5 s, on a machine
# that others used as well.
import sys
import time


def place(size, row, columns, rising, falling):
    if row == size:
        return 1
    ways = 0
    for column in range(size):
        taken = columns >> column | rising >> row + column | falling >> row - column + size
        if not taken & 1:
            ways += place(size, row + 1, columns | 1 << column,
                          rising | 1 << row + column, falling | 1 << row - column + size)
    return ways


end = time.monotonic() + float(sys.argv[1])
boards = 0
while time.monotonic() < end:
    ways = place(6, 0, 0, 0, 0)
    boards += 1
print(boards, "boards of", ways, "ways")
