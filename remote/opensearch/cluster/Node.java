import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.codelibs.opensearch.runner.node.OpenSearchRunnerNode;
import org.opensearch.common.settings.Settings;
import org.opensearch.knn.plugin.KNNPlugin;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.painless.PainlessPlugin;
import org.opensearch.transport.Netty4Plugin;

/** One node of a cluster on loopback, for tests: Node.java NUMBER OF_HOW_MANY DIRECTORY. */
public class Node {
    public static void main(String[] args) throws Exception {
        int number = Integer.parseInt(args[0]), nodes = Integer.parseInt(args[1]);
        Path home = Path.of(args[2]);
        Files.createDirectories(home.resolve("config"));
        Settings settings = Settings.builder()
            .put("path.home", home.toString())
            .put("path.data", home.resolve("data").toString())
            .put("path.logs", home.resolve("logs").toString())
            .put("cluster.name", "flashdb-tests")
            .put("node.name", "node" + number)
            .put("network.host", "127.0.0.1")
            .put("http.port", 9200 + number)
            .put("transport.port", 9300 + number)
            .put("http.type", "netty4")
            .put("transport.type", "netty4")
            .putList("discovery.seed_hosts", each(nodes, i -> "127.0.0.1:" + (9300 + i)))
            .putList("cluster.initial_cluster_manager_nodes", each(nodes, i -> "node" + i))
            .build();
        var environment = InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "node" + number);
        var node = new OpenSearchRunnerNode(environment, List.of(Netty4Plugin.class, PainlessPlugin.class, KNNPlugin.class));
        node.start();
        new CountDownLatch(1).await();
    }

    private static List<String> each(int n, java.util.function.IntFunction<String> name) {
        return IntStream.rangeClosed(1, n).mapToObj(name).collect(Collectors.toList());
    }
}
