import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.minikdc.MiniKdc;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * HDFS on this machine that asks for Kerberos's tickets and encrypts what it sends: a key distribution center, a name node
 * and a data node. Says its port and the file for KRB5_CONFIG; the key of "somebody" is in somebody.keytab. Ends with its
 * input.
 */
public final class Secure {
    public static void main(String[] arguments) throws Exception {
        File folder = new File(arguments[0]), keys = new File(folder, "servers.keytab");
        MiniKdc center = new MiniKdc(MiniKdc.createConf(), new File(folder, "kdc"));
        center.start();
        center.createPrincipal(keys, "hdfs/localhost", "HTTP/localhost");
        center.createPrincipal(new File(folder, "somebody.keytab"), "somebody");
        String server = "hdfs/localhost@" + center.getRealm();

        Configuration settings = new Configuration();
        settings.set("hadoop.security.authentication", "kerberos");
        for (String node : new String[] {"namenode", "datanode"}) {
            settings.set("dfs." + node + ".kerberos.principal", server);
            settings.set("dfs." + node + ".keytab.file", keys.getPath());
        }
        settings.set("dfs.web.authentication.kerberos.principal", "HTTP/localhost@" + center.getRealm());
        settings.set("dfs.web.authentication.kerberos.keytab", keys.getPath());
        settings.setBoolean("dfs.block.access.token.enable", true);
        settings.setBoolean("ignore.secure.ports.for.testing", true);
        settings.set("dfs.data.transfer.protection", "privacy");
        settings.setLong("dfs.blocksize", 1 << 20);
        settings.setInt("dfs.replication", 1);
        settings.set("hadoop.tmp.dir", folder.getPath());
        UserGroupInformation.setConfiguration(settings);
        UserGroupInformation.loginUserFromKeytab(server, keys.getPath());
        MiniDFSCluster cluster =
            new MiniDFSCluster.Builder(settings, new File(folder, "data")).numDataNodes(1).build();
        cluster.waitActive();
        cluster.getFileSystem().setPermission(new Path("/"), new FsPermission((short) 0777));
        System.out.println("port " + cluster.getNameNodePort() + " " + center.getKrb5conf());
        System.in.read();
        Runtime.getRuntime().halt(0);
    }
}
