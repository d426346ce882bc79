import com.basho.riak.client.api.RiakClient;
import com.basho.riak.client.api.RiakCommand;
import com.basho.riak.client.api.cap.ConflictResolver;
import com.basho.riak.client.api.cap.ConflictResolverFactory;
import com.basho.riak.client.api.commands.buckets.FetchBucketProperties;
import com.basho.riak.client.api.commands.buckets.ListBuckets;
import com.basho.riak.client.api.commands.buckets.ResetBucketProperties;
import com.basho.riak.client.api.commands.buckets.StoreBucketProperties;
import com.basho.riak.client.api.commands.datatypes.CounterUpdate;
import com.basho.riak.client.api.commands.datatypes.FetchCounter;
import com.basho.riak.client.api.commands.datatypes.FetchHll;
import com.basho.riak.client.api.commands.datatypes.FetchMap;
import com.basho.riak.client.api.commands.datatypes.FetchSet;
import com.basho.riak.client.api.commands.datatypes.FlagUpdate;
import com.basho.riak.client.api.commands.datatypes.HllUpdate;
import com.basho.riak.client.api.commands.datatypes.MapUpdate;
import com.basho.riak.client.api.commands.datatypes.RegisterUpdate;
import com.basho.riak.client.api.commands.datatypes.SetUpdate;
import com.basho.riak.client.api.commands.datatypes.UpdateCounter;
import com.basho.riak.client.api.commands.datatypes.UpdateHll;
import com.basho.riak.client.api.commands.datatypes.UpdateMap;
import com.basho.riak.client.api.commands.datatypes.UpdateSet;
import com.basho.riak.client.api.commands.indexes.BinIndexQuery;
import com.basho.riak.client.api.commands.indexes.IntIndexQuery;
import com.basho.riak.client.api.commands.kv.DeleteValue;
import com.basho.riak.client.api.commands.kv.FetchValue;
import com.basho.riak.client.api.commands.kv.ListKeys;
import com.basho.riak.client.api.commands.kv.StoreValue;
import com.basho.riak.client.api.commands.kv.UpdateValue;
import com.basho.riak.client.api.commands.mapreduce.BucketKeyMapReduce;
import com.basho.riak.client.api.commands.mapreduce.BucketMapReduce;
import com.basho.riak.client.api.commands.mapreduce.IndexMapReduce;
import com.basho.riak.client.api.commands.mapreduce.MapReduce;
import com.basho.riak.client.api.commands.mapreduce.filters.EndsWithFilter;
import com.basho.riak.client.api.commands.search.DeleteIndex;
import com.basho.riak.client.api.commands.search.FetchIndex;
import com.basho.riak.client.api.commands.search.FetchSchema;
import com.basho.riak.client.api.commands.search.Search;
import com.basho.riak.client.api.commands.search.StoreIndex;
import com.basho.riak.client.api.commands.search.StoreSchema;
import com.basho.riak.client.core.operations.PingOperation;
import com.basho.riak.client.core.operations.SearchOperation;
import com.basho.riak.client.core.query.BucketProperties;
import com.basho.riak.client.core.query.Location;
import com.basho.riak.client.core.query.Namespace;
import com.basho.riak.client.core.query.RiakObject;
import com.basho.riak.client.core.query.crdt.types.RiakMap;
import com.basho.riak.client.core.query.functions.Function;
import com.basho.riak.client.core.query.indexes.LongIntIndex;
import com.basho.riak.client.core.query.indexes.StringBinIndex;
import com.basho.riak.client.core.query.links.RiakLink;
import com.basho.riak.client.core.query.search.YokozunaIndex;
import com.basho.riak.client.core.query.search.YokozunaSchema;
import com.basho.riak.client.core.util.BinaryValue;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Ombak seen through the official Java client (Protocol Buffers): each scenario is small, reads top to bottom and uses a
 * bucket of its own. Usage: {@code java Smoke PORT [DIRECTORY PORT...]}. With the DIRECTORY of the certificates of a secured
 * cluster, and the ports of its nodes, everything goes over TLS, and the scenarios of {@link Security} are run too. Exit
 * status 1 when a scenario fails.
 */
