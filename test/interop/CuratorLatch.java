// Curator's LeaderLatch, led by JSON lines. SPDX-License-Identifier: Apache-2.0
//
// usage: java -cp curator-recipes.jar:jackson-core.jar CuratorLatch.java HOSTS SESSION_MS
//
// Says {"ready":true}, and then answers each line with one line. {"do":"open","path":P,"id":I} makes a latch with a
// client of its own and starts it; "leads", "leader" (an id, or "") and "close" ask the latch I.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.retry.ExponentialBackoffRetry;

class CuratorLatch {
    final ObjectMapper mapper = new ObjectMapper();
    final Map<String, CuratorFramework> clients = new HashMap<>();
    final Map<String, LeaderLatch> latches = new HashMap<>();
    final String hosts;
    final int sessionMs;

    CuratorLatch(String hosts, int sessionMs) {
        this.hosts = hosts;
        this.sessionMs = sessionMs;
    }

    ObjectNode answer(JsonNode line) throws Exception {
        ObjectNode done = mapper.createObjectNode();
        String id = line.get("id").asText();
        switch (line.get("do").asText()) {
            case "open":
                CuratorFramework client = CuratorFrameworkFactory.newClient(hosts, sessionMs, sessionMs,
                    new ExponentialBackoffRetry(100, 5));
                client.start();
                clients.put(id, client);
                latches.put(id, new LeaderLatch(client, line.get("path").asText(), id));
                latches.get(id).start();
                return done.put("done", true);
            case "leads": return done.put("leads", latches.get(id).hasLeadership());
            case "leader": return done.put("leader", latches.get(id).getLeader().getId());
            case "close":
                latches.remove(id).close();
                clients.remove(id).close();
                return done.put("done", true);
            default: throw new IllegalArgumentException("unknown: " + line);
        }
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        CuratorLatch peer = new CuratorLatch(args[0], Integer.parseInt(args[1]));
        out.println(peer.mapper.createObjectNode().put("ready", true));
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
