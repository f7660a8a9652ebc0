// Curator's ServiceDiscovery and ServiceCache, as a peer of bench/registry.sh. SPDX-License-Identifier: Apache-2.0
//
// usage: java -cp curator-x-discovery.jar:curator-recipes.jar registry_curator.java HOSTS, and commands as in
// registry_peer.h. A heartbeat is updateService, a look at all services queryForInstances of each role. Both wait for
// each answer, so ten threads do them, one for each role. The view is a ServiceCache for each role.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceProvider;
import org.apache.curator.x.discovery.details.JsonInstanceSerializer;
import org.apache.curator.x.discovery.details.ServiceCacheListener;
import org.apache.curator.x.discovery.strategies.RoundRobinStrategy;

class RegistryCurator {
    static final int ROLES = 10, SESSION_TIMEOUT_MS = 60000;
    static final String ROOT = "/bench-curator";
    // What divvy's entries carry besides, so that as many bytes are carried.
    static final String PAYLOAD = "load=0;ttl=600;host=localhost;pid=12345;first_heartbeat=2023-11-14T22:13:20.000Z;"
            + "last_heartbeat=2023-11-14T22:13:20.000Z;nonce=0123456789abcdef0123456789abcdef;"
            + "attempt=0123456789abcdefghijklm;names=" + "-".repeat(30);

    interface Work {
        int run(int role) throws Exception;
    }

    final String hosts;
    final CuratorFramework client;
    final ServiceDiscovery<String> discovery;
    final ExecutorService threads = Executors.newFixedThreadPool(ROLES);
    final List<List<ServiceInstance<String>>> services = new ArrayList<>();
    final List<ServiceCache<String>> caches = new ArrayList<>();
    final List<ServiceProvider<String>> providers = new ArrayList<>();
    final List<CuratorFramework> watchers = new ArrayList<>();
    final Semaphore told = new Semaphore(0);

    RegistryCurator(String hosts) throws Exception {
        this.hosts = hosts;
        client = open();
        discovery = discover(client);
    }

    CuratorFramework open() throws Exception {
        CuratorFramework opened = CuratorFrameworkFactory.newClient(hosts, SESSION_TIMEOUT_MS, 15000,
                new ExponentialBackoffRetry(100, 3));
        opened.start();
        opened.blockUntilConnected();
        return opened;
    }

    static ServiceDiscovery<String> discover(CuratorFramework client) throws Exception {
        ServiceDiscovery<String> made = ServiceDiscoveryBuilder.builder(String.class).client(client).basePath(ROOT)
                .serializer(new JsonInstanceSerializer<>(String.class)).build();
        made.start();
        return made;
    }

    /** Runs it for each role at once, again and again until the time is over; prints how many it counted. */
    void measure(int ms, Work work) throws Exception {
        long start = System.nanoTime();
        List<Future<Integer>> counts = new ArrayList<>();
        for (int role = 0; role < ROLES; role++) {
            int mine = role;
            Callable<Integer> loop = () -> {
                int count = 0;
                while (System.nanoTime() - start < ms * 1_000_000L) count += work.run(mine);
                return count;
            };
            counts.add(threads.submit(loop));
        }
        int total = 0;
        for (Future<Integer> count : counts) total += count.get();
        rate(total, (System.nanoTime() - start) / 1e9);
    }

    static void rate(int count, double seconds) {
        System.out.printf("{\"count\": %d, \"seconds\": %.6f}%n", count, seconds);
    }

    // ---- commands ----

    void fill(int count) throws Exception {
        long start = System.nanoTime();
        for (int role = 0; role < ROLES; role++) services.add(new ArrayList<>());
        for (int i = 0; i < count; i++) {
            services.get(i % ROLES).add(ServiceInstance.<String>builder().name("role-" + i % ROLES)
                    .id(String.format("service-%04d", i)).address("127.0.0.1").port(1024 + i).payload(PAYLOAD).build());
        }
        List<Future<Void>> done = new ArrayList<>();
        for (List<ServiceInstance<String>> some : services) {
            Callable<Void> register = () -> {
                for (ServiceInstance<String> one : some) discovery.registerService(one);
                return null;
            };
            done.add(threads.submit(register));
        }
        for (Future<Void> one : done) one.get();
        System.out.printf("{\"count\": %d, \"seconds\": %.6f, \"bytes\": %d}%n", count, (System.nanoTime() - start) / 1e9,
                new JsonInstanceSerializer<>(String.class).serialize(services.get(0).get(0)).length);
    }