public final class Smoke {
    /** Created by run.py, with a type's default of allow_mult = true, as is a type for each data type, with its name. */
    private static final String SIBLINGS_TYPE = "siblings";

    private static final long REQUEST_SECONDS_MAX = 20;

    @FunctionalInterface
    interface Scenario {
        void run() throws Exception;
    }

    private final RiakClient riak;

    private Smoke(RiakClient riak) {
        this.riak = riak;
    }

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        Security security = arguments.length == 1 ? null : new Security(Path.of(arguments[1]),
                Arrays.stream(arguments).skip(2).map(Integer::parseInt).toList());
        RiakClient riak = security == null ? RiakClient.newClient(port, "127.0.0.1") : security.client(port);
        int failed = 0;
        Map<String, Scenario> scenarios = new Smoke(riak).scenarios();
        if (security != null) {
            scenarios.putAll(security.scenarios());
        }
        for (Map.Entry<String, Scenario> scenario : scenarios.entrySet()) {
            try {
                scenario.getValue().run();
                System.out.println("ok      " + scenario.getKey());
            } catch (Exception | AssertionError problem) {
                failed++;
                System.out.println("FAILED  " + scenario.getKey());
                problem.printStackTrace(System.out);
            }
        }
        riak.shutdown().get(REQUEST_SECONDS_MAX, TimeUnit.SECONDS);
        System.out.println(scenarios.size() - failed + " passed, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }

    private Map<String, Scenario> scenarios() {
        Map<String, Scenario> all = new LinkedHashMap<>();
        all.put("ping", this::ping);
        all.put("a value comes back with its metadata", this::metadata);
        all.put("a key is made when none is given, and a body comes back when asked for", this::generatedKey);
        all.put("an absent key is reported as not found", this::absentKey);
        all.put("conditions refuse a put", this::conditions);
        all.put("siblings are kept, resolved and written back", this::siblings);
        all.put("an update reads, changes and writes", this::update);
        all.put("keys and buckets are listed, streamed and at once", this::listings);
        all.put("indexes are asked, in pages and with terms", this::indexes);
        all.put("bucket properties are read, set and reset", this::properties);
        all.put("an unknown bucket type is named in the error", this::unknownType);
        all.put("a deleted key is gone", this::delete);
        all.put("a counter counts up and down, also under a key that the server makes", this::counter);
        all.put("a set takes members, and gives up those that a context has seen", this::set);
        all.put("a map has fields of all types, also of maps", this::map);
        all.put("a HyperLogLog counts a member once", this::hyperLogLog);
        all.put("a job gives the results of its phases, with functions of both languages", this::mapReduce);
        all.put("an index is made, asked and deleted, and so is a schema", this::search);
        all.put("a value of a megabyte survives", this::largeValue);
        return all;
    }

    private void ping() throws Exception {
        PingOperation operation = new PingOperation();
        riak.getRiakCluster().execute(operation);
        operation.get(REQUEST_SECONDS_MAX, TimeUnit.SECONDS);
        same(true, operation.isSuccess());
    }

    private void metadata() throws Exception {
        Location place = new Location(new Namespace("java-metadata"), "clé/1");
        RiakObject object = text("wave").setCharset("utf-8");
        object.getUserMeta().put("colour", "blue");
        object.getLinks().addLink(new RiakLink("java-metadata", "other", "next"));
        object.getIndexes().getIndex(StringBinIndex.named("colour")).add("blue");
        object.getIndexes().getIndex(LongIntIndex.named("size")).add(42L);
        store(place, object);

        FetchValue.Response reply = fetch(place);
        same(false, reply.isNotFound());
        RiakObject found = reply.getValue(RiakObject.class);
        same("wave", found.getValue().toStringUtf8());
        same("text/plain", found.getContentType());
        same("utf-8", found.getCharset());
        same("blue", found.getUserMeta().get("colour"));
        same(true, found.getLinks().hasLink(new RiakLink("java-metadata", "other", "next")));
        same(true, found.getIndexes().getIndex(StringBinIndex.named("colour")).hasValue("blue"));
        same(true, found.getIndexes().getIndex(LongIntIndex.named("size")).hasValue(42L));
        same(true, found.getLastModified() > 0 && !found.getVTag().isEmpty());
    }

    private void generatedKey() throws Exception {
        StoreValue.Response made = execute(new StoreValue.Builder(text("made")).withNamespace(new Namespace("java-made"))
                .withOption(StoreValue.Option.RETURN_BODY, true).build());
        same(true, made.hasGeneratedKey());
        same("made", made.getValue(RiakObject.class).getValue().toString());
    }

    private void absentKey() throws Exception {
        FetchValue.Response reply = fetch(new Location(new Namespace("java-absent"), "none"));
        same(true, reply.isNotFound());
        same(false, reply.hasValues());
    }

    private void conditions() throws Exception {
        Location place = new Location(new Namespace("java-conditions"), "k");
        store(place, text("first"));
        refused("match_found", () -> execute(new StoreValue.Builder(text("second")).withLocation(place)
                .withOption(StoreValue.Option.IF_NONE_MATCH, true).build()));
    }

    private void siblings() throws Exception {
        Location place = new Location(new Namespace(SIBLINGS_TYPE, "java"), "k");
        store(place, text("one"));
        store(place, text("two"));
        FetchValue.Response both = fetch(place);
        same(Set.of("one", "two"),
                both.getValues(RiakObject.class).stream().map(o -> o.getValue().toString()).collect(Collectors.toSet()));

        RiakObject resolved = text("three").setVClock(both.getVectorClock());
        store(place, resolved);
        same("three", fetch(place).getValue(RiakObject.class).getValue().toString());
    }

    private void update() throws Exception {
        Location place = new Location(new Namespace(SIBLINGS_TYPE, "java"), "update");
        store(place, text("a"));
        store(place, text("b"));
        ConflictResolverFactory.getInstance().registerConflictResolver(RiakObject.class,
                (ConflictResolver<RiakObject>) all -> all.size() < 2 ? all.stream().findFirst().orElse(null) : text(all.stream()
                        .map(o -> o.getValue().toString()).sorted().collect(Collectors.joining())));
        UpdateValue change = new UpdateValue.Builder(place).withUpdate(new UpdateValue.Update<RiakObject>() {
            @Override
            public RiakObject apply(RiakObject old) {
                return old.setValue(BinaryValue.create(old.getValue() + "c"));
            }
        }).build();
        execute(change);
        same("abc", fetch(place).getValue(RiakObject.class).getValue().toString());
    }

    private void listings() throws Exception {
        Namespace bucket = new Namespace(SIBLINGS_TYPE, "java-list");
        Set<String> keys = IntStream.range(0, 300).mapToObj(i -> "k" + i).collect(Collectors.toCollection(TreeSet::new));
        for (String key : keys) {
            store(new Location(bucket, key), text("x"));
        }
        same(keys, keysOf(execute(new ListKeys.Builder(bucket).build())));
        same(keys, keysOf(riak.executeAsyncStreaming(new ListKeys.Builder(bucket).build(), 500).get()));
        same(Set.of(), keysOf(execute(new ListKeys.Builder(new Namespace("java-empty")).build())));

        Set<String> buckets = new TreeSet<>();
        execute(new ListBuckets.Builder(SIBLINGS_TYPE).build()).forEach(b -> buckets.add(b.getBucketNameAsString()));
        same(true, buckets.contains("java-list"));
        buckets.clear();
        riak.executeAsyncStreaming(new ListBuckets.Builder(SIBLINGS_TYPE).build(), 500).get()
                .forEach(b -> buckets.add(b.getBucketNameAsString()));
        same(true, buckets.contains("java-list"));
    }

    private void indexes() throws Exception {
        Namespace bucket = new Namespace(SIBLINGS_TYPE, "java-index");
        for (int n = 0; n < 10; n++) {
            RiakObject object = text("x");
            object.getIndexes().getIndex(StringBinIndex.named("name")).add("n" + n);
            object.getIndexes().getIndex(LongIntIndex.named("size")).add(n - 5L);
            store(new Location(bucket, "k" + n), object);
        }
        same(List.of("k3"), execute(new BinIndexQuery.Builder(bucket, "name", "n3").build()).getEntries().stream()
                .map(entry -> entry.getRiakObjectLocation().getKeyAsString()).toList());
        same(List.of("-2 k3", "-1 k4", "0 k5"), execute(new IntIndexQuery.Builder(bucket, "size", -2L, 0L)
                .withKeyAndIndex(true).build()).getEntries().stream()
                .map(entry -> entry.getIndexKey() + " " + entry.getRiakObjectLocation().getKeyAsString()).toList());
        BinIndexQuery.Response first = execute(new BinIndexQuery.Builder(bucket, "name", "n0", "n9").withMaxResults(6)
                .withPaginationSort(true).build());
        same(6, first.getEntries().size());
        BinIndexQuery.Response second = execute(new BinIndexQuery.Builder(bucket, "name", "n0", "n9").withMaxResults(6)
                .withPaginationSort(true).withContinuation(first.getContinuation()).build());
        same(4, second.getEntries().size());
        same(false, second.hasContinuation());
    }

    private void properties() throws Exception {
        Namespace bucket = new Namespace("java-properties");
        BucketProperties before = propertiesOf(bucket);
        same(List.of(3, false), List.of(before.getNVal(), before.getAllowMulti()));
        execute(new StoreBucketProperties.Builder(bucket).withNVal(5).withAllowMulti(true).withR(2).build());
        BucketProperties after = propertiesOf(bucket);
        same(List.of(5, true, 2), List.of(after.getNVal(), after.getAllowMulti(), after.getR().getIntValue()));
        execute(new ResetBucketProperties.Builder(bucket).build());
        BucketProperties reset = propertiesOf(bucket);
        same(List.of(3, false), List.of(reset.getNVal(), reset.getAllowMulti()));
        same(true, propertiesOf(new Namespace(SIBLINGS_TYPE, "java-properties")).getAllowMulti());
    }

    private void unknownType() throws Exception {
        refused("no_type", () -> fetch(new Location(new Namespace("nonesuch", "b"), "k")));
    }

    private void delete() throws Exception {
        Location place = new Location(new Namespace("java-delete"), "k");
        store(place, text("x"));
        execute(new DeleteValue.Builder(place).withVClock(fetch(place).getVectorClock()).build());
        same(true, fetch(place).isNotFound());
    }

    private void counter() throws Exception {
        Location place = new Location(new Namespace("counter", "java"), "k");
        execute(new UpdateCounter.Builder(place, new CounterUpdate(10)).build());
        same(7L, execute(new UpdateCounter.Builder(place, new CounterUpdate(-3)).withReturnDatatype(true).build())
                .getDatatype().view());
        same(7L, execute(new FetchCounter.Builder(place).build()).getDatatype().view());
        UpdateCounter.Response made = execute(
                new UpdateCounter.Builder(place.getNamespace(), new CounterUpdate(4)).withReturnDatatype(true).build());
        Location madePlace = new Location(place.getNamespace(), made.getGeneratedKey());
        same(4L, execute(new FetchCounter.Builder(madePlace).build()).getDatatype().view());
    }

    private void set() throws Exception {
        Location place = new Location(new Namespace("set", "java"), "k");
        execute(new UpdateSet.Builder(place, new SetUpdate().add("b").add("a").add("c")).build());
        FetchSet.Response seen = execute(new FetchSet.Builder(place).build());
        same(members("a", "b", "c"), seen.getDatatype().view());
        execute(new UpdateSet.Builder(place, new SetUpdate().add("d")).build());
        SetUpdate removal = new SetUpdate().remove("a").remove("c");
        same(members("b", "d"), execute(new UpdateSet.Builder(place, removal).withContext(seen.getContext())
                .withReturnDatatype(true).build()).getDatatype().view());
    }

    private void map() throws Exception {
        Location place = new Location(new Namespace("map", "java"), "k");
        MapUpdate inner = new MapUpdate().update("deep", new RegisterUpdate("x")).update("innermost",
                new MapUpdate().update("g", new FlagUpdate(true)));
        execute(new UpdateMap.Builder(place, new MapUpdate().update("n", new CounterUpdate(5)).update("s", new SetUpdate().add("one"))
                .update("r", new RegisterUpdate("text")).update("f", new FlagUpdate(true)).update("inner", inner)).build());
        FetchMap.Response seen = execute(new FetchMap.Builder(place).build());
        RiakMap map = seen.getDatatype();
        same(5L, map.getCounter("n").view());
        same(members("one"), map.getSet("s").view());
        same("text", map.getRegister("r").toString());
        same(true, map.getFlag("f").getEnabled());
        same("x", map.getMap("inner").getRegister("deep").toString());
        same(true, map.getMap("inner").getMap("innermost").getFlag("g").getEnabled());

        MapUpdate change = new MapUpdate().update("n", new CounterUpdate(1)).removeRegister("r").update("f", new FlagUpdate(false))
                .update("inner", new MapUpdate().removeMap("innermost"));
        RiakMap changed = execute(new UpdateMap.Builder(place, change).withContext(seen.getContext()).withReturnDatatype(true)
                .build()).getDatatype();
        same(6L, changed.getCounter("n").view());
        same(null, changed.getRegister("r"));
        same(false, changed.getFlag("f").getEnabled());
        same(null, changed.getMap("inner").getMap("innermost"));
    }

    private void hyperLogLog() throws Exception {
        Location place = new Location(new Namespace("hll", "java"), "k");
        execute(new UpdateHll.Builder(place, new HllUpdate().add("a").add("b").add("a")).build());
        execute(new UpdateHll.Builder(place, new HllUpdate().add("b").add("c")).build());
        same(3L, execute(new FetchHll.Builder(place).build()).getCardinality());
    }

    private void mapReduce() throws Exception {
        Namespace bucket = new Namespace("java-jobs");
        for (int i = 0; i < 20; i++) {
            RiakObject object = new RiakObject().setContentType("application/json")
                .setValue(BinaryValue.create("{\"price\":" + i + "}"));
            object.getIndexes().getIndex(LongIntIndex.named("price")).add((long) i);
            store(new Location(bucket, "k" + i), object);
        }
        Function price = Function.newAnonymousJsFunction("function(o) { return [JSON.parse(o.values[0].data).price]; }");
        Function sum = Function.newNamedJsFunction("Riak.reduceSum");
        Function value = Function.newErlangFunction("riak_kv_mapreduce", "map_object_value");
        Function count = Function.newErlangFunction("riak_kv_mapreduce", "reduce_count_inputs");

        MapReduce.Response both = execute(new BucketMapReduce.Builder().withNamespace(bucket)
            .withMapPhase(price, true).withReducePhase(sum, true).build());
        Set<Integer> prices = new TreeSet<>();
        both.getResultForPhase(0).forEach(found -> prices.add(found.asInt()));
        same(IntStream.range(0, 20).boxed().collect(Collectors.toSet()), prices);
        same("[190]", both.getResultForPhase(1).toString());

        same("[20]", all(new BucketMapReduce.Builder().withNamespace(bucket)
            .withMapPhase(value).withReducePhase(count, true).build()));
        same("[20]", all(new BucketMapReduce.Builder().withNamespace(bucket).withKeyFilter(new EndsWithFilter("5"))
            .withMapPhase(price).withReducePhase(sum, true).build()));
        same("[7]", all(new BucketKeyMapReduce.Builder().withLocation(new Location(bucket, "k3"))
            .withLocation(new Location(bucket, "k4"), "data").withMapPhase(price).withReducePhase(sum, true).build()));
        same("[3]", all(new IndexMapReduce.Builder().withNamespace(bucket).withIndex("price_int").withRange(0, 2)
            .withMapPhase(price).withReducePhase(sum, true).build()));
        refused("on purpose", () -> all(new BucketMapReduce.Builder().withNamespace(bucket)
            .withMapPhase(Function.newAnonymousJsFunction("function() { throw new Error('on purpose'); }"), true).build()));
    }

    private String all(MapReduce job) throws Exception {
        return execute(job).getResultsFromAllPhases().toString();
    }

    private void search() throws Exception {
        String name = "java-people";
        String content = execute(new FetchSchema.Builder("_yz_default").build()).getSchema().getContent();
        execute(new StoreSchema.Builder(new YokozunaSchema(name, content)).build());
        same(content, execute(new FetchSchema.Builder(name).build()).getSchema().getContent());
        execute(new StoreIndex.Builder(new YokozunaIndex(name, name)).build());
        YokozunaIndex index = execute(new FetchIndex.Builder(name).build()).getIndexes().get(0);
        same(List.of(name, name, 3), List.of(index.getName(), index.getSchema(), index.getNVal()));

        Namespace bucket = new Namespace(name);
        execute(new StoreBucketProperties.Builder(bucket).withSearchIndex(name).build());
        same(name, propertiesOf(bucket).getSearchIndex());
        for (int n = 0; n < 3; n++) {
            String person = "{\"name_s\":\"n" + n + "\",\"age_i\":" + 30 * n + ",\"groups_ss\":[\"all\",\"g" + n + "\"]}";
            store(new Location(bucket, "k" + n), text(person).setContentType("application/json"));
        }
        SearchOperation.Response found = searchUntil(2, new Search.Builder(name, "age_i:[30 TO *]").sort("age_i desc").withRows(1).build());
        same(1, found.getAllResults().size());
        same(List.of("k2"), found.getAllResults().get(0).get("_yz_rk"));
        same(List.of("all", "g2"), found.getAllResults().get(0).get("groups_ss"));
        searchUntil(1, new Search.Builder(name, "*:*").filter("name_s:n1").build());
        refused("No index <<\"nonesuch\">> found", () -> execute(new Search.Builder("nonesuch", "*:*").build()));

        execute(new DeleteValue.Builder(new Location(bucket, "k2")).build());
        searchUntil(0, new Search.Builder(name, "name_s:n2").build());
        refused("", () -> execute(new DeleteIndex.Builder(name).build()));
        execute(new StoreBucketProperties.Builder(bucket).withSearchIndex("_dont_index_").build());
        execute(new DeleteIndex.Builder(name).build());
        refused("notfound", () -> execute(new FetchIndex.Builder(name).build()));
    }

    /** Asks until a query finds so many documents: a put shows in searches after about half a second. */
    private SearchOperation.Response searchUntil(int count, Search query) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(REQUEST_SECONDS_MAX);
        for (;;) {
            SearchOperation.Response found = execute(query);
            if (found.numResults() == count) {
                return found;
            }
            same(true, System.nanoTime() < deadline);
            Thread.sleep(50);
        }
    }

