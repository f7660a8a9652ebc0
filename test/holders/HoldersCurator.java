// A process that wants Curator's InterProcessMutex, for test/holders/run. SPDX-License-Identifier: Apache-2.0
//
// usage: java -cp FOLDER:/usr/share/java/curator-recipes.jar HoldersCurator plain|listener HOSTS PATH TIMEOUT_MS
//
// Prints the same lines as holder.py. On Linux System.nanoTime() is CLOCK_MONOTONIC. "listener": it holds while the
// listener that Curator's documentation asks for has heard neither SUSPENDED nor LOST. The ensemble tracker is off: it
// would lead the client to the servers themselves, past the proxy.
import java.util.Locale;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;

class HoldersCurator {
    static final int PERIOD_MS = 10, CONNECTION_TIMEOUT_MS = 15000;
    static volatile boolean connected;
    static volatile int losses, lossesBefore = -1;

    static void listen(ConnectionState state) {
        connected = state.isConnected();
        if (state == ConnectionState.LOST) losses++; // in one thread
    }

    static void acquire(InterProcessMutex mutex) {
        while (true) {
            try {
                mutex.acquire();
                lossesBefore = losses; // A session that ended while it waited is no loss of the lock.
                Thread.currentThread().join(); // The mutex belongs to its thread.
            } catch (Exception e) {
                System.err.println("holder: acquires again after " + e);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        boolean listens = args[0].equals("listener");
        CuratorFramework client = CuratorFrameworkFactory.builder().connectString(args[1])
                .sessionTimeoutMs(Integer.parseInt(args[3])).connectionTimeoutMs(CONNECTION_TIMEOUT_MS)
                .retryPolicy(new ExponentialBackoffRetry(100, 3)).ensembleTracker(false).build();
        client.getConnectionStateListenable().addListener((unused, state) -> listen(state));
        client.start();
        InterProcessMutex mutex = new InterProcessMutex(client, args[2]);
        Thread thread = new Thread(() -> acquire(mutex));
        thread.setDaemon(true);
        thread.start();
        while (true) {
            double now = System.nanoTime() / 1e9;
            boolean held = mutex.isAcquiredInThisProcess() && (!listens || (connected && losses == lossesBefore));
            System.out.println(String.format(Locale.ROOT, "%.6f %s 0", now, held ? "yes" : "no"));
            System.out.flush();
            Thread.sleep(PERIOD_MS);
        }
    }
}
