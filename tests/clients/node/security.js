'use strict';

// A secured cluster seen through the official Node.js client: whom its nodes let in, whom they
// refuse, and what they say then. The first scenarios are those of the client's own tests of
// security (test/security/security.js), which its package does not have.
//
// The client offers no cipher over TLS 1.2 that a node has, so it connects over TLS 1.3. It does
// not check the certificate of the node, so no scenario has a node that the client must refuse.

const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const { promisify } = require('node:util');

const Riak = require('basho-riak-client');
const RiakConnection = require('basho-riak-client/lib/core/riakconnection');

// The users of tests/support/secured.py. The last one may log in and do nothing.
const PASSWORD = 'Test1234';
const PASSWORD_USER = 'riakpass';
const CERTIFICATE_USER = 'riakuser';
const TRUSTED_USER = 'riaktrust';
const POOR_USER = 'riaknothing';
const CONNECTION_MS_MAX = 10_000;

function file(directory, authority, name) {
  return fs.readFileSync(path.join(directory, authority, name), 'utf8');
}

function withPassword(directory, user = PASSWORD_USER, password = PASSWORD) {
  return { user, password, ca: file(directory, 'certificates', 'ca.pem') };
}

/** The certificate of a user from the authority of the cluster, or from the `stranger`. */
function withCertificate(directory, authority = 'certificates') {
  const [cert, key] = ['pem', 'key'].map((kind) => file(directory, authority, `${CERTIFICATE_USER}.${kind}`));
  return { user: CERTIFICATE_USER, cert, key, ca: file(directory, 'certificates', 'ca.pem') };
}

function cluster(address, auth) {
  const [remoteAddress, remotePort] = address.split(':');
  const node = new Riak.Node({ remoteAddress, remotePort: Number(remotePort), auth, connectionTimeout: CONNECTION_MS_MAX });
  return new Riak.Cluster({ nodes: [node] });
}

/** Connects, and sends a ping. An error says why the connection was refused. */
function pinged(address, auth) {
  const [remoteAddress, remotePort] = address.split(':');
  const connection = new RiakConnection({ remoteAddress, remotePort, auth, connectionTimeout: CONNECTION_MS_MAX });
  return new Promise((resolve, reject) => {
    const fail = (_, error) => reject(new Error(String(error ?? 'the connection was closed')));
    connection.on('connectFailed', fail);
    connection.on('connectionClosed', fail);
    // The client only logs that a handshake has failed, and would wait without end.
    connection._socketError = () => fail(connection, 'the node has ended the handshake');
    connection.on('connected', () => {
      connection.on('responseReceived', (_, command, code) => resolve({ expected: command.expectedCode, code }));
      connection.execute(new Riak.Commands.Ping(() => {}));
    });
    connection.connect();
  }).finally(() => connection.close());
}

async function fetched(address, auth) {
  const client = await promisify((place, callback) => new Riak.Client(place, callback))(cluster(address, auth));
  try {
    return await promisify(client.fetchValue.bind(client))({ bucket: 'node-denied', key: 'k' });
  } finally {
    await promisify(client.stop.bind(client))();
  }
}

function scenarios(directory, addresses) {
  const eachLetsIn = async (auth) => {
    for (const address of addresses) {
      const { expected, code } = await pinged(address, { ...auth });
      assert.strictEqual(code, expected);
    }
  };
  const isRefused = (auth, reason) => assert.rejects(pinged(addresses[0], auth), reason);
  return {
    'each node lets in a user with a certificate': () => eachLetsIn(withCertificate(directory)),
    'each node lets in a user with a password': () => eachLetsIn(withPassword(directory)),
    'each node lets in a user that it trusts': () => eachLetsIn(withPassword(directory, TRUSTED_USER, 'any')),

    async 'nobody is let in without proof'() {
      await isRefused(withPassword(directory, PASSWORD_USER, 'wrong'), /Authentication failed/);
      await isRefused(withPassword(directory, 'nobody', PASSWORD), /Authentication failed/);
      await isRefused(withPassword(directory, CERTIFICATE_USER, PASSWORD), /Authentication failed/);
      // A certificate proves no other name than its own.
      await isRefused({ ...withCertificate(directory), user: PASSWORD_USER }, /Authentication failed/);
    },

    async 'a certificate of another authority is refused'() {
      await isRefused(withCertificate(directory, 'stranger'), /the node has ended the handshake/);
    },

    async 'a request without TLS is refused'() {
      await assert.rejects(fetched(addresses[0]), /Security is enabled, please STARTTLS first/);
    },

    async 'a permission that is missing is named'() {
      await assert.rejects(fetched(addresses[0], withPassword(directory, POOR_USER)),
        /Permission denied: User 'riaknothing' does not have 'riak_kv.get' on default\/node-denied/);
    },
  };
}

module.exports = { cluster, scenarios, withPassword };
