'use strict';

// Tests Ombak through the official Node.js client (Protocol Buffers). Each scenario is small, reads
// from top to bottom and uses a bucket of its own.
//
// Usage: node smoke.js HOST:PORT [DIRECTORY HOST:PORT...]. With the DIRECTORY of the certificates of a
// secured cluster, and the addresses of its nodes, everything goes over TLS, and the scenarios of
// security.js are run too. The exit status is 1 if a scenario fails.

const assert = require('node:assert');
const { promisify } = require('node:util');

const Riak = require('basho-riak-client');
require('winston').remove(require('winston').transports.Console);
const security = require('./security');

const SCENARIO_MS_MAX = 20_000;
// run.py creates these bucket types: one with a type's default of allow_mult = true, and one for each
// data type, with its name.
const SIBLINGS_TYPE = 'siblings';

/** Wraps the client's callback methods of the given names as promises. */
function promised(client) {
  const names = ['ping', 'fetchServerInfo', 'storeValue', 'fetchValue', 'deleteValue', 'fetchBucketProps', 'storeBucketProps',
    'resetBucketProps', 'fetchBucketTypeProps', 'fetchPreflist', 'listKeys', 'listBuckets', 'fetchCounter', 'updateCounter',
    'fetchSet', 'updateSet', 'fetchMap', 'updateMap', 'storeIndex', 'fetchIndex', 'deleteIndex', 'storeSchema', 'fetchSchema',
    'search'];
  return Object.fromEntries(names.map((name) => [name, promisify(client[name].bind(client))]));
}

/** Collects a streamed listing: the client calls back once a message, and with `done` at the end. */
function streamed(client, method, options, member) {
  return new Promise((resolve, reject) => {
    const found = [];
    client[method]({ ...options, stream: true }, (error, reply) => {
      if (error) return reject(error);
      found.push(...reply[member]);
      if (reply.done) resolve(found.sort());
    });
  });
}

const TAKE_PRICE = 'function(object) { return [JSON.parse(object.values[0].data).price]; }';

/** Runs a job whose results the client collects by their phases. */
function run(client, job) {
  return new Promise((resolve, reject) => {
    const done = (error, reply) => (error ? reject(new Error(error)) : resolve(reply));
    client.execute(new Riak.Commands.MR.MapReduce(JSON.stringify(job), done, false));
  });
}

/** Runs a job of which one phase gives results. */
function runStreamed(client, job) {
  return new Promise((resolve, reject) => {
    const found = [];
    client.execute(new Riak.Commands.MR.MapReduce(JSON.stringify(job), (error, reply) => {
      if (error) return reject(new Error(error));
      found.push(...(reply.response ?? []));
      if (reply.done) resolve(found);
    }, true));
  });
}

