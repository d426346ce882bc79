"""The links between nodes on loopback, where nothing can drop packets.

A node tells the others the address of a proxy in place of its own. The proxy knows by the source
address which node connects, and passes on the bytes of each direction while that link is whole.
While it is cut, the proxy holds the bytes back, so that both sides see what they would see if a
network lost the packets: silence, and later everything, if nobody gave up meanwhile."""
import asyncio
import threading

BYTES_AT_ONCE = 1 << 16


class Links:
    """The proxies of all nodes, on a thread of their own."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.whole = {}
        self.tasks = set()
        threading.Thread(target=self.loop.run_forever, name="links", daemon=True).start()

    def add(self, node, at, to, node_of):
        """Starts the proxy of a node: it listens at the address `at`, (host, port), and connects to
        the node at `to`. `node_of` says which node has a source address."""
        self._call(self._listen(node, at, to, node_of))

    def cut(self, sender, receiver):
        self._call(self._set(sender, receiver, False))

    def mend(self, sender, receiver):
        self._call(self._set(sender, receiver, True))

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    def _link(self, sender, receiver):
        link = self.whole.get((sender, receiver))
        if link is None:
            link = self.whole[sender, receiver] = asyncio.Event()
            link.set()
        return link

    async def _set(self, sender, receiver, is_whole):
        link = self._link(sender, receiver)
        if is_whole:
            link.set()
        else:
            link.clear()

    async def _listen(self, node, at, to, node_of):
        async def connected(reader, writer):
            task = asyncio.current_task()
            self.tasks.add(task)
            try:
                await self._pass_on(reader, writer, node, to, node_of)
            finally:
                self.tasks.discard(task)

        await asyncio.start_server(connected, *at)

    async def _pass_on(self, reader, writer, node, to, node_of):
        source = writer.get_extra_info("peername")[0]
        other = node_of(source)
        await self._link(other, node).wait()
        try:
            # The node sees the connection come from the other one.
            there, back = await asyncio.open_connection(*to, local_addr=(source, 0))
        except OSError:
            writer.close()
            return
        await asyncio.gather(self._pump(reader, back, self._link(other, node)), self._pump(there, writer, self._link(node, other)))

    @staticmethod
    async def _pump(reader, writer, link):
        """Passes on the bytes of one direction, and its end."""
        try:
            while True:
                some = await reader.read(BYTES_AT_ONCE)
                await link.wait()
                if not some:
                    break
                writer.write(some)
                await writer.drain()
        except OSError:
            await link.wait()
        finally:
            writer.close()
