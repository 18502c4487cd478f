/**
 * Packet captures (pcap, pcapng) as traffic. `crates/py/src/captures` reads the same files for the
 * command; the tests compare the two.
 *
 * Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng; link types as tcpdump.org lists them.
 */

/** IP packets of one direction, in order of time. */
export interface Packets {
  /** Time since the first packet of the capture. */
  readonly time_s: readonly number[];
  /** Length of the IP packet. */
  readonly size_bytes: readonly number[];
  /** Number of the flow: addresses, protocol and ports, in the order of the file. */
  readonly flow: readonly number[];
}

interface Frame {
  readonly ns: bigint;
  readonly linkType: number;
  readonly data: DataView;
  /** Length before capture cut the frame off. */
  readonly length: number;
}

interface Packet {
  readonly size: number;
  readonly source: string;
  readonly destination: string;
  readonly protocol: string;
  readonly ports: readonly [number, number];
}

const NS = 1_000_000_000n;
/** Most packets that the page takes. */
export const PACKETS_MAX = 300_000;
/** First bytes of pcap: byte order, and nanoseconds per unit of the fraction of a second. */
const PCAP: Readonly<Record<string, readonly [boolean, bigint]>> = {
  a1b2c3d4: [false, 1000n],
  d4c3b2a1: [true, 1000n],
  a1b23c4d: [false, 1n],
  "4d3cb2a1": [true, 1n],
};
const SECTION = 0x0a0d0d0a;
const VLAN = [0x8100, 0x88a8, 0x9100];
const RAW = [101, 228, 229, 12, 14];
const WITH_PORTS = [6, 17, 33, 132, 136];
/** Extension headers of IPv6 whose length counts 8 bytes: hop-by-hop, routing, destination. */
const EXTENSIONS = [0, 43, 60];

function magic(bytes: Uint8Array): string {
  return Array.from(bytes.subarray(0, 4), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** True if `bytes` start as a capture does. */
export function isCapture(bytes: Uint8Array): boolean {
  return magic(bytes) in PCAP || magic(bytes) === "0a0d0d0a";
}

/**
 * Packets of a capture: of the direction with more bytes first, then of the other one. The two are
 * told apart by the address that sends or receives in most packets.
 */
export function readCapture(name: string, bytes: Uint8Array): { there: Packets; back: Packets } {
  const packets: [bigint, Packet][] = [];
  for (const frame of magic(bytes) in PCAP ? pcapFrames(name, bytes) : pcapngFrames(name, bytes)) {
    const packet = ipPacket(name, frame);
    if (packet !== undefined) packets.push([frame.ns, packet]);
    if (packets.length > PACKETS_MAX) throw new Error(`${name}: more than ${PACKETS_MAX} packets; cut it with editcap`);
  }
  if (packets.length === 0) throw new Error(`${name}: no IP packets`);
  const host = mostFrequent(packets.flatMap(([, { source, destination }]) => (source === destination ? [source] : [source, destination])));
  const sent = packets.filter(([, { source }]) => source === host);
  const received = packets.filter(([, { source }]) => source !== host);
  const total = (of: [bigint, Packet][]): number => of.reduce((sum, [, { size }]) => sum + size, 0);
  const first = packets.reduce((least, [ns]) => (ns < least ? ns : least), packets[0]![0]);
  const [there, back] = twoWay(packets) ? (total(sent) >= total(received) ? [sent, received] : [received, sent]) : [packets, []];
  return { there: columns(there, first), back: columns(back, first) };
}

/** True if a flow and its opposite direction were captured. */
function twoWay(packets: readonly (readonly [bigint, Packet])[]): boolean {
  const keys = new Set(packets.map(([, packet]) => flowKey(packet)));
  return packets.some(([, one]) => one.source !== one.destination && keys.has(flowKey({ ...one, source: one.destination, destination: one.source, ports: [one.ports[1], one.ports[0]] })));
}

function mostFrequent(values: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].reduce((best, one) => (one[1] > best[1] ? one : best), ["", 0] as [string, number])[0];
}

function flowKey({ source, destination, protocol, ports }: Packet): string {
  return [source, destination, protocol, ...ports].join(" ");
}

/** Columns in order of time; flows are numbered in the order of the file. */
function columns(packets: readonly (readonly [bigint, Packet])[], first: bigint): Packets {
  const flows = new Map<string, number>();
  const rows = packets.map(([ns, packet]) => {
    const key = flowKey(packet);
    if (!flows.has(key)) flows.set(key, flows.size);
    return { ns: ns - first, size: packet.size, flow: flows.get(key)! };
  });
  rows.sort((a, b) => Number(a.ns - b.ns));
  return { time_s: rows.map(({ ns }) => Number(ns) / 1e9), size_bytes: rows.map(({ size }) => size), flow: rows.map(({ flow }) => flow) };
}

function view(bytes: Uint8Array, at: number, length: number): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset + at, Math.min(length, bytes.length - at));
}

