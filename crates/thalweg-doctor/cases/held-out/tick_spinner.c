/* A strategy with a busy-spin wait, as low latency folk write it: the feed thread blocks on a
 * UDP socket and puts each tick into a ring; the strategy thread spins on the ring's sequence.
 * Some 300 ticks a second come, so the strategy does next to nothing but turn the loop; the
 * feed thread has the other core for itself.
 * Cause: SPIN-BURNS-CPU. The venue is tick_venue.py, started apart.
 * check by hand: perf gave 93% in strategy(), hardly any system calls but recv; schedstat gave
 * the feed thread 0.5% run and 0.2% run delay, wchan __skb_wait_for_more_packets; the spinner
 * was never seen asleep. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#define RING 1024
#define PORT 39471

struct tick {
    uint64_t seq;
    int64_t bid, ask;
};

static struct tick ring[RING];
static _Alignas(64) atomic_ulong published;
static _Alignas(64) atomic_int stop;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void *strategy(void *arg) {
    int64_t *position = arg, mean = 0;
    unsigned long next = 0;
    for (;;) {
        while (atomic_load_explicit(&published, memory_order_acquire) == next) {
            if (atomic_load_explicit(&stop, memory_order_relaxed))
                return NULL;
            __builtin_ia32_pause();
        }
        struct tick *t = &ring[next++ % RING];
        int64_t mid = (t->bid + t->ask) / 2;
        mean += (mid - mean) / 8;
        *position += mid < mean ? 1 : -1;
    }
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[argc - 1]) : 1.5;
    int64_t position = 0;
    pthread_t thread;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct timeval limit = {0, 200 * 1000};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (bind(fd, (struct sockaddr *)&at, sizeof at)) {
        perror("bind");
        return 1;
    }
    pthread_create(&thread, NULL, strategy, &position);
    double end = now() + seconds;
    unsigned long ticks = 0;
    while (now() < end) {
        struct tick t;
        if (recv(fd, &t, sizeof t, 0) != sizeof t)
            continue;
        ring[ticks % RING] = t;
        atomic_store_explicit(&published, ++ticks, memory_order_release);
    }
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    printf("%lu ticks, position %ld\n", ticks, position);
    return 0;
}
