// Hadoop's provider of the local job runner sets the number of maps to 1 whatever the job asks for, and
// no option prevents it; TeraGen then writes one file. This one leaves the number alone. It is found
// first, as its place on the class path is.

import java.io.IOException;
import java.net.InetSocketAddress;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.LocalJobRunner;
import org.apache.hadoop.mapreduce.protocol.ClientProtocol;
import org.apache.hadoop.mapreduce.protocol.ClientProtocolProvider;

public final class KeepMaps extends ClientProtocolProvider {
  @Override
  public ClientProtocol create(Configuration conf) throws IOException {
    return new LocalJobRunner(conf);
  }

  @Override
  public ClientProtocol create(InetSocketAddress address, Configuration conf) {
    return null; // as Hadoop's: the local runner has no address
  }

  @Override
  public void close(ClientProtocol protocol) {}
}
