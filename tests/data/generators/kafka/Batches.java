
/** The standard input of `WriteBatches`, `WriteWrappers` and `WriteOldWrappers`. `written.py` appends it to each program, whose imports it has. */
class Batches {
  /** Passes each batch to {@code write}, with its records. */
  static void each(java.util.function.BiConsumer<String[], List<String[]>> write) throws java.io.IOException {
    String[] batch = null;
    List<String[]> records = new ArrayList<>();
    var lines = new java.io.BufferedReader(new java.io.InputStreamReader(System.in, java.nio.charset.StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] columns = line.split("\t", -1);
      if (columns[0].equals("record")) {
        records.add(columns);
        continue;
      }
      if (batch != null) {
        write.accept(batch, records);
      }
      records.clear();
      batch = columns;
    }
    if (batch != null) {
      write.accept(batch, records);
    }
  }

  /** In Base64. */
  static String encoded(ByteBuffer written) {
    byte[] bytes = new byte[written.remaining()];
    written.duplicate().get(bytes);
    return Base64.getEncoder().encodeToString(bytes);
  }

  /** The bytes of a column, null for `-`. */
  static byte[] bytes(String column) {
    return column.equals("-") ? null : Base64.getDecoder().decode(column);
  }
}
