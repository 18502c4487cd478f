import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { leftOut, read, write } from "../../src/model/address";
import { isCapture, readCapture, type Packets } from "../../src/model/capture";
import { readRecorded, type RecordedLink, type RecordedTraffic } from "../../src/model/recorded";
import { scenarioOf, type Table } from "../../src/model/scenario";
import { HOME, pane, type State } from "../../src/model/state";
import { readDropped, readFile } from "../../src/view/dropped";

const PYTHON = fileURLToPath(new URL("../../../.venv/bin/python", import.meta.url));
const CAPTURES = fileURLToPath(new URL("captures.py", import.meta.url));

const bytesOf = (base64: string): Uint8Array => new Uint8Array(Buffer.from(base64, "base64"));

/** pcap of raw IPv4 UDP packets: [time in us, source, destination, bytes]. */
function capture(rows: readonly (readonly [number, number, number, number])[]): Uint8Array {
  const file = new DataView(new ArrayBuffer(24 + rows.length * 44));
  [0xa1b2c3d4, 0x00020004, 0, 0, 65535, 101].forEach((word, i) => file.setUint32(4 * i, word));
  rows.forEach(([us, source, destination, size], i) => {
    const at = 24 + 44 * i;
    [Math.floor(us / 1e6), us % 1e6, 28, size].forEach((word, j) => file.setUint32(at + 4 * j, word));
    const words = [0x45000000 + size, 0, 0x40110000, 0x0a000000 + source, 0x0a000000 + destination, 0x00010002, 0];
    words.forEach((word, j) => file.setUint32(at + 16 + 4 * j, word));
  });
  return new Uint8Array(file.buffer);
}

describe("packet captures", () => {
  test.runIf(existsSync(PYTHON))("are read as the command reads them", () => {
    type Row = { file: string; read?: Packets; error?: string };
    const rows = JSON.parse(execFileSync(PYTHON, [CAPTURES, "400"], { encoding: "utf8", maxBuffer: 1 << 28 })) as Row[];
    let [packets, refused] = [0, 0];
    for (const [i, row] of rows.entries()) {
      const file = bytesOf(row.file);
      expect(isCapture(file)).toBe(true);
      if (row.read === undefined) {
        expect(() => readCapture(`${i}.pcap`, file), row.error).toThrow();
        refused++;
        continue;
      }
      const { there, back } = readCapture(`${i}.pcap`, file);
      expect({ there, back: back.time_s.length }, `capture ${i}`).toEqual({ there: row.read, back: 0 });
      packets += there.time_s.length;
    }
    expect(packets).toBeGreaterThan(3000);
    expect(refused).toBeGreaterThan(0);
  });

  test("of both directions are told apart, the one with more bytes first", () => {
    const file = capture([[0, 1, 2, 100], [500_000, 2, 1, 1500], [1_000_000, 1, 2, 40], [2_000_000, 2, 1, 1400]]);
    // The ports of a packet and of its answer are exchanged.
    for (const at of [24 + 44, 24 + 3 * 44]) new DataView(file.buffer).setUint32(at + 16 + 20, 0x00020001);
    const { there, back } = readCapture("a.pcap", file);
    expect(there).toEqual({ time_s: [0.5, 2], size_bytes: [1500, 1400], flow: [0, 0] });
    expect(back).toEqual({ time_s: [0, 1], size_bytes: [100, 40], flow: [0, 0] });
  });

  test("that are damaged say so", () => {
    const file = capture([[0, 1, 2, 100], [1, 1, 2, 100]]);
    expect(() => readCapture("a.pcap", file.subarray(0, 60))).toThrow("a.pcap: is truncated");
    expect(() => readCapture("a.pcap", capture([]))).toThrow("a.pcap: no IP packets");
    file[23] = 99;
    expect(() => readCapture("a.pcap", file)).toThrow("a.pcap: has frames of link type 99");
  });

  test("may be gzipped", async () => {
    const file = capture([[0, 1, 2, 100]]);
    const packed = new Response(new Blob([file as BlobPart]).stream().pipeThrough(new CompressionStream("gzip")));
    const dropped = await readFile(new File([await packed.arrayBuffer()], "a.pcap.gz"));
    expect(dropped.kind).toBe("packets");
    await expect(readFile(new File([Uint8Array.of(0x1f, 0x8b, 1)], "b.gz"))).rejects.toThrow("b.gz: this gzip file is damaged");
  });
});

