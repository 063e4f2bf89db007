package org.apache.hadoop.streaming; // so that classes of Streaming have their short names

import java.io.PrintWriter;
import java.net.URLDecoder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.Counters;
import org.apache.hadoop.util.ToolRunner;

/**
 * Hadoop Streaming jobs, one after another in one JVM: starting it takes longer than most of them.
 *
 * Each line of the list is a job: its name and its arguments, percent-encoded, separated by spaces.
 * `<results>/<name>` gets the exit code, then "group TAB counter TAB value" for each counter.
 */
public class StreamingBatch extends StreamJob {
  public static void main(String[] arguments) throws Exception {
    Path results = Paths.get(arguments[1]);
    for (String line : Files.readAllLines(Paths.get(arguments[0]))) {
      List<String> words = new ArrayList<>();
      for (String word : line.split(" ")) {
        words.add(URLDecoder.decode(word, "UTF-8"));
      }
      StreamingBatch job = new StreamingBatch();
      int code;
      try {
        String[] rest = words.subList(1, words.size()).toArray(new String[0]);
        code = ToolRunner.run(new Configuration(), job, rest);
      } catch (Exception error) {
        error.printStackTrace();
        code = 1; // what the JVM exits with when main throws
      }
      try (PrintWriter out = new PrintWriter(results.resolve(words.get(0)).toFile(), "UTF-8")) {
        out.println(code);
        if (job.running_ != null) {
          for (Counters.Group group : job.running_.getCounters()) {
            for (Counters.Counter counter : group) {
              out.println(group.getName() + "\t" + counter.getName() + "\t" + counter.getCounter());
            }
          }
        }
      }
    }
  }
}
