# The standby for sync_standby.rs: takes a record of 20 bytes, needs DELAY seconds to make it
# durable, acknowledges its number. One primary at a time.
# Ends when its parent is gone, or after ten minutes.
import os, socket, time

DELAY = float(os.environ.get("DELAY", 0.008))
parent = os.getppid()
server = socket.create_server(("127.0.0.1", 39483))
server.settimeout(1)
print("ready", flush=True)
end = time.monotonic() + 600
while time.monotonic() < end and os.getppid() == parent:
    try:
        primary, _ = server.accept()
    except TimeoutError:
        continue
    primary.settimeout(5)
    primary.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while record := primary.recv(20, socket.MSG_WAITALL):
            if len(record) < 20:
                break
            time.sleep(DELAY)
            primary.sendall(record[:8])
    except OSError:
        pass
    primary.close()
