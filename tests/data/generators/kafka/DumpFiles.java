import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import kafka.tools.DumpLogSegments;

/**
 * What Kafka's DumpLogSegments prints. Each line of the standard input is the arguments of a run, with tabs between; an empty line ends
 * what is printed of it. What it prints to the standard error is behind `STDERR `.
 */
public class DumpFiles {
  public static void main(String[] arguments) throws Exception {
    BufferedReader runs = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = System.out;
    ByteArrayOutputStream errors = new ByteArrayOutputStream();
    System.setErr(new PrintStream(errors, true, StandardCharsets.UTF_8)); // before Scala's console takes it
    for (String run = runs.readLine(); run != null; run = runs.readLine()) {
      DumpLogSegments.main(run.split("\t"));
      errors.toString(StandardCharsets.UTF_8).lines().forEach(line -> out.println("STDERR " + line));
      errors.reset();
      out.println();
    }
    out.flush();
  }
}
