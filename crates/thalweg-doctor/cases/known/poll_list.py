# SLEEP-POLLING: two threads hand requests and answers over in lists, and each looks again after a
# millisecond if there is nothing for it. A request that costs microseconds takes milliseconds.
#
# Checked on 2 cores of a virtual machine: `strace -f -c -w`: 98 % clock_nanosleep, 2,592 sleeps of
# 1.1 ms for 1,055 requests; `time`: 0.06 s of processor time in 1.5 s.
import sys
import threading
import time

requests, answers = [], []


def serve():
    while True:
        while not requests:
            time.sleep(0.001)
        request = requests.pop()
        if request is None:
            return
        answers.append(request * 2)


server = threading.Thread(target=serve)
server.start()
end = time.monotonic() + float(sys.argv[1])
served = 0
while time.monotonic() < end:
    requests.append(served)
    while not answers:
        time.sleep(0.001)
    answers.pop()
    served += 1
requests.append(None)
server.join()
print(served, "requests")