    int beat(int role) throws Exception {
        for (ServiceInstance<String> one : services.get(role)) discovery.updateService(one);
        return services.get(role).size();
    }

    void openView() throws Exception {
        for (int role = 0; role < ROLES; role++) {
            caches.add(discovery.serviceCacheBuilder().name("role-" + role).build());
            caches.get(role).start();
            providers.add(discovery.serviceProviderBuilder().serviceName("role-" + role)
                    .providerStrategy(new RoundRobinStrategy<>()).build());
            providers.get(role).start();
        }
    }

    void closeView() throws Exception {
        for (ServiceProvider<String> provider : providers) provider.close();
        for (ServiceCache<String> cache : caches) cache.close();
        providers.clear();
        caches.clear();
    }

    void cachedOne(int ms) throws Exception {
        openView();
        long start = System.nanoTime(), packets = packets();
        int count = 0;
        for (; System.nanoTime() - start < ms * 1_000_000L; count++) {
            if (providers.get(count % ROLES).getInstance() == null) throw new IllegalStateException("nobody");
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        System.out.printf("{\"count\": %d, \"seconds\": %.6f, \"packets\": %d}%n", count, seconds,
                packets() - packets);
        closeView();
    }

    void cachedAll(int ms) throws Exception {
        openView();
        long start = System.nanoTime();
        int count = 0;
        while (System.nanoTime() - start < ms * 1_000_000L) {
            for (ServiceCache<String> cache : caches) {
                for (ServiceInstance<String> one : cache.getInstances()) count += one.getPort() != null ? 1 : 0;
            }
        }
        rate(count, (System.nanoTime() - start) / 1e9);
        closeView();
    }

    void watch(int count) throws Exception {
        while (watchers.size() < count) {
            CuratorFramework watcher = open();
            ServiceCache<String> cache = discover(watcher).serviceCacheBuilder().name("role-0").build();
            cache.addListener(new ServiceCacheListener() {
                @Override
                public void cacheChanged() {
                    told.release();
                }

                @Override
                public void stateChanged(CuratorFramework framework, ConnectionState state) {}
            });
            cache.start();
            watchers.add(watcher);
        }
        rate(count, 0);
    }

    void change(int count) throws Exception {
        long packets = packets();
        StringBuilder us = new StringBuilder();
        ServiceInstance<String> one = services.get(0).get(0);
        for (int i = 0; i < count; i++) {
            long start = System.nanoTime();
            discovery.updateService(one);
            told.acquire(watchers.size());
            us.append(String.format("%s%.1f", i > 0 ? ", " : "", (System.nanoTime() - start) / 1e3));
        }
        System.out.printf("{\"us\": [%s], \"packets\": %d}%n", us, packets() - packets);
    }

    void unwatch() {
        for (CuratorFramework watcher : watchers) watcher.close();
        watchers.clear();
        rate(1, 0);
    }

    /** What the server has received, this question included. */
    long packets() throws Exception {
        String[] address = hosts.split(":");
        try (Socket socket = new Socket(address[0], Integer.parseInt(address[1]))) {
            socket.getOutputStream().write("srvr".getBytes(StandardCharsets.US_ASCII));
            String answer = new String(socket.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
            Matcher found = Pattern.compile("Received: (\\d+)").matcher(answer);
            if (!found.find()) throw new IllegalStateException("no answer to srvr");
            return Long.parseLong(found.group(1));
        }
    }

    void run(String verb, int number) throws Exception {
        switch (verb) {
            case "fill": fill(number); break;
            case "heartbeats": measure(number, this::beat); break;
            case "read": measure(number, role -> discovery.queryForInstances("role-" + role).size()); break;
            case "cached_one": cachedOne(number); break;
            case "cached_all": cachedAll(number); break;
            case "watch": watch(number); break;
            case "change": change(number); break;
            case "unwatch": unwatch(); break;
            default: throw new IllegalArgumentException("unknown command " + verb);
        }
    }

    public static void main(String[] args) throws Exception {
        RegistryCurator peer = new RegistryCurator(args[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            peer.run(words[0], Integer.parseInt(words[1]));
        }
        System.exit(0);
    }
}
