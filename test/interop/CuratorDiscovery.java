// Curator's ServiceDiscovery, ServiceCache and ServiceProvider, led by JSON lines. SPDX-License-Identifier: Apache-2.0
//
// usage: java -cp curator-x-discovery.jar:curator-recipes.jar:jackson-core.jar CuratorDiscovery.java HOSTS ROOT
//     SESSION_MS
//
// Says {"ready":true,"discovery":"JAR",...}, which names the jar of each of Curator's parts, and then answers each line with one line: {"do":"names"} with {"names":[...]}, and so on for each
// of `answer`; with {"error":"..."} where Curator threw. `mode` chooses one of four discoveries on one session: "new"
// writes "enabled", "old" does not (Curator's compatible mode), "string" and "void" take only such payloads.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.CuratorZookeeperClient;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.curator.x.discovery.ProviderStrategy;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceInstanceBuilder;
import org.apache.curator.x.discovery.ServiceProvider;
import org.apache.curator.x.discovery.ServiceType;
import org.apache.curator.x.discovery.UriSpec;
import org.apache.curator.x.discovery.details.JsonInstanceSerializer;
import org.apache.curator.x.discovery.details.ServiceCacheListener;
import org.apache.curator.x.discovery.strategies.RandomStrategy;
import org.apache.curator.x.discovery.strategies.RoundRobinStrategy;
import org.apache.curator.x.discovery.strategies.StickyStrategy;
import org.apache.zookeeper.ZooKeeper;

class CuratorDiscovery {
    final ObjectMapper mapper = new ObjectMapper();
    final CuratorFramework client;
    final Map<String, ServiceDiscovery<Object>> discoveries = new HashMap<>();
    final Map<String, ServiceInstance<Object>> registered = new HashMap<>();
    final Map<String, ServiceCache<Object>> caches = new HashMap<>();
    final Map<String, AtomicInteger> changes = new HashMap<>();
    final Map<String, ServiceProvider<Object>> providers = new HashMap<>();

    CuratorDiscovery(String hosts, String root, int sessionMs) throws Exception {
        client = CuratorFrameworkFactory.newClient(hosts, sessionMs, sessionMs, new ExponentialBackoffRetry(100, 5));
        client.start();
        addDiscovery("new", root, Object.class, false);
        addDiscovery("old", root, Object.class, true);
        addDiscovery("string", root, String.class, false);
        addDiscovery("void", root, Void.class, false);
    }

    @SuppressWarnings("unchecked") // one map for all: what a payload is, is up to the lines
    <T> void addDiscovery(String mode, String root, Class<T> payload, boolean compatible) throws Exception {
        ServiceDiscovery<T> discovery = ServiceDiscoveryBuilder.builder(payload).client(client).basePath(root)
                .serializer(new JsonInstanceSerializer<>(payload, compatible)).build();
        discovery.start();
        discoveries.put(mode, (ServiceDiscovery<Object>) discovery);
    }

    // ---- instances, from and to JSON ----


    @SuppressWarnings("unchecked")
    ServiceInstance<Object> instance(JsonNode line) throws Exception {
        Map<String, Object> given = mapper.convertValue(line.get("instance"), LinkedHashMap.class);
        ServiceInstanceBuilder<Object> builder = ServiceInstance.builder().name((String) given.get("name"))
                .address((String) given.get("address")).payload(given.get("payload"));
        if (given.containsKey("id")) builder.id((String) given.get("id"));
        if (given.containsKey("port")) builder.port((Integer) given.get("port"));
        if (given.containsKey("sslPort")) builder.sslPort((Integer) given.get("sslPort"));
        if (given.containsKey("uriSpec")) builder.uriSpec(new UriSpec((String) given.get("uriSpec")));
        if (given.containsKey("serviceType"))
            builder.serviceType(ServiceType.valueOf((String) given.get("serviceType")));
        if (given.containsKey("enabled")) builder.enabled((Boolean) given.get("enabled"));
        return builder.build();
    }

    /** What Java sees, by the getters. */
    ObjectNode show(ServiceInstance<Object> instance) {
        ObjectNode shown = mapper.createObjectNode();
        shown.put("name", instance.getName()).put("id", instance.getId()).put("address", instance.getAddress());
        shown.put("port", instance.getPort()).put("sslPort", instance.getSslPort());
        shown.set("payload", mapper.valueToTree(instance.getPayload()));
        shown.put("registrationTimeUTC", instance.getRegistrationTimeUTC());
        shown.put("serviceType", String.valueOf(instance.getServiceType()));
        shown.put("uri", instance.getUriSpec() == null ? null : instance.buildUriSpec());
        return shown.put("enabled", instance.isEnabled());
    }