function* pcapFrames(name: string, bytes: Uint8Array): Generator<Frame> {
  const [little, unit] = PCAP[magic(bytes)]!;
  const file = view(bytes, 0, bytes.length);
  if (bytes.length < 24) throw truncated(name);
  const linkType = file.getUint32(20, little) & 0xffff;
  for (let at = 24; at < bytes.length; ) {
    if (at + 16 > bytes.length) throw truncated(name);
    const [seconds, part, captured, length] = [0, 4, 8, 12].map((i) => file.getUint32(at + i, little)) as [number, number, number, number];
    if (at + 16 + captured > bytes.length) throw truncated(name);
    yield { ns: BigInt(seconds) * NS + BigInt(part) * unit, linkType, data: view(bytes, at + 16, captured), length };
    at += 16 + captured;
  }
}

function truncated(name: string): Error {
  return new Error(`${name}: is truncated: it ends within a block`);
}

interface Interface {
  readonly linkType: number;
  /** Units of time per second. */
  readonly perSecond: bigint;
  readonly offset: bigint;
}

function* pcapngFrames(name: string, bytes: Uint8Array): Generator<Frame> {
  const file = view(bytes, 0, bytes.length);
  let [little, own, interfaces] = [true, false, [] as Interface[]];
  for (let at = 0; at < bytes.length; ) {
    if (at + 12 > bytes.length) throw truncated(name);
    if (file.getUint32(at, true) === SECTION) {
      little = file.getUint32(at + 8, true) === 0x1a2b3c4d;
      interfaces = [];
    }
    const [type, length] = [file.getUint32(at, little), file.getUint32(at + 4, little)];
    if (length < 12 || length % 4 !== 0) throw new Error(`${name}: is damaged at byte ${at}`);
    if (at + length > bytes.length) throw truncated(name);
    const body = view(bytes, at + 8, length - 12);
    if (type === SECTION) own = text(options(body, 16, little).get(4)).startsWith("sojourn");
    if (type === 1) interfaces.push(interfaceOf(body, little));
    if (type === 2 || type === 3) throw new Error(`${name}: has packet blocks of a kind that is not supported; editcap -F pcapng rewrites the file`);
    if (type === 6) yield enhanced(name, body, little, interfaces, own);
    at += length;
  }
}

function interfaceOf(body: DataView, little: boolean): Interface {
  const found = options(body, 8, little);
  const resolution = found.get(9)?.getUint8(0) ?? 6;
  const offset = found.get(14);
  return {
    linkType: body.getUint16(0, little),
    perSecond: (resolution & 0x80 ? 2n : 10n) ** BigInt(resolution & 0x7f),
    offset: offset === undefined ? 0n : offset.getBigInt64(0, little),
  };
}

/** Packet of an enhanced packet block. */
function enhanced(name: string, body: DataView, little: boolean, interfaces: readonly Interface[], own: boolean): Frame {
  const [which, high, low, captured, length] = [0, 4, 8, 12, 16].map((i) => body.getUint32(i, little)) as [number, number, number, number, number];
  const of = interfaces[which];
  if (of === undefined || 20 + captured > body.byteLength) throw new Error(`${name}: is damaged: no interface has the number ${which}`);
  const time = (BigInt(high) << 32n) | BigInt(low);
  const ns = of.offset * NS + (time / of.perSecond) * NS + ((time % of.perSecond) * NS) / of.perSecond;
  const comment = own ? text(options(body, 20 + Math.ceil(captured / 4) * 4, little).get(1)) : "";
  const data = new DataView(body.buffer, body.byteOffset + 20, captured);
  return { ns: ns - waited(comment), linkType: of.linkType, data, length };
}

/** Time from the arrival to the time of a packet, in a comment of a capture of sojourn. */
function waited(comment: string): bigint {
  const [, whole = "0", part = ""] = /after (\d+)\.(\d{1,6}) ms$/.exec(comment) ?? [];
  return BigInt(whole) * 1_000_000n + BigInt(part.padEnd(6, "0"));
}

function text(value: DataView | undefined): string {
  return value === undefined ? "" : new TextDecoder().decode(value);
}

