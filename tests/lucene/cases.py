"""Documents and cases for Lucene and Ombak, the same for the same seed.

A document is a line of its key and its fields, `key TAB name=value TAB name=value`. A case is a line
of five columns: the operator (`AND`, `OR` or nothing), the default field, the order, how many
documents count if there is an order, and the query. A recorded case has the answer behind them. In a
column, a tab is written `\\t`, a line feed `\\n`, and a backslash twice."""
import random
import re

from handwritten import CASES, DOCUMENTS
from vocabulary import (BOOLEANS, DATES, FLOATS, INTEGERS, LANGUAGES, LONG_WORDS, LONGS, REGEXES, SEPARATORS, STRING_PATTERNS, STRINGS,
                        WORD_PATTERNS, WORDS)

SHOWN = 40
SORTABLE = ["name_s", "n_i", "big_l", "f_f", "d_d", "ok_b", "at_dt", "ti_ti", "none_s", "none_i"]
NUMBERS = {"n_i": INTEGERS, "ns_is": INTEGERS, "ti_ti": INTEGERS, "big_l": LONGS, "f_f": FLOATS, "d_d": FLOATS}
TEXTS = ["body_t", "notes_txt", "text"]


def escaped(column):
    return column.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def line(columns):
    return "\t".join(map(escaped, columns))


def text(chance, words, most=12):
    """Some words, with what can stand between them."""
    chosen = [chance.choice(words) for _ in range(chance.randint(0, most))]
    return "".join(word + chance.choice(SEPARATORS) for word in chosen)


def document(chance, number):
    """The columns of a document. Each field is missing at times."""
    fields = []

    def add(name, value, most=1):
        if chance.random() < 0.6:
            fields.extend(f"{name}={value()}" for _ in range(chance.randint(1, most)))

    add("name_s", lambda: chance.choice(STRINGS))
    add("tags_ss", lambda: chance.choice(STRINGS), 3)
    for name, numbers in NUMBERS.items():
        add(name, lambda numbers=numbers: chance.choice(numbers), 3 if name == "ns_is" else 1)
    add("ok_b", lambda: chance.choice(BOOLEANS))
    add("at_dt", lambda: chance.choice(DATES))
    add("ats_dts", lambda: chance.choice(DATES), 2)
    words = WORDS if chance.random() < 0.9 else WORDS + LONG_WORDS
    add("body_t", lambda: text(chance, words))
    add("notes_txt", lambda: text(chance, words, 4), 3)
    add("text", lambda: text(chance, words[:24], 8), 2)
    language = chance.choice(list(LANGUAGES))
    fields.append(f"lang_{language}={text(chance, LANGUAGES[language], 8)}")
    return [f"d{number:04}", *fields]


def documents(seed, count):
    """The lines of some documents: those that are written by hand, and random ones."""
    chance = random.Random(f"documents {seed}")
    by_hand = [[f"d{number:04}", *fields] for number, fields in enumerate(DOCUMENTS)]
    return [line(columns) for columns in [*by_hand, *(document(chance, number) for number in range(len(by_hand), count))]]


SIGNS = set("+-!():^[]\"{}~*?\\/ \t\n\u3000")


def word(chance, plain):
    """A word as a query has it: with escapes, or in quotes."""
    plain = str(plain)
    is_operator = plain in ("AND", "OR", "NOT", "TO", "&&", "||")
    if plain == "" or is_operator or chance.random() < 0.1:
        return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return "".join("\\" + c if c in SIGNS else c for c in plain)


