#!/bin/sh
# CPU-COMPUTE: a script that itself only waits. Its grandchild computes: queens.py, which a second
# shell starts in the background.
# wrapped.sh SECONDS
#
# Checked on 2 cores of a virtual machine: `time`: 1.43 s user, 0.00 s system in 1.5 s, children
# included.
here=$(dirname "$0")
sh -c 'python3 "$0/queens.py" "$1" & wait' "$here" "${1:-1.5}"