    ObjectNode show(Collection<ServiceInstance<Object>> instances) {
        ObjectNode shown = mapper.createObjectNode();
        ArrayNode array = shown.putArray("instances");
        for (ServiceInstance<Object> instance : instances) array.add(show(instance));
        return shown;
    }

    // ---- what the lines ask for ----

    void cache(ServiceDiscovery<Object> discovery, String role) throws Exception {
        ServiceCache<Object> cache = discovery.serviceCacheBuilder().name(role).build();
        AtomicInteger count = new AtomicInteger();
        cache.addListener(new ServiceCacheListener() {
            @Override
            public void cacheChanged() {
                count.incrementAndGet();
            }

            @Override
            public void stateChanged(CuratorFramework framework, ConnectionState state) {}
        });
        cache.start();
        caches.put(role, cache);
        changes.put(role, count);
    }

    static ProviderStrategy<Object> strategy(String name) {
        switch (name) {
            case "random": return new RandomStrategy<>();
            case "sticky": return new StickyStrategy<>(new RoundRobinStrategy<>());
            default: return new RoundRobinStrategy<>();
        }
    }

    ObjectNode pick(ServiceDiscovery<Object> discovery, String role, String strategy, int times) throws Exception {
        String key = role + " " + strategy;
        if (!providers.containsKey(key)) {
            ServiceProvider<Object> provider = discovery.serviceProviderBuilder().serviceName(role)
                    .providerStrategy(strategy(strategy)).build();
            provider.start();
            providers.put(key, provider);
        }
        ObjectNode shown = mapper.createObjectNode();
        ArrayNode ids = shown.putArray("ids");
        for (int i = 0; i < times; i++) {
            ServiceInstance<Object> instance = providers.get(key).getInstance();
            ids.add(instance == null ? null : instance.getId());
        }
        return shown;
    }

    ObjectNode answer(JsonNode line) throws Exception {
        ServiceDiscovery<Object> discovery = discoveries.get(line.path("mode").asText("new"));
        String role = line.path("role").asText(), id = line.path("id").asText();
        ObjectNode done = mapper.createObjectNode().put("done", true);
        switch (line.get("do").asText()) {
            case "register": {
                ServiceInstance<Object> instance = instance(line);
                discovery.registerService(instance);
                registered.put(instance.getId(), instance);
                return show(instance);
            }
            case "update":
                registered.put(line.get("instance").get("id").asText(), instance(line));
                discovery.updateService(instance(line));
                return done;
            case "unregister":
                discovery.unregisterService(registered.remove(id));
                return done;
            case "names":
                done.set("names", mapper.valueToTree(discovery.queryForNames()));
                return done;
            case "instances": return show(discovery.queryForInstances(role));
            case "instance": {
                ServiceInstance<Object> found = discovery.queryForInstance(role, id);
                return found == null ? done : show(found);
            }
            case "cache":
                cache(discovery, role);
                return done;
            case "cached": return show(caches.get(role).getInstances()).put("changes", changes.get(role).get());
            case "pick": return pick(discovery, role, line.get("strategy").asText(), line.get("times").asInt());
            case "session":
                return done.put("session", client.getZookeeperClient().getZooKeeper().getSessionId());
            case "expire": // the client takes its session for expired, ends it, and begins another
                client.getZookeeperClient().getZooKeeper().getTestable().injectSessionExpiration();
                return done;
            default: throw new IllegalArgumentException("unknown: " + line);
        }
    }

    /** The file that a class has come from. */
    static String jarOf(Class<?> type) throws Exception {
        return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI()).toRealPath().toString();
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        CuratorDiscovery peer = new CuratorDiscovery(args[0], args[1], Integer.parseInt(args[2]));
        out.println(peer.mapper.createObjectNode().put("ready", true)
            .put("discovery", jarOf(ServiceDiscovery.class)).put("recipes", jarOf(CuratorCache.class))
            .put("framework", jarOf(CuratorFramework.class)).put("client", jarOf(CuratorZookeeperClient.class))
            .put("zookeeper", jarOf(ZooKeeper.class)));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                out.println(peer.answer(peer.mapper.readTree(line)));
            } catch (Exception e) {
                out.println(peer.mapper.createObjectNode().put("error", e.toString()));
            }
        }
        System.exit(0);
    }
}