const linkOf = (state: State): Table => (scenarioOf(state, pane("codel"))["links"] as Record<string, Table>)["bottleneck"]!;

describe("recorded links", () => {
  test("of mahimahi repeat, with the mean rate as the rate", () => {
    const link = readRecorded("lte", "# lte\n0\n\n5\n5\n10\n") as RecordedLink;
    expect(link).toEqual({ name: "lte", trace: { opportunities_ms: [0, 5, 5, 10] }, rate_bps: 4.8e6 });
    expect(linkOf({ ...HOME, trace: link })["trace"]).toEqual(link.trace);
  });

  test("as a table repeat after the length of the last row", () => {
    const link = readRecorded("a.csv", "t_s, rate_bps, delay_s\n0,1e6,0.01\n1.5,3e6,0.02\n") as RecordedLink;
    expect(link.trace).toEqual({ t_ns: [0, 1.5e9], rate_bps: [1e6, 3e6], delay_ns: [1e7, 2e7], repeat: "3000000000ns" });
    expect(link.rate_bps).toBe(2e6);
    expect((readRecorded("a.csv", "t_s,delay_s\n0,0.01\n") as RecordedLink).rate_bps).toBeUndefined();
  });

  test.each([
    ["1\n2.5\n", 'x: line 2: "2.5": a trace of Mahimahi has one whole number of milliseconds per line'],
    ["5\n4\n", "x: the times are not in order"],
    ["0\n", "x: the last opportunity is at 0"],
    ["t_s,rate_bps\n0,fast\n", 'x: line 2: rate_bps: "fast" is not a number'],
    ["t_s,rate_bps\n", "x: has no rows"],
    ["t_s\n0\n", "x: requires columns t_s with rate_bps or delay_s"],
  ])("%j is refused", (text, message) => {
    expect(() => readDropped("x", text)).toThrow(message);
  });
});

describe("recorded packets", () => {
  const packets = readRecorded("p.csv", "time_s,size_bytes,flow\n0,100,0\n0.5,1500,1\n") as RecordedTraffic;

  test("are groups of flows, and the other direction needs a return link", () => {
    const both = { ...packets, back: { time_s: [1], size_bytes: [40], flow: [0] } };
    const flows = (state: State): Table[] => scenarioOf(state, pane("codel"))["flows"] as Table[];
    const one = flows({ ...HOME, traffic: [], recorded: both });
    expect(one).toEqual([
      { name: "recorded", count: 2, source: { name: "trace", time_s: [0, 0.5], size_bytes: [100, 1500], flow: [0, 1] }, path: ["bottleneck"], rtt: "50ms" },
    ]);
    const two = flows({ ...HOME, traffic: [], recorded: both, back: { rate: "1mbit", buffer: "20p", qdisc: "codel" } });
    expect(two.map(({ name, path }) => [name, path])).toEqual([["recorded", ["bottleneck"]], ["recorded-back", ["return"]]]);
  });

  test("are in the address unless they are long", () => {
    const state: State = { ...HOME, traffic: [], recorded: packets, trace: readRecorded("lte", "5\n10\n") as RecordedLink };
    expect(read(`#${write({ state, nowMs: 1, playing: true })}`)?.state).toEqual(state);
    expect(leftOut(state)).toBeUndefined();
    const long = readRecorded("lte", Array.from({ length: 40_000 }, (_, i) => i + 1).join("\n")) as RecordedLink;
    expect(leftOut({ ...state, trace: long })).toBe("lte");
    expect(write({ state: { ...state, trace: long }, nowMs: 1, playing: true }).length).toBeLessThan(2000);
    expect(read("#q=codel&trace=!!&packets=e30=")?.state.recorded).toBeUndefined();
  });
});
