// Takes away what a function could use to learn about the machine or to hold up a thread. It runs
// before everything else, and keeps the engine's own functions for itself.
(function () {
  'use strict';
  for (const name of [
    'Atomics', 'SharedArrayBuffer', 'FinalizationRegistry', 'WeakRef', 'performance', 'queueMicrotask',
    'DOMException', 'navigator', 'print', 'console'
  ]) delete globalThis[name];

  // The engine looks for a text in a text without looking at the clock, and compares each place
  // anew. A search is cut into pieces of about this many comparisons, and what cannot be cut is
  // refused above a hundred times as many.
  const COMPARISONS = 1e6;
  // The engine looks at the clock after 10,000 turns of loops. A piece takes far longer than that.
  const TURNS = 1e4;
  const text = String.prototype;
  const { apply, defineProperty } = Reflect;
  const { max, min, floor, trunc } = Math;
  const { indexOf, slice, lastIndexOf, includes, split, replace, replaceAll } = text;
  const asText = String;
  const asNumber = Number;
  const wrongThis = TypeError;
  const refused = RangeError;

  const subject = (value) => {
    if (value === undefined || value === null) throw new wrongThis('not a text');
    return typeof value === 'string' ? value : `${value}`;
  };

  const find = (where, what, from) => {
    if (where.length * what.length <= COMPARISONS) return apply(indexOf, where, [what, from]);
    const places = max(1, floor(COMPARISONS / what.length));
    for (let at = from; at + what.length <= where.length; at += places) {
      const found = apply(indexOf, apply(slice, where, [at, at + places + what.length - 1]), [what, 0]);
      if (found >= 0) return at + found;
      for (let turn = 0; turn < TURNS; turn++);
    }
    return -1;
  };

  const define = (name, length, value) => {
    defineProperty(value, 'name', { value: name, configurable: true });
    defineProperty(value, 'length', { value: length, configurable: true });
    defineProperty(text, name, { value, writable: true, configurable: true });
  };

  const start = (position, length) => min(max(trunc(asNumber(position)) || 0, 0), length);

  define('indexOf', 1, ({ indexOf(what, position) {
    const where = subject(this);
    return find(where, `${what}`, start(position, where.length));
  } }).indexOf);

  define('includes', 1, ({ includes(what, position) {
    const where = subject(this);
    // The engine's own function refuses a regular expression.
    if (typeof what === 'object' && what !== null) return apply(includes, where, [what, position]);
    return find(where, `${what}`, start(position, where.length)) >= 0;
  } }).includes);

  const guard = (where, what) => {
    if (where.length * what.length > 100 * COMPARISONS) throw new refused('the text to look for is too long');
  };

  define('lastIndexOf', 1, ({ lastIndexOf(what, position) {
    const where = subject(this);
    const sought = `${what}`;
    guard(where, sought);
    return apply(lastIndexOf, where, [sought, position]);
  } }).lastIndexOf);

  for (const [name, symbol, native] of [
    ['split', Symbol.split, split], ['replace', Symbol.replace, replace], ['replaceAll', Symbol.replace, replaceAll]
  ]) {
    define(name, 2, ({ f(what, other) {
      const isText = typeof what !== 'object' && typeof what !== 'function';
      // An object with a method of its own, such as a regular expression, is no text.
      if (!isText && what !== null && what[symbol] !== undefined) return apply(native, this, [what, other]);
      if (what === undefined) return apply(native, this, [what, other]);
      const where = subject(this);
      const sought = `${what}`;
      guard(where, sought);
      return apply(native, where, [sought, other]);
    } }).f);
  }
})();
