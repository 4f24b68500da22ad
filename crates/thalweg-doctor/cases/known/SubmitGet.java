// FUTEX-PARKING: a request handler that gives each tiny step to a pool of threads, and waits for
// its future before it goes on. The step takes less than a microsecond; the time goes into waking
// a worker for it, and the handler for the answer.
//
// Checked on 2 cores of a virtual machine, in 1.5 s: `perf stat`: 66,249 steps, 149,037 switches
// (2.2 for a step), 1.04 s system, 0.41 s user with the start of the JVM. `strace -f -c -w`: 99 %
// futex, and no other call in the loop.
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

public class SubmitGet {
    static long step(long number) {
        return number * 6364136223846793005L + 1;
    }

    public static void main(String[] arguments) throws Exception {
        double seconds = arguments.length > 0 ? Double.parseDouble(arguments[0]) : 1.5;
        long end = System.nanoTime() + (long) (seconds * 1e9);
        ExecutorService pool = Executors.newFixedThreadPool(4);
        long number = 1;
        long steps = 0;
        while (System.nanoTime() < end) {
            long input = number;
            number = pool.submit(() -> step(input)).get();
            steps++;
        }
        pool.shutdown();
        System.out.println(steps + " steps, " + number);
    }
}