    private void largeValue() throws Exception {
        byte[] value = new byte[1 << 20];
        new Random(1).nextBytes(value);
        Location place = new Location(new Namespace("java-bytes"), "k");
        store(place, new RiakObject().setContentType("application/octet-stream").setValue(BinaryValue.create(value)));
        same(true, Arrays.equals(value, fetch(place).getValue(RiakObject.class).getValue().getValue()));
    }

    private static Set<BinaryValue> members(String... names) {
        return Arrays.stream(names).map(BinaryValue::create).collect(Collectors.toSet());
    }

    private static RiakObject text(String value) {
        return new RiakObject().setContentType("text/plain").setValue(BinaryValue.create(value));
    }

    private void store(Location place, RiakObject object) throws Exception {
        execute(new StoreValue.Builder(object).withLocation(place).build());
    }

    private FetchValue.Response fetch(Location place) throws Exception {
        return execute(new FetchValue.Builder(place).build());
    }

    private BucketProperties propertiesOf(Namespace bucket) throws Exception {
        return execute(new FetchBucketProperties.Builder(bucket).build()).getBucketProperties();
    }

    private <T, S> T execute(RiakCommand<T, S> command) throws Exception {
        return riak.execute(command, REQUEST_SECONDS_MAX, TimeUnit.SECONDS);
    }

    private static Set<String> keysOf(Iterable<Location> listing) {
        Set<String> keys = new TreeSet<>();
        listing.forEach(place -> keys.add(place.getKeyAsString()));
        return keys;
    }

    static void same(Object expected, Object actual) {
        if (!Objects.equals(expected, actual)) {
            throw new AssertionError("expected " + expected + ", got " + actual);
        }
    }

    private static void refused(String text, Scenario request) throws Exception {
        try {
            request.run();
        } catch (ExecutionException refusal) {
            same(true, refusal.getMessage().contains(text));
            return;
        }
        throw new AssertionError("expected an error with " + text);
    }
}
