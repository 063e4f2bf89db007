import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.server.datanode.DataNode;

/**
 * A data node of a name node elsewhere: its folder, the name node's URL, and the address of the machine that it runs on.
 * Ends with its input.
 */
public final class DataNodeApart {
    public static void main(String[] arguments) throws Exception {
        String folder = arguments[0], address = arguments[2];
        Configuration settings = new HdfsConfiguration();
        settings.set("fs.defaultFS", arguments[1]);
        settings.set("hadoop.tmp.dir", folder);
        settings.set("dfs.datanode.data.dir", new File(folder, "blocks").toURI().toString());
        settings.set("dfs.datanode.hostname", address);
        settings.set("dfs.datanode.address", address + ":0");
        settings.set("dfs.datanode.ipc.address", address + ":0");
        settings.set("dfs.datanode.http.address", address + ":0");
        settings.setInt("dfs.heartbeat.interval", 1);
        DataNode.createDataNode(new String[0], settings);
        System.in.read();
        Runtime.getRuntime().halt(0);
    }
}
