// Speed of the module in Node as a share of native speed, in processor time, and its size:
// node speed.mjs FOLDER THROUGHPUT
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";

const [folder, native] = process.argv.slice(2);
const DISCIPLINES = ["red", "codel", "fq_codel", "cake"];
const s1 = (qdisc) => ({
  duration: "200s",
  links: { bottleneck: { rate: "45mbit", delay: "1ms", qdisc } },
  flows: [
    {
      name: "ftp",
      count: 300,
      path: ["bottleneck"],
      rtt: "uniform(40ms, 200ms)",
      tcp: { name: "newreno", packet: "500B", profile: "ns2" },
      source: { name: "bulk", start: "uniform(0s, 10s)" },
    },
  ],
});

const [wasm, rest] = ["sojourn.wasm", "rest.wasm"].map((part) => readFileSync(join(folder, part)));
const module = await WebAssembly.compile(wasm);
const placeholder = Object.fromEntries(WebAssembly.Module.imports(module).map(({ name }) => [name, () => undefined]));
const instance = await WebAssembly.instantiate(module, { placeholder });
await WebAssembly.instantiate(rest, { primary: instance.exports });
const e = instance.exports;

function call(work, text) {
  const bytes = new TextEncoder().encode(text);
  const at = e.input(bytes.length);
  new Uint8Array(e.memory.buffer, at, bytes.length).set(bytes);
  const done = work();
  const output = new Uint8Array(e.memory.buffer, e.output(), e.output_len()).slice();
  if (done !== 1) throw new Error(new TextDecoder().decode(output));
  return output;
}

/** Processor time of this thread, seconds: the clock of the native side, too. */
function processorTime() {
  return Number(readFileSync("/proc/self/schedstat", "utf8").split(" ")[0]) / 1e9;
}

function inModule(scenario) {
  let [best, packets] = [Number.POSITIVE_INFINITY, 0];
  for (let i = 0; i < 5; i++) {
    const before = processorTime();
    const output = call(() => e.run(), JSON.stringify(scenario));
    best = Math.min(best, processorTime() - before);
    packets = Number(/"departed_packets":(\d+)/.exec(new TextDecoder().decode(output))[1]);
  }
  return { best, packets };
}

const file = join(mkdtempSync(join(tmpdir(), "sojourn-speed-")), "scenarios.json");
writeFileSync(file, JSON.stringify(DISCIPLINES.map(s1)));
const times = execFileSync(native, [file], { encoding: "utf8" }).trim().split("\n").map(Number);
console.log("S1 under    M packets/s: WebAssembly   native   share");
DISCIPLINES.forEach((qdisc, i) => {
  const { best, packets } = inModule(s1(qdisc));
  const [module, plain] = [packets / best / 1e6, packets / times[i] / 1e6];
  console.log(`${qdisc.padEnd(27)}${module.toFixed(2).padStart(11)}${plain.toFixed(2).padStart(9)}${(module / plain).toFixed(2).padStart(8)}`);
});

// Steps of a page at 60 Hz: 100 flows under CoDel at 1x, with the packets of the queue. Each round
// simulates the same steps: the least time of a step over the rounds has no other work of the
// machine in it, the worst step of a round has.
const page = s1("codel");
page.flows[0].count = 100;
const [least, worst] = [new Array(1250).fill(Number.POSITIVE_INFINITY), []];
for (let round = 0; round < 7; round++) {
  const handle = new DataView(call(() => e.create(), JSON.stringify(page)).buffer).getUint32(0, true);
  worst.push(0);
  for (let i = 0; i < least.length; i++) {
    const before = performance.now();
    call(() => e.advance(handle, 16 * (i + 1), 20), "");
    call(() => e.packets(handle), "bottleneck");
    const took = performance.now() - before;
    least[i] = Math.min(least[i], took);
    worst[round] = Math.max(worst[round], took);
  }
  call(() => e.remove(handle), "");
}
worst.sort((a, b) => a - b);
const mean = least.reduce((sum, step) => sum + step, 0) / least.length;
console.log(
  `step of 16 ms with 100 flows, packets of the queue included: mean ${mean.toFixed(2)} ms, worst ${Math.max(...least).toFixed(2)} ms; ` +
    `with other work of the machine, worst of a round ${worst[0].toFixed(1)} to ${worst.at(-1).toFixed(1)} ms, median ${worst[3].toFixed(1)} ms`,
);

const home = { ...s1("fq_codel"), duration: "3600s" };
home.links.bottleneck.rate = "10mbit";
home.flows[0].count = 4;
const hour = new DataView(call(() => e.create(), JSON.stringify(home)).buffer).getUint32(0, true);
for (let s = 1; s <= 3600; s++) {
  call(() => e.advance(hour, s * 1000, 20), "");
  call(() => e.packets(hour), "bottleneck");
}
console.log(`memory after an hour of simulated time: ${(e.memory.buffer.byteLength / 1e6).toFixed(0)} MB`);

for (const [name, bytes] of [["sojourn.wasm", wasm], ["rest.wasm", rest]]) {
  const options = { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } };
  console.log(`${name}: ${(bytes.length / 1e3).toFixed(0)} kB, ${(brotliCompressSync(bytes, options).length / 1e3).toFixed(0)} kB with Brotli`);
}
