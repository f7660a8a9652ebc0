// Curator's InterProcessMutex: pairs of acquire and release a second, and hand-overs. SPDX-License-Identifier: Apache-2.0
//
// usage: java -cp /usr/share/java/curator-recipes.jar locks_curator.java HOSTS PAIRS
// Prints a JSON line like those of locks.c. A hand-over is the time from the call of release until acquire has returned
// in the thread of the next one; all threads are on one client.
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

class LocksCurator {
    static final int CHAINS = 20;
    static volatile long released;

    static double pairsPerSecond(CuratorFramework client, int pairs) throws Exception {
        InterProcessMutex mutex = new InterProcessMutex(client, "/curator-lock");
        long start = 0;
        for (int i = -pairs; i < pairs; i++) { // the first half lets the machine compile it
            if (i == 0) start = System.nanoTime();
            mutex.acquire();
            mutex.release();
        }
        return pairs / ((System.nanoTime() - start) / 1e9);
    }

    static int chain(CuratorFramework client, String path, int waiters, double[] gaps, int count) throws Exception {
        CountDownLatch[] got = new CountDownLatch[waiters + 1], go = new CountDownLatch[waiters + 1];
        Thread[] threads = new Thread[waiters + 1];
        long[] times = new long[waiters + 1];
        released = 0;
        for (int i = 0; i <= waiters; i++) {
            int me = i;
            got[i] = new CountDownLatch(1);
            go[i] = new CountDownLatch(1);
            threads[i] = new Thread(() -> {
                try {
                    InterProcessMutex mutex = new InterProcessMutex(client, path);
                    mutex.acquire();
                    times[me] = System.nanoTime() - released;
                    got[me].countDown();
                    go[me].await();
                    released = System.nanoTime();
                    mutex.release();
                } catch (Exception e) {
                    throw new RuntimeException(e);
                }
            });
            threads[i].start();
            while (client.checkExists().forPath(path) == null || client.getChildren().forPath(path).size() < i + 1) Thread.sleep(1);
        }
        Thread.sleep(200); // in which the last of them sets its watch
        for (int i = 0; i <= waiters; i++) {
            got[i].await();
            if (i > 0) gaps[count++] = times[i] / 1e3;
            go[i].countDown();
        }
        for (Thread thread : threads) thread.join();
        return count;
    }

    static double handOverUs(CuratorFramework client, int waiters) throws Exception {
        double[] gaps = new double[CHAINS * waiters];
        int count = 0;
        for (int i = 0; i < CHAINS; i++) count = chain(client, "/curator-chain-" + waiters, waiters, gaps, count);
        Arrays.sort(gaps);
        return gaps[count / 2];
    }

    public static void main(String[] args) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], new ExponentialBackoffRetry(100, 3));
        client.start();
        System.out.printf("{\"peer\": \"curator\", \"recipe\": \"lock\", \"pairs_per_s\": %.0f, "
                + "\"hand_over_2_us\": %.0f, \"hand_over_50_us\": %.0f}%n",
                pairsPerSecond(client, Integer.parseInt(args[1])), handOverUs(client, 2), handOverUs(client, 50));
        client.close();
    }
}
