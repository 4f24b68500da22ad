// BLOCKING-IO: a client of an RPC server that writes the header of each request and then the body.
// Nagle's algorithm holds the body back until the server's system has acknowledged the header, and
// that waits for 40 ms, for an answer to send it along with. The server runs beside the program,
// and answers at once.
//
// Checked on 2 cores of a virtual machine, in 1.5 s: 35 requests, 0.15 s of processor time, which
// is the start of the JVM; with TCP_NODELAY (`TwoWrites nodelay 1.5`) 12,543 requests. `strace -f
// -T`: two writes, and then a read of 43 ms, for each request.
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

public class TwoWrites {
    static final int PORT = 18519;

    static void answer(Socket client) {
        try (client) {
            client.setTcpNoDelay(true);
            DataInputStream requests = new DataInputStream(client.getInputStream());
            DataOutputStream answers = new DataOutputStream(client.getOutputStream());
            for (int size; (size = requests.readInt()) > 0; ) {
                byte[] body = requests.readNBytes(size);
                answers.writeInt(body[0] + body.length);
            }
        } catch (IOException e) {
            // The client has gone.
        }
    }

    static void serve() throws IOException {
        ServerSocket server = new ServerSocket(PORT, 8, InetAddress.getLoopbackAddress());
        System.out.println("ready");
        while (true) {
            Socket client = server.accept();
            new Thread(() -> answer(client)).start();
        }
    }

    public static void main(String[] arguments) throws IOException {
        int last = arguments.length - 1;
        if (last >= 0 && arguments[last].equals("server")) {
            serve();
        }
        double seconds = last >= 0 ? Double.parseDouble(arguments[last]) : 1.5;
        Socket server = new Socket(InetAddress.getLoopbackAddress(), PORT);
        // The check of it: the system sends each write at once.
        server.setTcpNoDelay(last > 0 && arguments[0].equals("nodelay"));
        DataOutputStream requests = new DataOutputStream(server.getOutputStream());
        DataInputStream answers = new DataInputStream(server.getInputStream());
        byte[] body = new byte[200];
        long end = System.nanoTime() + (long) (seconds * 1e9);
        long count = 0;
        long sum = 0;
        for (; System.nanoTime() < end; count++) {
            body[0] = (byte) count;
            requests.writeInt(body.length);
            requests.write(body);
            sum += answers.readInt();
        }
        server.close();
        System.out.println(count + " requests, sum " + sum);
    }
}
