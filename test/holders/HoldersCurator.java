// A process that wants a lock of Curator's, for test/holders/run. SPDX-License-Identifier: Apache-2.0
//
// usage: java -cp FOLDER:/usr/share/java/curator-recipes.jar HoldersCurator mutex|latch plain|listener HOSTS PATH
//             TIMEOUT_MS
//
// mutex: InterProcessMutex. latch: LeaderLatch.
// Prints the same lines as holder.py. On Linux System.nanoTime() is CLOCK_MONOTONIC. "listener": it holds while the
// listener that Curator's documentation asks for has heard neither SUSPENDED nor LOST. A mutex that was lost stays
// lost; a latch stands in line again by itself. The ensemble tracker is off: it would lead the client to the servers
// themselves, past the proxy.
import java.util.Locale;
import java.util.function.BooleanSupplier;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
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

    static BooleanSupplier wantMutex(CuratorFramework client, String path, boolean listens) {
        InterProcessMutex mutex = new InterProcessMutex(client, path);
        Thread thread = new Thread(() -> acquire(mutex));
        thread.setDaemon(true);
        thread.start();
        return () -> mutex.isAcquiredInThisProcess() && (!listens || (connected && losses == lossesBefore));
    }

    static BooleanSupplier wantLatch(CuratorFramework client, String path, boolean listens) throws Exception {
        LeaderLatch latch = new LeaderLatch(client, path);
        latch.start();
        return () -> latch.hasLeadership() && (!listens || connected);
    }

    public static void main(String[] args) throws Exception {
        boolean listens = args[1].equals("listener");
        CuratorFramework client = CuratorFrameworkFactory.builder().connectString(args[2])
                .sessionTimeoutMs(Integer.parseInt(args[4])).connectionTimeoutMs(CONNECTION_TIMEOUT_MS)
                .retryPolicy(new ExponentialBackoffRetry(100, 3)).ensembleTracker(false).build();
        client.getConnectionStateListenable().addListener((unused, state) -> listen(state));
        client.start();
        BooleanSupplier holds = args[0].equals("mutex") ? wantMutex(client, args[3], listens)
                : wantLatch(client, args[3], listens);
        while (true) {
            double now = System.nanoTime() / 1e9;
            boolean held = holds.getAsBoolean();
            System.out.println(String.format(Locale.ROOT, "%.6f %s 0", now, held ? "yes" : "no"));
            System.out.flush();
            Thread.sleep(PERIOD_MS);
        }
    }
}
