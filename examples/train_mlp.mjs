// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// A client of holdfastd in one file of JavaScript (Node 20, no packages): its
// functions come from `holdfast ops --json`, its messages are those of
// proto/holdfast.proto (docs/clients.md). It trains a small network.
//
//   holdfast ops --json > ops.json
//   node examples/train_mlp.mjs 127.0.0.1:50151 ops.json
import http2 from "node:http2";
import fs from "node:fs";

// ---------------------------------------------------------------- protobuf

function varint(value) {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  return Buffer.from([...bytes, Number(rest)]);
}
const zigzag = (n) => (BigInt(n) << 1n) ^ (BigInt(n) >> 63n);
// Fields of a message: what a field's number is followed by says its type.
const number = (field, value) =>
  Buffer.concat([varint(field << 3), varint(value)]);
const chunk = (field, bytes) =>
  Buffer.concat([varint((field << 3) | 2), varint(bytes.length), bytes]);
const text = (field, value) => chunk(field, Buffer.from(value));
const packed = (field, values) =>
  chunk(field, Buffer.concat(values.map((value) => varint(value))));
const message = (field, ...parts) => chunk(field, Buffer.concat(parts));
function double(field, value) {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return Buffer.concat([varint((field << 3) | 1), bytes]);
}

function readVarint(bytes, at) {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    const byte = bytes[at++];
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return [Number(BigInt.asIntN(64, value)), at];
  }
}

// {field number: [values]}: numbers, or the bytes of texts and messages.
function parse(bytes) {
  const found = {};
  for (let at = 0; at < bytes.length; ) {
    let key, value;
    [key, at] = readVarint(bytes, at);
    if ((key & 7) === 0) [value, at] = readVarint(bytes, at);
    else if ((key & 7) === 1) [value, at] = [bytes.readDoubleLE(at), at + 8];
    else {
      [value, at] = readVarint(bytes, at);
      [value, at] = [bytes.subarray(at, at + value), at + value];
    }
    (found[key >> 3] ??= []).push(value);
  }
  return found;
}
function unpack(bytes) {
  const values = [];
  for (let at = 0, value; at < bytes.length; ) {
    [value, at] = readVarint(bytes, at);
    values.push(value);
  }
  return values;
}

// ---------------------------------------------------------------- gRPC

const frame = (bytes) => {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
};

