"""Tests of the checker: histories with a lost write, a returned key and a short listing fail, and
what is allowed does not."""
import unittest

from checker import check_answer, check_final_listing, check_listing, is_excused
from history import REGISTER, SET, History


class Told:
    """A history that is written down by hand. Times are whole numbers."""

    def __init__(self):
        self.history = History()
        self.time = 0

    def now(self):
        self.time += 1
        return self.time

    def write(self, key, value, nodes=2, acknowledged=True):
        write = self.history.begin(key, value, nodes, self.now())
        self.history.end(write, acknowledged, "", self.now())
        return write

    def delete(self, key, nodes=2, acknowledged=True):
        write = self.history.begin_delete(key, nodes, self.now())
        self.history.end(write, acknowledged, "", self.now())

    def wipe(self):
        self.history.wiped(3, self.now())

    def settle(self):
        self.history.was_settled(self.now(), self.now())

    def rules(self, key, seen):
        return [violation.rule for violation in check_answer(key, seen, self.history, "at node 1")]


class Answers(unittest.TestCase):
    def setUp(self):
        self.told = Told()
        self.set = self.told.history.key("b", "s", SET)
        self.register = self.told.history.key("b", "r", REGISTER)

    def test_a_lost_element_is_found(self):
        self.told.write(self.set, "x")
        self.told.write(self.set, "y", nodes=1)
        self.assertEqual(self.told.rules(self.set, {"x", "y"}), [])
        self.assertEqual(self.told.rules(self.set, {"x"}), ["lost"])
        self.assertEqual(self.told.rules(self.set, {"y"}), ["lost"])
        self.assertEqual(self.told.rules(self.set, set()), ["lost"])

    def test_an_unacknowledged_element_may_be_there_or_not(self):
        self.told.write(self.set, "x")
        self.told.write(self.set, "y", acknowledged=False)
        self.assertEqual(self.told.rules(self.set, {"x"}), [])
        self.assertEqual(self.told.rules(self.set, {"x", "y"}), [])

    def test_an_invented_element_is_found(self):
        self.told.write(self.set, "x")
        self.assertEqual(self.told.rules(self.set, {"x", "z"}), ["invented"])

    def test_a_lost_number_is_found(self):
        self.told.write(self.register, 0)
        self.told.write(self.register, 1)
        self.told.write(self.register, 2, acknowledged=False)
        for seen in ({1}, {2}, {0, 1}, {1, 2}):
            self.assertEqual(self.told.rules(self.register, seen), [], seen)
        for seen in ({0}, set()):
            self.assertEqual(self.told.rules(self.register, seen), ["lost"], seen)

    def test_a_returned_key_is_found(self):
        self.told.write(self.register, 0)
        self.told.delete(self.register)
        self.assertEqual(self.told.rules(self.register, set()), [])
        self.assertEqual(self.told.rules(self.register, {0}), ["returned"])

    def test_a_delete_without_acknowledgement_may_have_happened(self):
        self.told.write(self.register, 0)
        self.told.delete(self.register, acknowledged=False)
        self.assertEqual(self.told.rules(self.register, set()), [])
        self.assertEqual(self.told.rules(self.register, {0}), [])

    def test_a_delete_without_acknowledgement_excuses_no_older_value(self):
        self.told.write(self.register, 0)
        self.told.write(self.register, 1)
        self.told.delete(self.register, acknowledged=False)
        self.assertEqual(self.told.rules(self.register, {0}), ["lost"])


class Wipes(unittest.TestCase):
    def setUp(self):
        self.told = Told()
        self.set = self.told.history.key("b", "s", SET)
        self.register = self.told.history.key("b", "r", REGISTER)

    def test_one_acknowledgement_is_excused_after_a_wipe(self):
        self.told.write(self.set, "x", nodes=1)
        self.told.wipe()
        self.assertEqual(self.told.rules(self.set, set()), [])

    def test_two_acknowledgements_are_not(self):
        self.told.write(self.set, "x", nodes=2)
        self.told.wipe()
        self.assertEqual(self.told.rules(self.set, set()), ["lost"])

    def test_nor_is_what_came_after_the_wipe(self):
        self.told.wipe()
        self.told.write(self.set, "x", nodes=1)
        self.assertEqual(self.told.rules(self.set, set()), ["lost"])

    def test_nor_is_what_had_settled_before_the_wipe(self):
        self.told.write(self.set, "x", nodes=1)
        self.told.settle()
        self.told.wipe()
        self.assertEqual(self.told.rules(self.set, set()), ["lost"])

    def test_a_settlement_that_began_before_the_end_of_the_write_does_not_count(self):
        began = self.told.now()
        write = self.told.write(self.set, "x", nodes=1)
        self.told.history.was_settled(began, self.told.now())
        self.told.wipe()
        self.assertTrue(is_excused(write, self.told.history))

    def test_a_deleted_key_may_return_if_only_one_node_knew_of_the_delete(self):
        self.told.write(self.register, 0)
        self.told.delete(self.register, nodes=1)
        self.told.wipe()
        self.assertEqual(self.told.rules(self.register, {0}), [])


class Listings(unittest.TestCase):
    def rules(self, found):
        return [violation.rule for violation in check_listing("q", ["a", "b"], found, "at node 1")]

    def test_a_short_listing_is_found(self):
        self.assertEqual(self.rules(["b", "a"]), [])
        self.assertEqual(self.rules(["a"]), ["short"])
        self.assertEqual(self.rules([]), ["short"])

    def test_a_key_that_comes_twice_is_found(self):
        self.assertEqual(self.rules(["a", "b", "b"]), ["twice"])

    def test_a_stranger_is_found(self):
        self.assertEqual(self.rules(["a", "b", "c"]), ["invented"])

    def test_a_final_listing_has_what_is_there_and_nothing_that_was_deleted(self):
        told = Told()
        there, gone = (told.history.key("b", name, REGISTER) for name in ("there", "gone"))
        told.write(there, 0)
        told.write(gone, 0)
        told.delete(gone)

        def rules(found):
            return [v.rule for v in check_final_listing("b", [there, gone], found, told.history, "at node 1")]

        self.assertEqual(rules(["there"]), [])
        self.assertEqual(rules([]), ["short"])
        self.assertEqual(rules(["there", "gone"]), ["returned"])
        self.assertEqual(rules(["there", "other"]), ["invented"])


if __name__ == "__main__":
    unittest.main()