/** Asks until a query finds so many documents: a put shows in searches after about half a second. */
async function searchUntil(riak, numFound, query) {
  for (;;) {
    const found = await riak.search(query);
    if (found.numFound === numFound) return found;
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
}

const dataScenarios = {
  async 'ping and server information'({ riak }) {
    assert.strictEqual(await riak.ping(), true);
    const info = await riak.fetchServerInfo();
    assert.match(info.server_version, /^\d+\.\d+\.\d+/);
    assert.ok(info.node.length > 0);
  },

  async 'a value comes back with its metadata'({ riak }) {
    const object = new Riak.Commands.KV.RiakObject();
    object.setBucket('node-metadata').setKey('clé/1').setContentType('text/plain; charset=utf-8').setValue('wave');
    object.setContentEncoding('identity');
    object.setUserMeta([{ key: 'X-Riak-Meta-Colour', value: 'blue' }]);
    object.setLinks([{ bucket: 'node-metadata', key: 'other', tag: 'next' }]);
    object.addToIndex('colour_bin', 'blue');
    object.addToIndex('size_int', 42);
    await riak.storeValue({ value: object });

    const reply = await riak.fetchValue({ bucket: 'node-metadata', key: 'clé/1' });
    assert.strictEqual(reply.isNotFound, false);
    assert.ok(reply.vclock.length > 0);
    const [value] = reply.values;
    assert.strictEqual(value.value.toString(), 'wave');
    assert.strictEqual(value.contentEncoding, 'identity');
    assert.deepStrictEqual(value.getUserMeta(), [{ key: 'X-Riak-Meta-Colour', value: 'blue' }]);
    assert.deepStrictEqual(value.getLinks(), [{ bucket: 'node-metadata', key: 'other', tag: 'next' }]);
    assert.deepStrictEqual(value.getIndex('colour_bin'), ['blue']);
    assert.deepStrictEqual(value.getIndex('size_int').map(Number), [42]);
  },

  async 'a key is made when none is given, and a body comes back when asked for'({ riak }) {
    const made = await riak.storeValue({ bucket: 'node-made', value: { swell: 3 }, returnBody: true, convertToJs: true });
    assert.ok(made.generatedKey.length > 10);
    assert.deepStrictEqual(made.values[0].value, { swell: 3 });
    const head = await riak.fetchValue({ bucket: 'node-made', key: made.generatedKey, headOnly: true });
    assert.strictEqual(head.values.length, 1);
    assert.strictEqual(head.values[0].value?.length ?? 0, 0);
  },

  async 'an absent key is reported as not found'({ riak }) {
    const reply = await riak.fetchValue({ bucket: 'node-absent', key: 'none' });
    assert.strictEqual(reply.isNotFound, true);
    assert.strictEqual(reply.values.length, 0);
  },

  async 'conditions refuse a put'({ riak }) {
    const place = { bucket: 'node-conditions', key: 'k' };
    await riak.storeValue({ ...place, value: 'first', ifNoneMatch: true });
    await assert.rejects(riak.storeValue({ ...place, value: 'second', ifNoneMatch: true }), /match_found/);
  },

  async 'siblings are kept, resolved and written back'({ riak }) {
    const place = { bucketType: SIBLINGS_TYPE, bucket: 'node', key: 'k' };
    await riak.storeValue({ ...place, value: 'one' });
    await riak.storeValue({ ...place, value: 'two' });
    const both = await riak.fetchValue(place);
    assert.deepStrictEqual(both.values.map((o) => o.value.toString()).sort(), ['one', 'two']);

    const conflictResolver = (objects) => objects.reduce((a, b) => (a.value.toString() > b.value.toString() ? a : b));
    const resolved = await riak.fetchValue({ ...place, conflictResolver });
    assert.strictEqual(resolved.values.length, 1);
    await riak.storeValue({ ...place, value: resolved.values[0], vclock: resolved.vclock });

    const one = await riak.fetchValue(place);
    assert.deepStrictEqual(one.values.map((o) => o.value.toString()), ['two']);
  },

  async 'keys and buckets are listed, streamed and at once'({ riak, client }) {
    const keys = Array.from({ length: 300 }, (_, i) => `k${i}`).sort();
    // The client has at most 256 connections, and refuses a command that finds none free.
    for (let start = 0; start < keys.length; start += 100) {
      const some = keys.slice(start, start + 100);
      await Promise.all(some.map((key) => riak.storeValue({ bucketType: SIBLINGS_TYPE, bucket: 'node-list', key, value: 'x' })));
    }
    const place = { bucketType: SIBLINGS_TYPE, bucket: 'node-list' };
    assert.deepStrictEqual(await streamed(client, 'listKeys', place, 'keys'), keys);
    assert.deepStrictEqual((await riak.listKeys({ ...place, stream: false })).keys.sort(), keys);
    assert.deepStrictEqual(await streamed(client, 'listKeys', { bucket: 'node-empty' }, 'keys'), []);

    const type = { bucketType: SIBLINGS_TYPE };
    assert.ok((await streamed(client, 'listBuckets', type, 'buckets')).includes('node-list'));
    assert.ok((await riak.listBuckets({ ...type, stream: false })).buckets.includes('node-list'));
  },

  async 'indexes are asked, streamed, in pages and with terms'({ client }) {
    const place = { bucketType: SIBLINGS_TYPE, bucket: 'node-index' };
    const riak = promised(client);
    for (let n = 0; n < 10; n += 1) {
      const object = new Riak.Commands.KV.RiakObject();
      object.setBucketType(place.bucketType).setBucket(place.bucket).setKey(`k${n}`).setContentType('text/plain').setValue('x');
      object.addToIndex('name_bin', `n${n}`);
      object.addToIndex('size_int', n - 5);
      await riak.storeValue({ value: object });
    }
    const ask = (options) => new Promise((resolve, reject) => {
      const found = { values: [] };
      client.secondaryIndexQuery({ ...place, stream: true, ...options }, (error, reply) => {
        if (error) return reject(error);
        found.values.push(...reply.values);
        found.continuation = reply.continuation ?? found.continuation;
        if (reply.done || options.stream === false) resolve(found);
      });
    });
    const keys = (found) => found.values.map((value) => value.objectKey.toString());
    assert.deepStrictEqual(keys(await ask({ indexName: 'name_bin', indexKey: 'n3' })), ['k3']);
    assert.deepStrictEqual(keys(await ask({ indexName: 'size_int', rangeStart: -2, rangeEnd: 1 })), ['k3', 'k4', 'k5', 'k6']);
    assert.deepStrictEqual(keys(await ask({ indexName: '$key', rangeStart: 'k8', rangeEnd: 'k9', stream: false })), ['k8', 'k9']);
    const page = { indexName: 'name_bin', rangeStart: 'n0', rangeEnd: 'n9', returnKeyAndIndex: true, maxResults: 6 };
    const first = await ask(page);
    assert.strictEqual(first.values[5].indexKey.toString(), 'n5');
    const second = await ask({ ...page, continuation: first.continuation });
    assert.deepStrictEqual(keys(second), ['k6', 'k7', 'k8', 'k9']);
    await assert.rejects(ask({ indexName: 'size_int', indexKey: 'ten' }), /field_parsing_failed/);
  },

  async 'bucket properties are read, set and reset'({ riak }) {
    const bucket = 'node-properties';
    const before = await riak.fetchBucketProps({ bucket });
    assert.strictEqual(before.nVal, 3);
    assert.strictEqual(before.allowMult, false);
    await riak.storeBucketProps({ bucket, nVal: 5, allowMult: true, r: 2 });
    const after = await riak.fetchBucketProps({ bucket });
    assert.deepStrictEqual([after.nVal, after.allowMult, after.r], [5, true, 2]);
    await riak.resetBucketProps({ bucket });
    const reset = await riak.fetchBucketProps({ bucket });
    assert.deepStrictEqual([reset.nVal, reset.allowMult], [3, false]);
  },

  async 'bucket types have properties, and an unknown one is named in the error'({ riak }) {
    assert.strictEqual((await riak.fetchBucketTypeProps({ bucketType: SIBLINGS_TYPE })).allowMult, true);
    await assert.rejects(riak.fetchValue({ bucketType: 'nonesuch', bucket: 'b', key: 'k' }), /no_type/);
  },

  async 'the preference list names n primaries'({ riak }) {
    const { preflist } = await riak.fetchPreflist({ bucket: 'node-preflist', key: 'k' });
    assert.strictEqual(preflist.length, 3);
    assert.ok(preflist.every((item) => item.primary));
  },

  async 'a deleted key is gone, and its clock can be asked for'({ riak }) {
    const place = { bucket: 'node-delete', key: 'k' };
    await riak.storeValue({ ...place, value: 'x' });
    const { vclock } = await riak.fetchValue(place);
    await riak.deleteValue({ ...place, vclock });
    assert.strictEqual((await riak.fetchValue(place)).isNotFound, true);
  },

  async 'a counter counts up and down, also under a key that the server makes'({ riak }) {
    const place = { bucketType: 'counter', bucket: 'node', key: 'k' };
    assert.strictEqual((await riak.fetchCounter(place)).notFound, true);
    await riak.updateCounter({ ...place, increment: 10 });
    const reply = await riak.updateCounter({ ...place, increment: -3, returnBody: true });
    assert.strictEqual(Number(reply.counterValue), 7);
    assert.strictEqual(Number((await riak.fetchCounter(place)).counterValue), 7);
    const made = await riak.updateCounter({ ...place, key: undefined, increment: 4, returnBody: true });
    assert.ok(made.generatedKey.length > 10);
    assert.strictEqual(Number((await riak.fetchCounter({ ...place, key: made.generatedKey })).counterValue), 4);
  },

  async 'a set takes members, and gives up those that a context has seen'({ riak }) {
    const place = { bucketType: 'set', bucket: 'node', key: 'k' };
    await riak.updateSet({ ...place, additions: ['b', 'a', 'c'] });
    const { context, values } = await riak.fetchSet(place);
    assert.deepStrictEqual(values.map(String), ['a', 'b', 'c']);
    await riak.updateSet({ ...place, additions: ['d'] });
    const reply = await riak.updateSet({ ...place, context, removals: ['a', 'c'], returnBody: true });
    assert.deepStrictEqual(reply.values.map(String), ['b', 'd']);
    await assert.rejects(riak.updateSet({ ...place, removals: ['nonesuch'] }), /not_present/);
  },

  async 'a map has fields of all types, also of maps'({ riak }) {
    const place = { bucketType: 'map', bucket: 'node', key: 'k' };
    const fill = new Riak.Commands.CRDT.UpdateMap.MapOperation();
    fill.incrementCounter('n', 5).addToSet('s', 'one').setRegister('r', 'text').setFlag('f', true);
    fill.map('inner').setRegister('deep', 'x').map('innermost').setFlag('g', true);
    await riak.updateMap({ ...place, op: fill });
    const { context, map } = await riak.fetchMap(place);
    assert.deepStrictEqual([Number(map.counters.n), map.sets.s, map.registers.r.toString(), map.flags.f], [5, ['one'], 'text', true]);
    assert.deepStrictEqual(map.maps.inner.registers.deep.toString(), 'x');
    assert.deepStrictEqual(map.maps.inner.maps.innermost.flags, { g: true });

    const change = new Riak.Commands.CRDT.UpdateMap.MapOperation();
    change.incrementCounter('n', 1).removeFromSet('s', 'one').removeRegister('r').setFlag('f', false);
    change.map('inner').removeMap('innermost');
    const { map: changed } = await riak.updateMap({ ...place, op: change, context, returnBody: true });
    assert.deepStrictEqual([Number(changed.counters.n), changed.sets.s ?? [], changed.registers, changed.flags.f],
      [6, [], {}, false]);
    assert.deepStrictEqual(changed.maps.inner.maps, {});
  },

  async 'a HyperLogLog counts a member once'({ client }) {
    const { FetchHll, UpdateHll } = Riak.Commands.CRDT;
    const place = { bucketType: 'hll', bucket: 'node', key: 'k' };
    const ask = (Command, options) => new Promise((resolve, reject) => {
      client.execute(new Command({ ...place, ...options }, (error, reply) => (error ? reject(error) : resolve(reply))));
    });
    await ask(UpdateHll, { additions: ['a', 'b', 'a'] });
    await ask(UpdateHll, { additions: ['b', 'c'] });
    assert.strictEqual(Number((await ask(FetchHll, {})).cardinality), 3);
  },

  async 'a job gives its results at once and streamed, with functions of both languages'({ riak, client }) {
    const bucket = 'node-jobs';
    for (let i = 0; i < 20; i += 1) {
      await riak.storeValue({ bucket, key: `k${i}`, value: JSON.stringify({ price: i }) });
    }
    const builtIn = (name) => ({ language: 'erlang', module: 'riak_kv_mapreduce', function: name });
    const prices = { map: { language: 'javascript', source: TAKE_PRICE } };
    const sum = { reduce: { language: 'javascript', name: 'Riak.reduceSum' } };
    const count = { reduce: builtIn('reduce_count_inputs') };

    const both = { inputs: bucket, query: [{ map: { ...prices.map, keep: true } }, { reduce: { ...sum.reduce, keep: true } }] };
    const reply = await run(client, both);
    assert.deepStrictEqual(reply.phase_0.sort((a, b) => a - b), Array.from({ length: 20 }, (_, i) => i));
    assert.deepStrictEqual(reply.phase_1, [190]);

    assert.deepStrictEqual((await runStreamed(client, { inputs: bucket, query: [prices] })).length, 20);
    assert.deepStrictEqual(await runStreamed(client, { inputs: [[bucket, 'k3'], [bucket, 'k4']], query: [prices, sum] }), [7]);
    assert.deepStrictEqual(await runStreamed(client, { inputs: bucket, query: [{ map: builtIn('map_object_value') }, count] }), [20]);
    const filtered = { bucket, key_filters: [['ends_with', '5']] };
    assert.deepStrictEqual(await runStreamed(client, { inputs: filtered, query: [prices, sum] }), [20]);
    const failing = { map: { language: 'javascript', source: "function() { throw new Error('on purpose'); }" } };
    await assert.rejects(run(client, { inputs: bucket, query: [failing] }), /on purpose/);
    await assert.rejects(run(client, { inputs: bucket, query: [{ map: builtIn('nonesuch') }] }), /nonesuch does not exist/);
  },

  async 'an index is made, asked and deleted, and so is a schema'({ riak }) {
    const name = 'node-people';
    const { content } = await riak.fetchSchema({ schemaName: '_yz_default' });
    await riak.storeSchema({ schemaName: name, schema: content });
    assert.strictEqual((await riak.fetchSchema({ schemaName: name })).content, content);
    await assert.rejects(riak.storeSchema({ schemaName: 'node-bad', schema: '<schema' }));
    await riak.storeIndex({ indexName: name, schemaName: name });
    assert.deepStrictEqual(await riak.fetchIndex({ indexName: name }), [{ indexName: name, schemaName: name, nVal: 3 }]);
    assert.ok((await riak.fetchIndex({})).some((index) => index.indexName === name));

    const bucket = { bucket: name };
    await riak.storeBucketProps({ ...bucket, searchIndex: name });
    assert.strictEqual((await riak.fetchBucketProps(bucket)).searchIndex, name);
    for (const [key, age] of [['ann', 30], ['bob', 40], ['cleo', 50]]) {
      await riak.storeValue({ ...bucket, key, value: { name_s: key, age_i: age, groups_ss: ['all', key], about_en: `${key} walks` } });
    }
    const found = await searchUntil(riak, 2, { indexName: name, q: 'age_i:[30 TO 45]', sortField: 'age_i desc', maxRows: 1 });
    assert.deepStrictEqual(found.docs.map((doc) => [doc._yz_rk, doc.age_i, doc.groups_ss]), [['bob', 40, ['all', 'bob']]]);
    await searchUntil(riak, 3, { indexName: name, q: 'about_en:walking' });
    const some = { indexName: name, q: '*:*', filterQuery: 'groups_ss:cleo', returnFields: ['name_s'] };
    assert.deepStrictEqual((await riak.search(some)).docs, [{ name_s: 'cleo' }]);
    await assert.rejects(riak.search({ indexName: name, q: 'age_i:(' }));
    await assert.rejects(riak.search({ indexName: 'nonesuch', q: '*:*' }), /No index <<"nonesuch">> found/);

    await riak.deleteValue({ ...bucket, key: 'ann' });
    await searchUntil(riak, 0, { indexName: name, q: 'name_s:ann' });
    await assert.rejects(riak.deleteIndex({ indexName: name }));
    await riak.storeBucketProps({ ...bucket, searchIndex: '_dont_index_' });
    await riak.deleteIndex({ indexName: name });
    await assert.rejects(riak.fetchIndex({ indexName: name }), /notfound/);
  },

  async 'values with every byte and of a megabyte survive'({ riak }) {
    const values = [Buffer.from(Array.from({ length: 256 }, (_, i) => i)), Buffer.alloc(1 << 20, 'ombak')];
    for (const [i, value] of values.entries()) {
      await riak.storeValue({ bucket: 'node-bytes', key: `k${i}`, value });
      const reply = await riak.fetchValue({ bucket: 'node-bytes', key: `k${i}` });
      assert.ok(reply.values[0].value.equals(value));
    }
  },
};

function withDeadline(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${SCENARIO_MS_MAX} ms`)), SCENARIO_MS_MAX);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function main() {
  const [address, directory, ...nodes] = process.argv.slice(2);
  const cluster = directory ? security.cluster(address, security.withPassword(directory)) : [address];
  const client = await promisify((place, callback) => new Riak.Client(place, callback))(cluster);
  const riak = promised(client);
  const scenarios = { ...dataScenarios, ...(directory ? security.scenarios(directory, nodes) : {}) };
  let failed = 0;
  for (const [name, scenario] of Object.entries(scenarios)) {
    try {
      await withDeadline(scenario({ riak, client }));
      console.log(`ok      ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${name}\n${error.stack ?? error}`);
    }
  }
  await promisify(client.stop.bind(client))();
  console.log(`${Object.keys(scenarios).length - failed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
