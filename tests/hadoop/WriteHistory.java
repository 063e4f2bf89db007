// Writes two histories of one job by Hadoop's own writer: as JSON and as binary Avro. The job has two
// maps at once, one of which fails at first, and a reduce. The writer is not public: hence the package.

package org.apache.hadoop.mapreduce.jobhistory;

import java.io.IOException;
import java.util.Collections;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Counters;
import org.apache.hadoop.mapreduce.JobID;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.mapreduce.TaskID;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ContainerId;

public final class WriteHistory {
  private static final long BEGAN = 1_700_000_000_000L;
  private static final JobID JOB = new JobID("1700000000000", 1);
  private static final ContainerId CONTAINER =
      ContainerId.newContainerId(
          ApplicationAttemptId.newInstance(ApplicationId.newInstance(BEGAN, 1), 1), 2);

  public static void main(String[] args) throws IOException {
    write(new Path(args[0]), EventWriter.WriteMode.JSON);
    write(new Path(args[1]), EventWriter.WriteMode.BINARY);
  }

  private static void write(Path path, EventWriter.WriteMode mode) throws IOException {
    FileSystem files = FileSystem.getLocal(new Configuration()).getRaw();
    EventWriter out = new EventWriter(files.create(path), mode);
    out.write(
        new AMStartedEvent(
            CONTAINER.getApplicationAttemptId(), BEGAN, CONTAINER, "n0", 1, 2, BEGAN - 5000));
    out.write(
        new JobSubmittedEvent(
            JOB, "word count", "me", BEGAN - 5000, "job.xml", Collections.emptyMap(), "default"));
    out.write(new JobInitedEvent(JOB, BEGAN, 2, 1, "INITED", false));
    start(out, TaskType.MAP, 0, 0, 2000);
    start(out, TaskType.MAP, 1, 0, 2000);
    out.write(
        new TaskAttemptUnsuccessfulCompletionEvent(
            attempt(TaskType.MAP, 0, 0), TaskType.MAP, "FAILED", BEGAN + 4000, "n0", 1, "/rack",
            "a disk was slow", counters(), new int[4][0]));
    start(out, TaskType.MAP, 0, 1, 4000);
    map(out, 1, 0, 5000);
    map(out, 0, 1, 6000);
    start(out, TaskType.REDUCE, 0, 0, 5000);
    out.write(
        new ReduceAttemptFinishedEvent(
            attempt(TaskType.REDUCE, 0, 0), TaskType.REDUCE, "SUCCEEDED", BEGAN + 7000,
            BEGAN + 7500, BEGAN + 9000, "n1", 1, "/rack", "reduce", counters(), new int[4][0]));
    out.write(
        new JobFinishedEvent(
            JOB, BEGAN + 10_000, 2, 1, 1, 0, 0, 0, counters(), counters(), counters()));
    out.close();
  }

  private static void start(EventWriter out, TaskType type, int task, int number, long at)
      throws IOException {
    out.write(
        new TaskAttemptStartedEvent(
            attempt(type, task, number), type, BEGAN + at, "n0", 3, 4, CONTAINER, "LOCAL", "VIRGIN"));
  }

  private static void map(EventWriter out, int task, int number, long at) throws IOException {
    out.write(
        new MapAttemptFinishedEvent(
            attempt(TaskType.MAP, task, number), TaskType.MAP, "SUCCEEDED", BEGAN + at, BEGAN + at,
            "n0", 1, "/rack", "map", counters(), new int[4][0]));
  }

  private static TaskAttemptID attempt(TaskType type, int task, int number) {
    return new TaskAttemptID(new TaskID(JOB, type, task), number);
  }

  private static Counters counters() {
    Counters counters = new Counters();
    counters.findCounter(TaskCounter.CPU_MILLISECONDS).setValue(9000);
    counters
        .findCounter("org.apache.hadoop.mapreduce.lib.input.FileInputFormatCounter", "BYTES_READ")
        .setValue(123_456);
    return counters;
  }
}
