// Order path of a gateway in three threads: session -> risk -> encoder -> back to session.
// One order is under way at a time; each hand-over is an eventfd write and a blocking read,
// and each stage has only some nanoseconds of work.
// check by hand: time gave 224567 voluntary switches in 1.5 s (about 150 thousand a second), 0.11 s
// user, 1.29 s system; perf 46 % finish_task_switch, 47 % under __schedule; strace: as many 8-byte
// reads as writes (14023 each), no futex in the loop.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct order { uint64_t id, price, qty, flags; };

static struct order slot;            // the order under way
static int to_risk, to_encoder, to_session;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void ring(int fd) {
    uint64_t one = 1;
    if (write(fd, &one, sizeof one) != sizeof one) abort();
}

static void await(int fd) {
    uint64_t n;
    if (read(fd, &n, sizeof n) != sizeof n) abort();
}

static void *risk(void *arg) {
    (void)arg;
    for (;;) {
        await(to_risk);
        slot.flags = slot.price * slot.qty > 5000000 ? 2 : 1;
        int last = slot.id == 0;
        ring(to_encoder);
        if (last) return NULL;
    }
}

static void *encoder(void *arg) {
    (void)arg;
    for (;;) {
        await(to_encoder);
        slot.flags |= (slot.id ^ slot.price ^ slot.qty) << 8;
        int last = slot.id == 0;
        ring(to_session);
        if (last) return NULL;
    }
}

int main(int argc, char **argv) {
    double end = now() + (argc > 1 ? atof(argv[argc - 1]) : 1.5);
    to_risk = eventfd(0, EFD_CLOEXEC);
    to_encoder = eventfd(0, EFD_CLOEXEC);
    to_session = eventfd(0, EFD_CLOEXEC);
    pthread_t r, e;
    pthread_create(&r, NULL, risk, NULL);
    pthread_create(&e, NULL, encoder, NULL);

    uint64_t sent = 0, refused = 0;
    int last = 0;
    while (!last) {
        last = now() >= end;
        slot = (struct order){ .id = last ? 0 : ++sent, .price = 9900 + sent % 200, .qty = sent % 600 };
        ring(to_risk);
        await(to_session);
        refused += (slot.flags & 0xff) == 2;
    }
    pthread_join(r, NULL);
    pthread_join(e, NULL);
    printf("orders %llu, refused %llu\n", (unsigned long long)sent, (unsigned long long)refused);
    return 0;
}