/** Options of a block from byte `at` on: the first of each code. */
function options(body: DataView, at: number, little: boolean): Map<number, DataView> {
  const found = new Map<number, DataView>();
  while (at + 4 <= body.byteLength) {
    const [code, length] = [body.getUint16(at, little), body.getUint16(at + 2, little)];
    if (code === 0 || at + 4 + length > body.byteLength) break;
    if (!found.has(code)) found.set(code, new DataView(body.buffer, body.byteOffset + at + 4, length));
    at += 4 + Math.ceil(length / 4) * 4;
  }
  return found;
}

/** Fields of the IP packet of a frame; undefined if it carries none. */
function ipPacket(name: string, { linkType, data, length }: Frame): Packet | undefined {
  const at = (offset: number): number => (offset + 2 <= data.byteLength ? data.getUint16(offset) : 0);
  if (linkType === 1) return network(data, 14, at(12), length);
  if (linkType === 113) return network(data, 16, at(14), length);
  if (linkType === 276) return network(data, 20, at(0), length);
  if (RAW.includes(linkType)) return network(data, 0, byVersion(data, 0), length);
  if (linkType === 0 || linkType === 108) return network(data, 4, byVersion(data, 4), length);
  throw new Error(`${name}: has frames of link type ${linkType}; supported are Ethernet, raw IP, Linux cooked capture and loopback`);
}

function byVersion(data: DataView, at: number): number {
  const version = at < data.byteLength ? data.getUint8(at) >> 4 : 0;
  return version === 4 ? 0x0800 : version === 6 ? 0x86dd : 0;
}

/** IP packet behind VLAN tags and PPPoE. */
function network(data: DataView, at: number, etherType: number, length: number): Packet | undefined {
  while (VLAN.includes(etherType) && at + 4 <= data.byteLength) [etherType, at] = [data.getUint16(at + 2), at + 4];
  if (etherType === 0x8864) {
    if (at + 8 > data.byteLength) return undefined;
    const protocol = data.getUint16(at + 6);
    [etherType, at] = [protocol === 0x21 ? 0x0800 : protocol === 0x57 ? 0x86dd : 0, at + 8];
  }
  if (etherType === 0x0800) return ipv4(data, at, length);
  return etherType === 0x86dd ? ipv6(data, at, length) : undefined;
}

function address(data: DataView, at: number, bytes: number): string {
  return Array.from({ length: bytes }, (_, i) => data.getUint8(at + i)).join(".");
}

function ports(data: DataView, at: number, protocol: number, fragmented: boolean): [number, number] {
  const there = WITH_PORTS.includes(protocol) && !fragmented && at + 4 <= data.byteLength;
  return there ? [data.getUint16(at), data.getUint16(at + 2)] : [0, 0];
}

function ipv4(data: DataView, at: number, length: number): Packet | undefined {
  if (at + 20 > data.byteLength || data.getUint8(at) >> 4 !== 4) return undefined;
  const header = (data.getUint8(at) & 15) * 4;
  if (header < 20 || at + header > data.byteLength) return undefined;
  const [stated, protocol] = [data.getUint16(at + 2), data.getUint8(at + 9)];
  const fragmented = (data.getUint16(at + 6) & 0x3fff) !== 0;
  return {
    // A packet that the network card is to cut into segments may state 0.
    size: stated === 0 ? length - at : stated,
    source: address(data, at + 12, 4),
    destination: address(data, at + 16, 4),
    protocol: `4 ${protocol}`,
    ports: ports(data, at + header, protocol, fragmented),
  };
}

function ipv6(data: DataView, at: number, length: number): Packet | undefined {
  if (at + 40 > data.byteLength || data.getUint8(at) >> 4 !== 6) return undefined;
  const stated = data.getUint16(at + 4);
  let [next, to, fragmented] = [data.getUint8(at + 6), at + 40, false];
  while ((EXTENSIONS.includes(next) || next === 44 || next === 51) && to + 8 <= data.byteLength) {
    const kind = next;
    const units = data.getUint8(to + 1);
    if (kind === 44) fragmented ||= (data.getUint16(to + 2) & 0xfff9) !== 0;
    next = data.getUint8(to);
    to += kind === 44 ? 8 : kind === 51 ? (units + 2) * 4 : (units + 1) * 8;
  }
  return {
    size: stated === 0 ? length - at : stated + 40,
    source: address(data, at + 8, 16),
    destination: address(data, at + 24, 16),
    protocol: `6 ${next}`,
    ports: ports(data, to, next, fragmented),
  };
}
