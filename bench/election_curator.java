// Curator's LeaderLatch, for bench/election.sh. SPDX-License-Identifier: Apache-2.0
//
// usage: java -cp /usr/share/java/curator-recipes.jar election_curator.java HOSTS PATH TURNS. As bench_election; a
// leader resigns by closing its latch, and stands by another one. 50 turns before warm the virtual machine up.
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.retry.ExponentialBackoffRetry;

class ElectionCurator {
    static final int WARM_UP = 50;

    static class Candidate {
        final CuratorFramework client;
        LeaderLatch latch;
        CountDownLatch elected;
        volatile long electedNs;

        Candidate(String hosts) {
            client = CuratorFrameworkFactory.newClient(hosts, 30000, 15000, new ExponentialBackoffRetry(100, 3));
            client.start();
        }

        void stand(String path) throws Exception {
            elected = new CountDownLatch(1);
            latch = new LeaderLatch(client, path);
            latch.addListener(new LeaderLatchListener() {
                public void isLeader() {
                    electedNs = System.nanoTime();
                    elected.countDown();
                }
                public void notLeader() {}
            });
            latch.start();
        }
    }

    public static void main(String[] args) throws Exception {
        String path = args[1];
        int turns = Integer.parseInt(args[2]) + WARM_UP;
        Candidate[] pair = {new Candidate(args[0]), new Candidate(args[0])};
        double[] us = new double[turns];
        pair[0].stand(path);
        pair[0].elected.await();
        for (int turn = 0; turn < turns; turn++) {
            Candidate leader = pair[turn % 2], next = pair[1 - turn % 2];
            next.stand(path);
            while (leader.client.getChildren().forPath(path).size() < 2) Thread.yield();
            Thread.sleep(5);
            long began = System.nanoTime();
            leader.latch.close();
            next.elected.await();
            us[turn] = (next.electedNs - began) / 1e3;
        }
        System.out.println(Arrays.stream(us).skip(WARM_UP).mapToObj(u -> String.format(Locale.ROOT, "%.1f", u))
            .collect(Collectors.joining(", ", "{\"us\": [", "]}")));
        System.exit(0);
    }
}
