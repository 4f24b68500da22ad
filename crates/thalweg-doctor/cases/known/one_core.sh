#!/bin/sh
# SPIN-STARVES-PEER with spin_lock.rs: runs a program on one core, as a small container would.
# one_core.sh COMMAND...; the core is the first that this shell may use.
#
# Checked: `Cpus_allowed_list` in `/proc/PID/status` of the program: one core. For the rest see
# spin_lock.rs.
allowed=$(taskset -cp $$ | sed 's/.*: //')
exec taskset -c "${allowed%%[-,]*}" "$@"
