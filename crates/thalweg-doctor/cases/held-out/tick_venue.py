# The venue for tick_spinner.c: sends a tick over UDP some 300 times a second.
# Ends when its parent is gone, or after ten minutes.
import os, random, socket, struct, time

parent = os.getppid()
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.monotonic() + 600
print("ready", flush=True)
seq, bid = 0, 10000
while time.monotonic() < end and os.getppid() == parent:
    seq += 1
    bid += random.choice((-1, 0, 1))
    try:
        sock.sendto(struct.pack("<Qqq", seq, bid, bid + 2), ("127.0.0.1", 39471))
    except OSError:
        pass
    time.sleep(0.003)
