// IDLE: a member of a cluster that tells three others every 100 ms that it lives, and notes whom it
// hears. It sleeps in `epoll_wait` until its timer or a datagram comes; nothing waits for it.
//
// Checked on 2 cores of a virtual machine that others used too, in 1.5 s: `perf stat`: 15 beats, 15
// switches, 2.4 ms of processor time. `strace -c -w`: 99.7 % epoll_wait, 57 calls.
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MEMBERS = 4, PERIOD_MS = 100 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

// All members are in this process, as in a test of a cluster. Member 0 has the timer.
int main(int count, char **arguments) {
    double end = now() + (count > 1 ? atof(arguments[1]) : 1.5);
    int sockets[MEMBERS], poll = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct sockaddr_in addresses[MEMBERS];
    double heard[MEMBERS] = {0};
    struct itimerspec period = {{0, PERIOD_MS * 1000000L}, {0, PERIOD_MS * 1000000L}};
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = MEMBERS};
    if (timerfd_settime(timer, 0, &period, NULL) != 0 ||
        epoll_ctl(poll, EPOLL_CTL_ADD, timer, &event) != 0)
        return 1;
    for (uint32_t member = 0; member < MEMBERS; member++) {
        socklen_t length = sizeof addresses[member];
        struct sockaddr_in any = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        sockets[member] = socket(AF_INET, SOCK_DGRAM, 0);
        event.data.u32 = member;
        if (bind(sockets[member], (void *)&any, sizeof any) != 0 ||
            getsockname(sockets[member], (void *)&addresses[member], &length) != 0 ||
            epoll_ctl(poll, EPOLL_CTL_ADD, sockets[member], &event) != 0)
            return 1;
    }
    long beats = 0, received = 0;
    while (now() < end) {
        uint64_t message = (uint64_t)beats;
        if (epoll_wait(poll, &event, 1, -1) != 1)
            continue;
        if (event.data.u32 < MEMBERS) {
            received += read(sockets[event.data.u32], &message, sizeof message) > 0;
            heard[event.data.u32] = now();
            continue;
        }
        if (read(timer, &message, sizeof message) != sizeof message)
            return 1;
        for (int member = 1; member < MEMBERS; member++)
            sendto(sockets[0], &beats, sizeof beats, 0, (void *)&addresses[member],
                   sizeof addresses[member]);
        beats++;
    }
    printf("%ld beats, %ld received, the last %.0f ms ago\n", beats, received,
           (now() - heard[MEMBERS - 1]) * 1e3);
    return 0;
}