class Queries:
    """Random queries."""

    def __init__(self, seed):
        self.chance = random.Random(f"queries {seed}")

    def text_field(self):
        if self.chance.random() < 0.4:
            language = self.chance.choice(list(LANGUAGES))
            return f"lang_{language}", LANGUAGES[language]
        return self.chance.choice(TEXTS), WORDS

    def text_clause(self):
        chance = self.chance
        field, words = self.text_field()
        one = chance.choice(words)
        kind = chance.randrange(8)
        if kind <= 2:
            return f"{field}:{word(chance, one)}"
        if kind <= 4:
            phrase = " ".join(chance.choice(words) for _ in range(chance.randint(1, 3))).replace("\\", "\\\\").replace('"', '\\"')
            return f'{field}:"{phrase}"' + chance.choice(["", "", "~1", "~2", "~3", "~5", "~100", "~101", "~0", "~"])
        if kind == 5:
            return f"{field}:{chance.choice(WORD_PATTERNS)}"
        if kind == 6:
            return f"{field}:{self.range(words)}"
        return f"{field}:/{chance.choice(REGEXES)}/"

    def string_clause(self):
        chance = self.chance
        field = chance.choice(["name_s", "tags_ss"])
        kind = chance.randrange(7)
        if kind <= 1:
            return f"{field}:{word(chance, chance.choice(STRINGS))}"
        if kind == 2:
            return f"{field}:{chance.choice(STRING_PATTERNS)}"
        if kind == 3:
            return f"{field}:{word(chance, chance.choice([s for s in STRINGS if s.isalpha()]))}~{chance.choice(['', '0', '1', '2', '0.5', '0.8'])}"
        if kind == 4:
            return f"{field}:/{chance.choice(REGEXES)}/"
        return f"{field}:{self.range(STRINGS)}"

    def range(self, values):
        chance = self.chance
        return f"{chance.choice('[{')}{self.bound(values)} TO {self.bound(values)}{chance.choice(']}')}"

    def bound(self, values):
        value = str(self.chance.choice(values))
        if self.chance.random() < 0.2:
            return "*"
        # A backslash does not protect a space or a bracket here. Before a quote Lucene takes two for none.
        if set(value) & set(" ]}\t\n") and "\\" not in value:
            return '"' + value.replace('"', '\\"') + '"'
        return "".join("\\" + c if c in SIGNS else c for c in value) or "*"

    def number_clause(self):
        chance = self.chance
        kind = chance.randrange(10)
        if kind == 0:
            return "ok_b:" + chance.choice(["true", "false", "1", "x", "[false TO true]", "{false TO *]", "[* TO true}", "*"])
        if kind <= 2:
            field, values = chance.choice(["at_dt", "ats_dts"]), DATES
        else:
            field, values = chance.choice(list(NUMBERS.items()))
        if chance.random() < 0.3:
            return f"{field}:{word(chance, chance.choice(values))}"
        return f"{field}:{self.range(values)}"

    def clause(self, depth):
        chance = self.chance
        if depth and chance.random() < 0.25:
            group = f"({self.query(depth - 1)})"
            return group + chance.choice(["", "", "", "^2", "^0.5"])
        kind = chance.randrange(12)
        if kind == 0:
            return chance.choice(["*:*", "name_s:*", "n_i:*", "at_dt:*", "body_t:*", "lang_en:*", "none_s:*"])
        if kind <= 3:
            return self.string_clause()
        return self.number_clause() if kind <= 6 else self.text_clause()

    def query(self, depth=2):
        chance = self.chance
        query = ""
        for at in range(chance.choice([1, 1, 2, 2, 2, 3, 4])):
            if at:
                query += chance.choice([" ", " ", " AND ", " OR ", " && ", " || "])
            query += chance.choice(["", "", "", "", "+", "-", "NOT ", "!"]) + self.clause(depth)
        return query

    def soup(self):
        """Signs and words in any order, which is often no query."""
        pieces = ["a", "b", "fox", "dog", "quick", "the", "name_s:", "body_t:", "n_i:", "(", ")", "(", ")", "[", "]", "{", "}", "\"", "\"", " TO ", "*", "?", "~", "~1", "^",
                  "^2", "+", "-", "!", "&&", "||", "AND", "OR", "NOT", "\\", "/", ":", " ", " ", " ", "1", "\\u0061", "*:*", "&", "|", ".", "<", ">", "#", "=", "\t"]
        made = "".join(self.chance.choice(pieces) for _ in range(self.chance.randint(1, 9)))
        # Lucene's own parser takes a word right behind `~` for a part of it, and Solr's does not.
        return re.sub(r"(~\d*)(?=[^\s\d!():^\[\]\"{}~*?/])", r"\1 ", made)

    def order(self):
        chance = self.chance
        keys = chance.sample(SORTABLE, chance.choice([1, 1, 2, 3]))
        return ",".join(f"{key} {chance.choice(['asc', 'desc'])}" for key in keys)


def cases(seed, count):
    """The lines of random cases."""
    queries = Queries(seed)
    made = []
    for number in range(count):
        is_soup, has_order = number % 6 == 5, number % 5 == 0
        query = queries.soup() if is_soup else queries.query()
        operator = queries.chance.choice(["OR", "OR", "AND", ""])
        default = "body_t" if is_soup or queries.chance.random() < 0.2 else ""
        # A query of tabs and spaces would be no parameter.
        if query.strip():
            made.append(line([operator, default, queries.order() if has_order else "", str(SHOWN), query]))
    return made


def by_hand():
    """The lines of the cases that are written by hand, and all orders of all documents."""
    made = [line([operator, default, "", str(SHOWN), query]) for operator, default, query in CASES]
    orders = [f"{key} {way}" for key in SORTABLE for way in ("asc", "desc")]
    orders += ["ok_b asc,n_i desc", "ok_b desc,name_s asc", "n_i asc,f_f desc,name_s desc", "name_s desc,_yz_rk desc", "_yz_rk desc", "none_s asc,_yz_rk desc"]
    return made + [line(["OR", "", order, "10000", "*:*"]) for order in orders]
