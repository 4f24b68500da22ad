// SPIN-STARVES-PEER: three ranks of a simulation on one machine, each with an OpenMP team for all
// of its cores, and OMP_WAIT_POLICY=active. A thread that is early at the end of a short loop spins
// in libgomp's barrier, on the core that the late thread of its team needs.
//
// Checked on 2 cores of a virtual machine, in 1.5 s: `perf stat`: 2.96 s user; 12,266 to 19,354
// steps a rank. `perf record`: 92 % of the samples at two addresses of libgomp, `objdump`: each
// beside a `pause`; 7 % in the loop.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, CELLS = 16384 };

static double cells[CELLS];

static long simulate(double seconds) {
    double end = omp_get_wtime() + seconds;
    long steps = 0;
    while (omp_get_wtime() < end) {
#pragma omp parallel for schedule(static)
        for (int cell = 0; cell < CELLS; cell++)
            cells[cell] = cells[cell] * 0.999 + cell * 0.001;
        steps++;
    }
    return steps;
}

int main(int count, char **arguments) {
    double seconds = count > 1 ? atof(arguments[1]) : 1.5;
    for (int rank = 0; rank < RANKS; rank++) {
        if (fork() == 0) {
            long steps = simulate(seconds);
            printf("rank %d: %ld steps, last cell %.1f\n", rank, steps, cells[CELLS - 1]);
            return 0;
        }
    }
    while (wait(NULL) > 0) {
    }
    return 0;
}
