"""Tests of the checker of searches: answers that lack something, or show what is gone, fail, and
what is allowed does not."""
import unittest

from history import DOCUMENT, History
from search_checker import ABSENT, Answer, Query, Versions, binding, check_answer, check_end, check_store, is_behind

EVERYTHING = Query("*:*", lambda _name, _number: True)
EVEN = Query("even", lambda _name, number: number % 2 == 0)
# Times are seconds. A query begins so long after a write that the write counts.
LATER = 1.0


class Told:
    """A history that is written down by hand."""

    def __init__(self):
        self.history, self.time = History(), 0.0
        self.key = self.history.key("documents", "d", DOCUMENT)

    def write(self, value, nodes=3, acknowledged=True, key=None):
        """A write that takes a tenth of a second."""
        write = self.history.begin(key or self.key, value, nodes, self.time)
        self.time += 0.1
        self.history.end(write, acknowledged, "", self.time)

    def documents(self, copies=3):
        return {key.name: Versions(key, copies) for key in self.history.keys.values()}

    def answer(self, found, query=EVERYTHING, after=LATER, num_found=None):
        began = self.time + after
        return Answer(query, "documents", began, began + 0.1, found, len(found) if num_found is None else num_found, False, True, "")

    def rules(self, found, **options):
        return [violation.rule for violation in check_answer(self.answer(found, **options), self.documents())]


class Answers(unittest.TestCase):
    def setUp(self):
        self.told = Told()

    def test_a_document_that_is_missing_is_found(self):
        self.told.write(0)
        self.assertEqual(self.told.rules([("d", 0)]), [])
        self.assertEqual(self.told.rules([]), ["missing"])

    def test_what_was_written_within_the_freshness_may_be_missing(self):
        self.told.write(0)
        self.assertEqual(self.told.rules([], after=0.5), [])
        self.assertEqual(self.told.rules([], after=0.56), ["missing"])

    def test_an_old_version_is_found(self):
        self.told.write(0)
        self.told.write(1)
        self.assertEqual(self.told.rules([("d", 1)]), [])
        self.assertEqual(self.told.rules([("d", 0)]), ["outdated"])
        self.assertEqual(self.told.rules([("d", 0)], after=0.5), [])

    def test_a_deleted_document_is_found(self):
        self.told.write(0)
        self.told.write(None)
        self.assertEqual(self.told.rules([]), [])
        self.assertEqual(self.told.rules([("d", 0)]), ["returned"])
        self.assertEqual(self.told.rules([("d", 0)], after=0.5), [])

    def test_a_document_that_was_written_after_its_delete_has_to_be_there(self):
        self.told.write(0)
        self.told.write(None)
        self.told.write(2)
        self.assertEqual(self.told.rules([("d", 2)]), [])
        self.assertEqual(self.told.rules([]), ["missing"])

    def test_what_is_not_everywhere_may_be_seen_or_not(self):
        self.told.write(0)
        for nodes, acknowledged in ((2, True), (3, False)):
            self.told.write(len(self.told.key.writes), nodes, acknowledged)
        for seen in (0, 1, 2):
            self.assertEqual(self.told.rules([("d", seen)]), [], seen)
        self.assertEqual(self.told.rules([]), ["missing"])
        self.told.write(3)
        for seen in (0, 1, 2):
            self.assertEqual(self.told.rules([("d", seen)]), ["outdated"], seen)

    def test_a_delete_without_acknowledgement_may_have_happened(self):
        self.told.write(0)
        self.told.write(None, acknowledged=False)
        self.assertEqual(self.told.rules([]), [])
        self.assertEqual(self.told.rules([("d", 0)]), [])

    def test_what_is_written_while_a_query_is_answered_may_be_seen(self):
        self.told.write(0)
        answer = self.told.answer([("d", 1)])
        self.told.time = answer.ended - 0.05
        self.told.write(1)
        self.assertEqual(check_answer(answer, self.told.documents()), [])
        self.told.key.writes[-1].began = answer.ended + 1
        self.assertEqual([v.rule for v in check_answer(answer, self.told.documents())], ["outdated"])

    def test_a_version_that_does_not_fit_the_query_is_found(self):
        self.told.write(0)
        self.told.write(1)
        self.assertEqual(self.told.rules([], query=EVEN), [])
        self.assertEqual(self.told.rules([("d", 1)], query=EVEN), ["returned"])
        self.assertEqual(self.told.rules([("d", 0)], query=EVEN), ["returned"])
        self.told.write(2)
        self.assertEqual(self.told.rules([("d", 2)], query=EVEN), [])
        self.assertEqual(self.told.rules([], query=EVEN), ["missing"])

    def test_strangers_twins_and_wrong_counts_are_found(self):
        self.told.write(0)
        self.assertEqual(self.told.rules([("d", 0), ("x", 0)]), ["invented"])
        self.assertEqual(self.told.rules([("d", 0), ("d", 0)]), ["twice"])
        self.assertEqual(self.told.rules([("d", 0)], num_found=2), ["count"])

    def test_what_an_answer_had_to_show_is_counted(self):
        gone = self.told.history.key("documents", "gone", DOCUMENT)
        self.told.write(0)
        self.told.write(0, key=gone)
        self.told.write(None, key=gone)
        self.assertEqual(binding(self.told.answer([]), self.told.documents()), (1, 1))
        self.assertEqual(binding(self.told.answer([], after=0.0), self.told.documents()), (0, 0))

    def test_an_answer_without_what_a_quorum_acknowledged_is_behind(self):
        self.told.write(0, nodes=2)
        self.assertEqual(self.told.rules([]), [])
        self.assertTrue(is_behind(self.told.answer([]), self.told.documents(2)))
        self.assertFalse(is_behind(self.told.answer([("d", 0)]), self.told.documents(2)))


class Ends(unittest.TestCase):
    def setUp(self):
        self.told = Told()
        self.told.write(0)

    def rules(self, found, stored, query=EVERYTHING):
        answer = self.told.answer(found, query)
        return [violation.rule for violation in check_end(answer, self.told.documents(), {"d": stored})]

    def test_an_answer_that_differs_from_the_store_is_found(self):
        self.assertEqual(self.rules([("d", 0)], 0), [])
        self.assertEqual(self.rules([], 0), ["differs"])
        self.assertEqual(self.rules([("d", 0)], 2), ["differs"])
        self.assertEqual(self.rules([("d", 0)], ABSENT), ["differs"])
        self.assertEqual(self.rules([], 1, EVEN), [])

    def test_a_store_without_what_two_nodes_acknowledged_is_found(self):
        self.told.write(1, nodes=2)
        self.told.write(2, acknowledged=False)

        def rules(stored):
            return [violation.rule for violation in check_store(self.told.documents()["d"], stored, "")]

        self.assertEqual([rules(stored) for stored in (1, 2, 0, ABSENT)], [[], [], ["stored"], ["lost"]])


if __name__ == "__main__":
    unittest.main()
