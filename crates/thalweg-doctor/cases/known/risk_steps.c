// FUTEX-PARKING: a risk engine that shares out each step of a simulation to two threads, between
// barriers. A thread's part takes less than a microsecond; the time goes into sleeping at the
// barrier, and into waking the other.
//
// Checked on 2 cores of a virtual machine, in 1.5 s: `perf stat`: 15,537 steps, 38,675 switches
// (2.5 for a step), 0.87 s system, 0.02 s user. `strace -f -c`: four futex for each step, and no
// other call in the loop. With one thread for both parts (`risk_steps alone 1.5`) 3,897,591 steps.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 2, POSITIONS = 256 };

static double values[POSITIONS], shocks[THREADS];
static pthread_barrier_t barrier;
static int stop;
static double end;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

// Moves the positions of one part by the shock of the step before, and gives the next shock.
static double move(int part, double shock) {
    double sum = 0;
    for (int i = part; i < POSITIONS; i += THREADS) {
        values[i] = values[i] * 0.999 + shock * 0.001 + i;
        sum += values[i];
    }
    return sum / POSITIONS;
}

static void *simulate(void *number) {
    int part = (int)(intptr_t)number;
    long steps = 0;
    double shock = 1;
    for (;; steps++) {
        shocks[part] = move(part, shock);
        if (part == 0)
            stop = now() >= end;
        pthread_barrier_wait(&barrier);
        shock = shocks[0] + shocks[1];
        if (stop)
            break;
        // Nobody may write the next shock before both have read this one.
        pthread_barrier_wait(&barrier);
    }
    return (void *)steps;
}

int main(int count, char **arguments) {
    end = now() + (count > 1 ? atof(arguments[count - 1]) : 1.5);
    long steps = 0;
    if (count > 2 && strcmp(arguments[1], "alone") == 0) {
        // The check of it: one thread does both parts, and waits for nobody.
        for (double shock = 1; now() < end; steps++)
            shock = move(0, shock) + move(1, shock);
    } else {
        pthread_t other;
        pthread_barrier_init(&barrier, NULL, THREADS);
        pthread_create(&other, NULL, simulate, (void *)1);
        steps = (long)simulate((void *)0);
        pthread_join(other, NULL);
    }
    printf("%ld steps, value %.1f\n", steps, values[0]);
    return 0;
}
