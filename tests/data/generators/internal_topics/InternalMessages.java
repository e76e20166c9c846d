// Messages from JSON and back, by Kafka's own generated classes: a line in (class, version, JSON), a line out (its bytes in hex,
// and the JSON that Kafka's converter has for what it reads out of them).
import com.fasterxml.jackson.databind.*;
import java.io.*;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.protocol.*;

public class InternalMessages {
    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                out.println(written(mapper.readTree(line)));
            } catch (ClassNotFoundException missing) {
                out.println();
            } catch (InvocationTargetException failed) {
                if (!(failed.getCause() instanceof UnsupportedVersionException)) throw failed;
                out.println();
            }
        }
        out.flush();
    }

    // An empty line answers what this release does not have.
    static String written(JsonNode asked) throws Exception {
        short version = (short) asked.get("version").asInt();
        Class<?> type = Class.forName(asked.get("class").asText());
        Class<?> converter = Class.forName(asked.get("class").asText() + "JsonConverter");
        Message message = (Message) converter.getMethod("read", JsonNode.class, short.class).invoke(null, asked.get("json"), version);
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer bytes = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(bytes), cache, version);
        Message read = (Message) type.getConstructor(org.apache.kafka.common.protocol.Readable.class, short.class).newInstance(new ByteBufferAccessor(ByteBuffer.wrap(bytes.array())), version);
        return HexFormat.of().formatHex(bytes.array()) + " " + converter.getMethod("write", type, short.class).invoke(null, read, version);
    }
}