// A call; `heard` gets each message of the answer. Resolves with its end.
function call(connection, method, headers, heard) {
  const stream = connection.request({
    ":method": "POST",
    ":path": `/holdfast.v1.Holdfast/${method}`,
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  let rest = Buffer.alloc(0);
  stream.on("data", (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    while (rest.length >= 5 && rest.length >= 5 + rest.readUInt32BE(1)) {
      const end = 5 + rest.readUInt32BE(1);
      heard(rest.subarray(5, end));
      rest = rest.subarray(end);
    }
  });
  const ended = new Promise((resolve, reject) => {
    const judge = (fields) => {
      if (fields["grpc-status"] === undefined) return;
      if (fields["grpc-status"] === "0") return resolve();
      reject(new Error(decodeURIComponent(fields["grpc-message"] ?? "")));
    };
    stream.on("response", judge);
    stream.on("trailers", judge);
    stream.on("error", reject);
    stream.on("close", resolve);
  });
  return { stream, ended };
}

// ---------------------------------------------------------------- session

const DTYPES = { int64: 6, float32: 9, float64: 10, bool: 1 };
const ARRAYS = { 1: Uint8Array, 6: BigInt64Array, 9: Float32Array, 10: Float64Array };
const ATTR = {
  b: (value) => number(2, value ? 1 : 0),
  i: (value) => number(3, zigzag(value)),
  f: (value) => double(4, value),
  dtype: (value) => number(5, DTYPES[value]),
  ints: (value) => message(6, packed(1, [value].flat().map(zigzag))),
  s: (value) => text(7, value),
  none: () => number(8, 1),
};

class Tensor {
  constructor(handle, requiresGrad = false) {
    Object.assign(this, { handle, requiresGrad });
  }
}

class Session {
  // `table`: what `holdfast ops --json` prints. Its ops become methods: tensors
  // and attributes in the signature's order, or by name in a last {}.
  static async connect(address, table, token) {
    const self = new Session();
    self.connection = http2.connect(`http://${address}`);
    const failed = new Promise((_, reject) => self.connection.on("error", reject));
    const headers = token ? { authorization: `Bearer ${token}` } : {};
    const hello = Buffer.concat([number(1, 2), number(2, 2), text(3, "node-example")]);
    let reply;
    const greeting = call(self.connection, "Hello", headers, (bytes) => {
      reply = parse(bytes);
    });
    greeting.stream.end(frame(hello));
    await Promise.race([greeting.ended, failed]);
    if (reply[1]) throw new Error(String(parse(reply[1][0])[2]));
    self.nextHandle = reply[8][0];
    Object.assign(self, { batch: 1, readId: 1, commands: [], dead: [], reads: new Map() });
    self.finalizer = new FinalizationRegistry((handle) => self.dead.push(handle));
    // The daemon numbers its ops itself: a newer one may have others.
    const ids = new Map(
      reply[6].map(parse).map((op) => [String(op[2][0]), op[1]?.[0] ?? 0]),
    );
    for (const op of table.ops.filter((op) => ids.has(op.name))) {
      const id = ids.get(op.name);
      self[op.name] = (...args) => self.call(op, id, args, false);
      if (op.inplace) self[`${op.name}_`] = (...args) => self.call(op, id, args, true);
    }
    const stream = call(
      self.connection,
      "Stream",
      { ...headers, "holdfast-session": String(reply[4][0]) },
      (bytes) => self.hear(parse(bytes)),
    );
    self.stream = stream.stream;
    stream.ended.catch((error) => self.fail(error));
    return self;
  }

  hear(event) {
    if (event[1]) this.heard = event[1][0];
    if (event[4]) return this.fail(new Error(String(parse(event[4][0])[2])));
    if (!event[3]) return;
    const result = parse(event[3][0]);
    const { resolve, reject } = this.reads.get(result[1][0]);
    this.reads.delete(result[1][0]);
    if (result[2]) return reject(new Error(String(parse(result[2][0])[2])));
    const spec = parse(result[3][0]);
    const Kind = ARRAYS[spec[1][0]];
    if (!Kind || result[6]) return reject(new Error("not in this example"));
    const bytes = Uint8Array.from(result[4]?.[0] ?? []);
    resolve({ shape: unpack(spec[2]?.[0] ?? []), data: new Kind(bytes.buffer) });
  }

  fail(error) {
    for (const { reject } of this.reads.values()) reject(error);
    this.reads.clear();
  }

  // One command: a field of Command, in the next batch.
  submit(field, ...parts) {
    const dead = this.dead.length ? [packed(1, this.dead)] : [];
    this.dead = [];
    this.commands.push(message(2, ...dead, message(field, ...parts)));
    if (this.commands.length >= 64) this.flush();
  }

  flush() {
    const acknowledged = this.heard ? [number(3, this.heard)] : [];
    const parts = [number(1, this.batch++), ...this.commands, ...acknowledged];
    this.commands = [];
    this.stream.write(frame(Buffer.concat(parts)));
  }

  fresh(requiresGrad) {
    const tensor = new Tensor(this.nextHandle++, requiresGrad);
    this.finalizer.register(tensor, tensor.handle);
    return tensor;
  }

  call(op, id, args, inplace) {
    const last = args.at(-1);
    const named = last?.constructor === Object ? args.pop() : {};
    const inputs = [];
    const attrs = [];
    op.parameters.forEach((parameter, place) => {
      const value = named[parameter.name] ?? args[place];
      if (parameter.kind === "tensors") inputs.push(...value);
      else if (parameter.kind === "tensor") inputs.push(value ?? null);
      else if (value instanceof Tensor) inputs.push(value);
      else {
        if (parameter.kind === "operand") inputs.push(null);
        if (value === undefined) return; // the default
        const whole = typeof value === "boolean" ? "b" : Number.isInteger(value) ? "i" : "f";
        const field = parameter.fields.length > 2 ? whole : parameter.fields[0];
        attrs.push(message(4, number(1, parameter.slot), ATTR[field](value)));
      }
    });
    const record = op.differentiable && inputs.some((input) => input?.requiresGrad);
    const outputs = inplace ? [] : op.outputs.map(() => this.fresh(record));
    this.submit(
      2,
      number(1, id),
      packed(2, inputs.map((input) => input?.handle ?? 0)),
      number(3, outputs[0]?.handle ?? 0),
      ...attrs,
      number(5, record ? 1 : 0),
      number(6, inplace ? 1 : 0),
    );
    return inplace ? inputs[0] : outputs.length === 1 ? outputs[0] : outputs;
  }

  requiresGrad(tensor) {
    this.submit(4, number(1, tensor.handle), number(2, 1));
    tensor.requiresGrad = true;
    return tensor;
  }

  // The gradients of a scalar with respect to `targets`.
  backward(root, targets) {
    const grads = targets.map(() => this.fresh(false));
    const pairs = targets.map((target, i) =>
      message(3, number(1, target.handle), number(2, grads[i].handle)),
    );
    this.submit(5, packed(1, [root.handle]), packed(2, [0]), ...pairs);
    return grads;
  }

  // {shape, data}: the only thing that waits.
  read(tensor) {
    const id = this.readId++;
    this.submit(6, number(1, id), number(2, tensor.handle));
    this.flush();
    return new Promise((resolve, reject) => this.reads.set(id, { resolve, reject }));
  }

  close() {
    this.stream.close();
    this.connection.close();
  }
}

// ---------------------------------------------------------------- training

const [address, file] = process.argv.slice(2);
const table = JSON.parse(fs.readFileSync(file));
const hf = await Session.connect(address, table, process.env.HOLDFAST_TOKEN);
// Which of two diagonal quarters a point lies in.
const x = hf.sub(hf.mul(hf.rand([512, 2]), 2), 1);
const y = hf.to(hf.gt(hf.mul(hf.select(x, 1, 0), hf.select(x, 1, 1)), 0), "int64");
const weights = [[32, 2], [32], [2, 32], [2]].map((size) =>
  hf.requiresGrad(hf.mul(hf.randn(size), 0.5)),
);
const network = (input) =>
  hf.linear(hf.relu(hf.linear(input, weights[0], weights[1])), weights[2], weights[3]);
for (let step = 0; step <= 300; ++step) {
  const [loss] = hf.nll_loss(hf.log_softmax(network(x), 1), y);
  const grads = hf.backward(loss, weights);
  hf.sgd(weights, grads, grads, { lr: 0.5 });
  if (step % 100 === 0) console.log(step, (await hf.read(loss)).data[0]);
}
const right = hf.mean(hf.to(hf.eq(hf.argmax(network(x), 1), y), "float32"));
console.log("accuracy", (await hf.read(right)).data[0]);
// Errors come with a read, and name the op.
await hf.read(hf.matmul(x, x)).catch((error) => console.log("refused:", error.message));
hf.close();
