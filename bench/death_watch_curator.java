// A contender of Curator's for bench/death_watch.py. SPDX-License-Identifier: Apache-2.0
//
// usage: java -cp FOLDER:/usr/share/java/curator-recipes.jar DeathWatchCurator HOSTS lock|election PATH TIMEOUT_MS
//
// Waits for an InterProcessMutex, or to lead by a LeaderLatch, prints the monotonic clock in seconds and `+`, and keeps
// it until it is killed. On Linux System.nanoTime() is CLOCK_MONOTONIC.
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

class DeathWatchCurator {
    static void tell() {
        System.out.println(String.format(Locale.ROOT, "%.6f +", System.nanoTime() / 1e9));
        System.out.flush();
    }

    public static void main(String[] args) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], Integer.parseInt(args[3]), 15000,
                new ExponentialBackoffRetry(100, 3));
        client.start();
        if (args[1].equals("lock")) {
            new InterProcessMutex(client, args[2]).acquire();
            tell();
        } else {
            LeaderLatch latch = new LeaderLatch(client, args[2]);
            latch.addListener(new LeaderLatchListener() {
                public void isLeader() { tell(); }
                public void notLeader() {}
            });
            latch.start();
        }
        new CountDownLatch(1).await();
    }
}
