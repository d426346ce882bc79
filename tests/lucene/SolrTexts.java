import java.io.IOException;
import java.io.Reader;
import java.util.Map;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.Tokenizer;
import org.apache.lucene.analysis.cjk.CJKBigramFilter;
import org.apache.lucene.analysis.cjk.CJKWidthFilter;
import org.apache.lucene.analysis.core.KeywordTokenizer;
import org.apache.lucene.analysis.core.LowerCaseFilter;
import org.apache.lucene.analysis.core.StopFilter;
import org.apache.lucene.analysis.da.DanishAnalyzer;
import org.apache.lucene.analysis.en.EnglishAnalyzer;
import org.apache.lucene.analysis.en.EnglishPossessiveFilter;
import org.apache.lucene.analysis.en.PorterStemFilter;
import org.apache.lucene.analysis.fi.FinnishAnalyzer;
import org.apache.lucene.analysis.hu.HungarianAnalyzer;
import org.apache.lucene.analysis.nl.DutchAnalyzer;
import org.apache.lucene.analysis.no.NorwegianAnalyzer;
import org.apache.lucene.analysis.ru.RussianAnalyzer;
import org.apache.lucene.analysis.snowball.SnowballFilter;
import org.apache.lucene.analysis.standard.StandardTokenizer;
import org.apache.lucene.analysis.sv.SwedishAnalyzer;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;
import org.apache.lucene.analysis.util.CharArraySet;
import org.apache.lucene.util.Version;

/**
 * The analyzers of the types of text that the schema `_yz_default` makes of Lucene's parts alone, with
 * lists of stop words that Ombak has too.
 */
final class SolrTexts extends Analyzer {
    /** Positions between two values of a field. */
    private static final int GAP = 100;

    private static final Map<String, CharArraySet> STOP_WORDS = Map.of(
            "da", DanishAnalyzer.getDefaultStopSet(), "en", EnglishAnalyzer.getDefaultStopSet(),
            "fi", FinnishAnalyzer.getDefaultStopSet(), "hu", HungarianAnalyzer.getDefaultStopSet(),
            "nl", DutchAnalyzer.getDefaultStopSet(), "no", NorwegianAnalyzer.getDefaultStopSet(),
            "ru", RussianAnalyzer.getDefaultStopSet(), "sv", SwedishAnalyzer.getDefaultStopSet());

    private static final Map<String, String> STEMMERS = Map.of("da", "Danish", "fi", "Finnish", "hu", "Hungarian",
            "nl", "Dutch", "no", "Norwegian", "ru", "Russian", "sv", "Swedish");

    SolrTexts() {
        super(Analyzer.PER_FIELD_REUSE_STRATEGY);
    }

    static boolean hasLanguage(String suffix) {
        return suffix.equals("cjk") || STOP_WORDS.containsKey(suffix);
    }

    @Override
    public int getPositionIncrementGap(String field) {
        return GAP;
    }

    @Override
    protected TokenStreamComponents createComponents(String field, Reader reader) {
        Tokenizer source = new StandardTokenizer(reader);
        String language = Kind.suffix(field);
        if (language.equals("cjk")) {
            return new TokenStreamComponents(source, new CJKBigramFilter(new LowerCaseFilter(new CJKWidthFilter(source))));
        }
        if (language.equals("en")) {
            TokenStream words = new LowerCaseFilter(new StopFilter(source, stopWords(language)));
            return new TokenStreamComponents(source, new PorterStemFilter(new EnglishPossessiveFilter(Version.LATEST, words)));
        }
        TokenStream words = new LowerCaseFilter(source);
        if (STEMMERS.containsKey(language)) {
            words = new SnowballFilter(new StopFilter(words, stopWords(language)), STEMMERS.get(language));
        }
        return new TokenStreamComponents(source, words);
    }

    private static CharArraySet stopWords(String language) {
        return new CharArraySet(STOP_WORDS.get(language), true);
    }

    /** A piece of a pattern as Solr writes it: only filters for single characters are applied. */
    static String piece(String field, String text) {
        if (text == null) {
            return null;
        }
        try (Analyzer analyzer = new Analyzer() {
            @Override
            protected TokenStreamComponents createComponents(String name, Reader reader) {
                Tokenizer source = new KeywordTokenizer(reader);
                TokenStream words = Kind.suffix(name).equals("cjk") ? new CJKWidthFilter(source) : source;
                return new TokenStreamComponents(source, new LowerCaseFilter(words));
            }
        }; TokenStream words = analyzer.tokenStream(field, text)) {
            words.reset();
            String piece = words.incrementToken() ? words.getAttribute(CharTermAttribute.class).toString() : "";
            words.end();
            return piece;
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }
}
