"""Nodes whose network can be parted in two, and mended."""
from links import Links
from world import TIMEOUT_SECONDS, World, free_port, wait_for


class PartedWorld(World):
    """Nodes that reach each other through proxies, which hold back what the parted network
    loses."""

    def __init__(self, count, settings=None):
        super().__init__(count, settings)
        self.links = Links()

    def add(self, number, **settings):
        proxy = f"127.0.2.{number}"
        at = proxy, free_port(proxy)
        super().add(number, cluster__advertised_address="{}:{}".format(*at), **settings)
        host, _, port = self[number].peer.rpartition(":")
        self.links.add(number, at, (host, int(port)), lambda source: int(source.rpartition(".")[2]))

    def part(self, some):
        """Parts some nodes from the others, and waits until each takes exactly those of its side
        for up."""
        sides = [set(some), set(self.members) - set(some)]
        for one, other in self._pairs(*sides):
            self.links.cut(one, other)
        for side in sides:
            names = {self[number].name for number in side}
            for number in side:
                wait_for(f"that node {number} sees its side only", lambda: self.ups(number) == names, TIMEOUT_SECONDS)

    def heal(self, some):
        for one, other in self._pairs(set(some), set(self.members) - set(some)):
            self.links.mend(one, other)
        self.wait_all_up()

    @staticmethod
    def _pairs(side, rest):
        return [pair for one in side for other in rest for pair in ((one, other), (other, one))]
