import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction;

/**
 * HDFS on this machine: a name node and two data nodes, with small blocks. Says its port, then does what each line of
 * standard input asks, and answers "ok". Ends with its input.
 */
public final class Hdfs {
    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        settings.setLong("dfs.blocksize", 1 << 20);
        settings.setLong("dfs.namenode.fs-limits.min-block-size", 1 << 10);
        settings.setInt("dfs.replication", 2);
        settings.setInt("dfs.namenode.safemode.extension", 0);
        settings.setInt("dfs.heartbeat.interval", 1);
        settings.setInt("dfs.namenode.heartbeat.recheck-interval", 1000);
        settings.set("hadoop.tmp.dir", arguments[0]);
        MiniDFSCluster cluster =
            new MiniDFSCluster.Builder(settings, new File(arguments[0])).numDataNodes(2).build();
        cluster.waitActive();
        DistributedFileSystem files = cluster.getFileSystem();
        files.setPermission(new Path("/"), new FsPermission((short) 0777));
        System.out.println("port " + cluster.getNameNodePort());
        BufferedReader asked =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        MiniDFSCluster.DataNodeProperties stopped = null;
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            String[] words = line.split(" ", 3);
            switch (words[0]) {
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
                default -> throw new IllegalArgumentException(line);
            }
            System.out.println("ok");
        }
        cluster.shutdown();
    }
}
