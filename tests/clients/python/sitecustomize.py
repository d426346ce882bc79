"""Restores what Python 3.7 to 3.11 removed from the standard library and the official client still
uses.

At start, Python imports a module of this name by itself if its directory is in PYTHONPATH."""
import collections
import collections.abc
import inspect

from google.protobuf import descriptor

for name in ("Callable", "Container", "Hashable", "Iterable", "Iterator", "Mapping", "MutableMapping", "Sequence", "Set",
             "Sized"):
    if not hasattr(collections, name):
        setattr(collections, name, getattr(collections.abc, name))

if not hasattr(inspect, "getargspec"):
    inspect.getargspec = inspect.getfullargspec

_namedtuple = collections.namedtuple
collections.namedtuple = lambda *names, verbose=False, **options: _namedtuple(*names, **options)

# The client's message classes were generated for Python 2: they pass the bytes of their options as
# text.
_parse_options = descriptor._ParseOptions
descriptor._ParseOptions = lambda message, options: _parse_options(
    message, options.encode("latin-1") if isinstance(options, str) else options)
