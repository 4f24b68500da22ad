// SPIN-BURNS-CPU: an event loop that asks its selector by `selectNow`, which never waits, for the
// next message of a feed that sends one every millisecond. It looks bound by its calls, millions
// of them; but of 2,700 looks one finds a message, and fewer calls would not bring more of them.
//
// Checked on 2 cores of a virtual machine, in 1.5 s: `perf stat`: 4,007,584 looks for 1,465 ticks,
// 0.97 s system, 0.83 s user. With `select`, which waits (`SelectNow wait 1.5`), 1,462 looks for
// 1,460 ticks, 0.13 s system, 0.25 s user, which is the start of the JVM. `strace -f -c`: as many
// epoll_wait as looks.
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.DatagramChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;

public class SelectNow {
    static final long BETWEEN_NS = 1_000_000;

    // Sends a tick at each time that is due, until the end.
    static void feed(DatagramChannel channel, InetSocketAddress to, long end) {
        try {
            ByteBuffer tick = ByteBuffer.allocate(16);
            for (long due = System.nanoTime(); due < end; due += BETWEEN_NS) {
                long early = due - System.nanoTime();
                if (early > 0) {
                    Thread.sleep(early / 1_000_000, (int) (early % 1_000_000));
                }
                tick.clear().putLong(due).putLong(due % 1000).flip();
                channel.send(tick, to);
            }
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] arguments) throws Exception {
        int last = arguments.length - 1;
        double seconds = last >= 0 ? Double.parseDouble(arguments[last]) : 1.5;
        // The check of it: the selector waits for the next message.
        boolean wait = last > 0 && arguments[0].equals("wait");
        long end = System.nanoTime() + (long) (seconds * 1e9);
        DatagramChannel inbox = DatagramChannel.open();
        inbox.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        inbox.configureBlocking(false);
        Selector selector = Selector.open();
        inbox.register(selector, SelectionKey.OP_READ);
        InetSocketAddress to = (InetSocketAddress) inbox.getLocalAddress();
        DatagramChannel sender = DatagramChannel.open();
        Thread feed = new Thread(() -> feed(sender, to, end));
        feed.start();
        ByteBuffer tick = ByteBuffer.allocateDirect(16);
        long looks = 0;
        long ticks = 0;
        long sum = 0;
        for (; System.nanoTime() < end; looks++) {
            int ready = wait ? selector.select(10) : selector.selectNow();
            if (ready == 0) {
                continue;
            }
            selector.selectedKeys().clear();
            tick.clear();
            inbox.receive(tick);
            sum += tick.getLong(8);
            ticks++;
        }
        feed.join();
        System.out.println(ticks + " ticks, " + looks + " looks, sum " + sum);
    }
}
