// Curator's InterProcessMutex and InterProcessSemaphoreV2, for bench/locks.sh. SPDX-License-Identifier: Apache-2.0
//
// usage: java -cp /usr/share/java/curator-recipes.jar locks_curator.java HOSTS, and commands as in locks_peer.h.
// A hand-over is the time from the call of release until acquire has returned in the thread of the next one; all
// threads are on one client.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.ExponentialBackoffRetry;

class LocksCurator {
    static final int POOL_LIMIT = 4, SESSION_TIMEOUT_MS = 60000, CONNECTION_TIMEOUT_MS = 15000;
    static CuratorFramework client;
    static volatile long released;

    interface Contender {
        void acquire() throws Exception;
        void release() throws Exception;
    }

    static Contender mutex(String path) {
        InterProcessMutex mutex = new InterProcessMutex(client, path);
        return new Contender() {
            public void acquire() throws Exception { mutex.acquire(); }
            public void release() throws Exception { mutex.release(); }
        };
    }

    static Contender semaphore(String path, int limit) {
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, limit);
        return new Contender() {
            Lease lease;
            public void acquire() throws Exception { lease = semaphore.acquire(); }
            public void release() throws Exception { semaphore.returnLease(lease); }
        };
    }

    static String pairs(Contender contender, int milliseconds) throws Exception {
        long start = System.nanoTime(), now = start;
        int pairs = 0;
        for (; now - start < milliseconds * 1000000L; now = System.nanoTime()) {
            contender.acquire();
            contender.release();
            pairs++;
        }
        return String.format(Locale.ROOT, "{\"pairs\": %d, \"seconds\": %.6f}", pairs, (now - start) / 1e9);
    }

    static int children(String path) throws Exception {
        return client.checkExists().forPath(path) == null ? 0 : client.getChildren().forPath(path).size();
    }

    /** Those that hold and wait. The first in the semaphore's queue has made a lease already, before it looks for room. */
    static int contenders(boolean lock, String path) throws Exception {
        if (lock) return children(path);
        int leases = children(path + "/leases");
        return leases == 0 ? 0 : 1 + children(path + "/locks");
    }

    static String handOver(boolean lock, int waiters) throws Exception {
        String path = "/curator-chain-" + (lock ? "lock" : "semaphore");
        CountDownLatch[] got = new CountDownLatch[waiters + 1], go = new CountDownLatch[waiters + 1];
        Thread[] threads = new Thread[waiters + 1];
        double[] us = new double[waiters + 1];
        released = 0;
        for (int i = 0; i <= waiters; i++) {
            int me = i;
            Contender contender = lock ? mutex(path) : semaphore(path, 1);
            got[i] = new CountDownLatch(1);
            go[i] = new CountDownLatch(1);
            threads[i] = new Thread(() -> {
                try {
                    contender.acquire();
                    us[me] = (System.nanoTime() - released) / 1e3;
                    got[me].countDown();
                    go[me].await();
                    released = System.nanoTime();
                    contender.release();
                } catch (Exception e) {
                    e.printStackTrace();
                    System.exit(1);
                }
            });
            threads[i].start();
            if (i == 0) got[0].await();
            while (contenders(lock, path) < i + 1) Thread.sleep(1);
        }
        Thread.sleep(200); // in which the last of them sets its watch
        for (int i = 0; i <= waiters; i++) {
            got[i].await();
            go[i].countDown();
        }
        for (Thread thread : threads) thread.join();
        return Arrays.stream(us).skip(1).mapToObj(u -> String.format(Locale.ROOT, "%.1f", u))
                .collect(Collectors.joining(", ", "{\"us\": [", "]}"));
    }

    public static void main(String[] args) throws Exception {
        client = CuratorFrameworkFactory.newClient(args[0], SESSION_TIMEOUT_MS, CONNECTION_TIMEOUT_MS,
                new ExponentialBackoffRetry(100, 3));
        client.start();
        Contender mutex = mutex("/curator-lock"), semaphore = semaphore("/curator-semaphore", POOL_LIMIT);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ");
            boolean lock = words[1].equals("lock");
            int number = Integer.parseInt(words[2]);
            System.out.println(words[0].equals("pairs") ? pairs(lock ? mutex : semaphore, number) : handOver(lock, number));
        }
        client.close();
    }
}
