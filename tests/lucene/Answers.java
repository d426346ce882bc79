import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.lucene.document.Document;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.queryparser.classic.ParseException;
import org.apache.lucene.queryparser.classic.QueryParser;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.Sort;
import org.apache.lucene.search.SortField;
import org.apache.lucene.store.RAMDirectory;
import org.apache.lucene.util.Version;

/**
 * Answers queries over documents with Lucene. The forms of both files are those of cases.py.
 *
 * Usage: Answers DOCUMENTS CASES. Prints a line for each case: the numbers of its documents, or `error`.
 */
public final class Answers {
    private final IndexSearcher searcher;
    private final SolrTexts texts = new SolrTexts();

    private Answers(List<String> documents) throws IOException {
        RAMDirectory directory = new RAMDirectory();
        try (IndexWriter writer = new IndexWriter(directory, new IndexWriterConfig(Version.LATEST, texts))) {
            for (String line : documents) {
                writer.addDocument(document(columns(line)));
            }
            // One segment: Lucene's numbers of documents are then those of the lines.
            writer.forceMerge(1);
        }
        searcher = new IndexSearcher(DirectoryReader.open(directory));
    }

    public static void main(String[] arguments) throws IOException {
        Answers answers = new Answers(lines(arguments[0]));
        try (PrintStream out = new PrintStream(System.out, false, "UTF-8")) {
            for (String line : lines(arguments[1])) {
                out.println(answers.of(columns(line)));
            }
        }
    }

    private static List<String> lines(String path) throws IOException {
        Path file = Paths.get(path);
        String text = new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
        return Arrays.stream(text.split("\n")).filter(line -> !line.isEmpty()).collect(Collectors.toList());
    }

    /** The columns of a line, without their escapes. */
    private static String[] columns(String line) {
        return Arrays.stream(line.split("\t", -1)).map(Answers::plain).toArray(String[]::new);
    }

    private static String plain(String escaped) {
        StringBuilder plain = new StringBuilder();
        for (int at = 0; at < escaped.length(); at++) {
            char c = escaped.charAt(at);
            if (c == '\\') {
                at++;
                char next = escaped.charAt(at);
                plain.append(next == 't' ? '\t' : next == 'n' ? '\n' : next);
            } else {
                plain.append(c);
            }
        }
        return plain.toString();
    }

    /** A document of a key and fields. */
    private static Document document(String[] columns) {
        Document document = new Document();
        document.add(Kind.STRING.field("_yz_rk", columns[0]));
        for (String column : Arrays.asList(columns).subList(1, columns.length)) {
            int end = column.indexOf('=');
            String name = column.substring(0, end);
            document.add(Kind.of(name).field(name, column.substring(end + 1)));
        }
        return document;
    }

    /** The answer to a case: operator, default field, order, count, query. */
    private String of(String[] columns) throws IOException {
        Query query;
        try {
            SolrParser parser = new SolrParser(columns[1], texts);
            parser.setDefaultOperator(columns[0].equals("AND") ? QueryParser.AND_OPERATOR : QueryParser.OR_OPERATOR);
            query = SolrParser.withDocuments(parser.parse(columns[4]));
        } catch (ParseException | IllegalArgumentException | java.time.DateTimeException e) {
            return "error";
        }
        int count = Math.max(1, searcher.getIndexReader().maxDoc());
        boolean isSet = columns[2].isEmpty();
        Sort sort = isSet ? Sort.INDEXORDER : new Sort(keys(columns[2]));
        int[] found = Arrays.stream(searcher.search(query, count, sort).scoreDocs).mapToInt((ScoreDoc hit) -> hit.doc).toArray();
        int shown = isSet ? found.length : Math.min(found.length, Integer.parseInt(columns[3]));
        return Arrays.stream(found).limit(shown).mapToObj(Integer::toString).collect(Collectors.joining(" "));
    }

    private static SortField[] keys(String sort) {
        return Arrays.stream(sort.split(",")).map(key -> {
            String[] words = key.trim().split(" ");
            return Kind.of(words[0]).sortField(words[0], words[1].equals("desc"));
        }).toArray(SortField[]::new);
    }
}
