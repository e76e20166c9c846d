import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;

/** Prints the configurations that classes define, a line each: the name and its type. Classes that are not there are passed over. */
public final class KafkaConfigs {
    public static void main(String[] classes) throws ReflectiveOperationException {
        TreeMap<String, String> types = new TreeMap<>();
        for (String name : classes) {
            Class<?> type;
            try {
                type = Class.forName(name);
            } catch (ClassNotFoundException notInThisRelease) {
                continue;
            }
            Object module = null;
            for (Field field : type.getDeclaredFields()) {
                if (field.getName().equals("MODULE$")) {
                    module = field.get(null);
                }
            }
            for (Field field : type.getDeclaredFields()) {
                if (ConfigDef.class.isAssignableFrom(field.getType()) && Modifier.isStatic(field.getModifiers())) {
                    field.setAccessible(true);
                    add((ConfigDef) field.get(null), types);
                }
            }
            for (Method method : type.getDeclaredMethods()) {
                boolean callable = module != null || Modifier.isStatic(method.getModifiers());
                if (callable && method.getParameterCount() == 0 && ConfigDef.class.isAssignableFrom(method.getReturnType())) {
                    method.setAccessible(true);
                    add((ConfigDef) method.invoke(module), types);
                }
            }
        }
        types.forEach((name, type) -> System.out.println(name + " " + type));
    }

    private static void add(ConfigDef definitions, TreeMap<String, String> types) {
        definitions.configKeys().forEach((name, key) -> types.put(name, key.type.name()));
    }
}
