import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.MiniDFSNNTopology;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction;

/**
 * HDFS on this machine: a name node and two data nodes, with small blocks; and, when asked, another one whose two name
 * nodes stand in for each other. Or a name node alone, for data nodes on other machines (DataNodeApart). Says its port,
 * then does what each line of standard input asks, and answers "ok" and what was asked for. Ends with its input.
 */
public final class Hdfs {
    private final String folder;
    private final MiniDFSCluster cluster;
    private final DistributedFileSystem files;
    private MiniDFSCluster.DataNodeProperties stopped;
    private MiniDFSCluster pair;

    private Hdfs(String folder, boolean alone) throws Exception {
        this.folder = folder;
        Configuration settings = settings();
        if (alone) {
            settings.set("dfs.namenode.rpc-bind-host", "0.0.0.0");
            settings.setBoolean("dfs.namenode.datanode.registration.ip-hostname-check", false);
        }
        int nodes = alone ? 0 : 2;
        cluster = new MiniDFSCluster.Builder(settings, new File(folder)).numDataNodes(nodes).build();
        cluster.waitActive();
        files = cluster.getFileSystem();
        files.setPermission(new Path("/"), new FsPermission((short) 0777));
    }

    private Configuration settings() {
        Configuration settings = new Configuration();
        settings.setLong("dfs.blocksize", 1 << 20);
        settings.setLong("dfs.namenode.fs-limits.min-block-size", 1 << 10);
        settings.setInt("dfs.replication", 2);
        settings.setInt("dfs.namenode.safemode.extension", 0);
        settings.setInt("dfs.heartbeat.interval", 1);
        settings.setInt("dfs.namenode.heartbeat.recheck-interval", 1000);
        settings.set("hadoop.tmp.dir", folder);
        return settings;
    }

    private String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "data-nodes" -> {
                return " " + files.getDataNodeStats(DatanodeReportType.LIVE).length;
            }
            case "stop-data-node" -> stopped = cluster.stopDataNode(0);
            case "start-data-node" -> {
                cluster.restartDataNode(stopped, true);
                cluster.waitActive();
            }
            case "stop-name-node" -> cluster.shutdownNameNode(0);
            case "start-name-node" -> cluster.restartNameNode(0, true);
            case "safe-mode" -> files.setSafeMode(SafeModeAction.valueOf("SAFEMODE_" + words[1]));
            case "space-quota" -> files.setQuota(new Path(words[2]), Long.MAX_VALUE, Long.parseLong(words[1]));
            case "mode" -> files.setPermission(new Path(words[2]), new FsPermission(words[1]));
            case "blocks" -> {
                FileStatus found = files.getFileStatus(new Path(words[1]));
                return " " + found.getReplication() + " " + found.getBlockSize();
            }
            case "rename" -> files.rename(new Path(words[1]), new Path(words[2]));
            case "start-pair" -> {
                pair = new MiniDFSCluster.Builder(settings(), new File(folder, "pair"))
                    .nnTopology(MiniDFSNNTopology.simpleHATopology()).numDataNodes(1).build();
                pair.transitionToActive(0);
                pair.waitActive(0);
                pair.getFileSystem(0).setPermission(new Path("/"), new FsPermission((short) 0777));
                return " " + pair.getNameNodePort(0) + " " + pair.getNameNodePort(1);
            }
            case "fail-over" -> {
                pair.shutdownNameNode(0);
                pair.transitionToActive(1);
            }
            case "stop-pair" -> pair.shutdown();
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "";
    }

    public static void main(String[] arguments) throws Exception {
        Hdfs hdfs = new Hdfs(arguments[0], arguments.length > 1);
        System.out.println("port " + hdfs.cluster.getNameNodePort());
        BufferedReader asked =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            try {
                System.out.println("ok" + hdfs.answer(line.split(" ", 3)));
            } catch (Exception failure) {
                System.out.println(failure.toString().lines().findFirst().orElse("failed"));
            }
        }
        Runtime.getRuntime().halt(0);
    }
}
