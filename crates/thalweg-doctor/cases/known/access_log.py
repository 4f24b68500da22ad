# CPU-COMPUTE: a gateway that logs each request with the `logging` module, straight to a file. It
# looks bound by a `write` for each line; but the time goes into the interpreter, which makes the
# line.
#
# Checked on 2 cores of a virtual machine that others used too, in 1.5 s: `perf stat`: 115,991
# lines, 1.19 s user, 0.15 s system, 75 switches. `strace -c`: a write and a getpid for each line;
# `perf record`: 12 % in the kernel, 81 % in the interpreter. Another run: 157,979 lines, and
# 177,093 with a handler that writes nothing.
import logging
import os
import sys
import time

handler = logging.FileHandler("access.log", mode="w")
handler.setFormatter(
    logging.Formatter("%(asctime)s %(levelname)s %(threadName)s %(name)s:%(lineno)d %(message)s")
)
log = logging.getLogger("gateway.access")
log.setLevel(logging.INFO)
log.addHandler(handler)
log.propagate = False

end = time.monotonic() + float(sys.argv[1])
requests = 0
while time.monotonic() < end:
    path = f"/orders/{requests * 7919 % 100_000}"
    log.info("%s %s %d %.3f ms", "GET", path, 200, requests % 50 / 10)
    requests += 1
    if requests % 20_000 == 0:
        handler.stream.seek(0)
handler.close()
os.remove("access.log")
print(requests, "requests")
