/**
 * Finds the constants that only one part of the module needs, for `split.mjs`.
 *
 * `wasm-split` leaves all data in the first part. Constants are texts, tables, and tables of
 * methods. The linker says which functions and constants refer to which constants
 * (`--emit-relocs`). A constant stays in the first part if a function of it reaches it, directly or
 * through other constants; the others go to the second part. Variables stay in the first part.
 */
import { Reader, sections, signed, unsigned, type Section } from "./wasm-format";

/** Segment of data: its address in the memory, and its bytes. */
export interface Segment {
  readonly address: number;
  readonly bytes: Uint8Array;
}

/** Segment of a module, with the place of its bytes in the section. */
interface Placed extends Segment {
  readonly place: number;
}

/** Constant or variable that the linker knows, with its place in the section. */
interface Item {
  readonly segment: number;
  readonly offset: number;
  readonly size: number;
  readonly start: number;
}

const [CUSTOM, CODE, DATA, DATA_COUNT] = [0, 10, 11, 12];
const [SYMBOL_TABLE, SEGMENT_NAMES] = [8, 5];
const [DATA_SYMBOL, SECTION_SYMBOL] = [1, 3];
const [UNDEFINED, EXPLICIT_NAME] = [0x10, 0x40];
/** Kinds of relocations with an addend, and those of them that are addresses of data. */
const WITH_ADDEND = new Set([3, 4, 5, 8, 9, 11, 14, 15, 16, 17, 21, 22, 23]);
const OF_DATA = new Set([3, 4, 5, 11, 14, 15, 16, 17, 21, 23]);
/** Constants with at most so many bytes between them share a segment: each has a header. */
const GAP = 8;

/**
 * Data of each part of a module that was linked with `--emit-relocs`. `inFirst` says of each
 * function, in their order, whether it is in the first part.
 */
export function splitData(module: Uint8Array, inFirst: readonly boolean[]): { first: Segment[]; rest: Segment[] } {
  const all = sections(module);
  const of = (id: number, name = ""): Section => {
    const found = all.find((section) => section.id === id && section.name === name);
    if (found === undefined) throw new Error(`the module has no section ${name || id}: link it with --emit-relocs`);
    return found;
  };
  const segments = segmentsOf(module, of(DATA));
  const { symbols, names } = linking(module, of(CUSTOM, "linking"), segments);
  const constant = segments.map((_, i) => names[i]?.startsWith(".rodata") ?? false);
  const items = symbols.filter((item) => item !== undefined).filter(({ size }) => size > 0).sort((a, b) => a.start - b.start);
  const ends = items.map(({ start, size }) => start + size);
  const refers = new Map(items.map((item) => [item, [] as Item[]]));
  for (const { place, symbol } of relocations(module, of(CUSTOM, "reloc.DATA"))) {
    const [from, to] = [items[firstAfter(ends, place)], symbols[symbol]];
    if (from !== undefined && to !== undefined) refers.get(from)?.push(to);
  }
  const reached = new Set(items.filter(({ segment }) => !constant[segment]));
  const functions = endsOfFunctions(module, of(CODE));
  if (functions.length !== inFirst.length) throw new Error("the profile is of another module");
  for (const { place, symbol } of relocations(module, of(CUSTOM, "reloc.CODE"))) {
    const to = symbols[symbol];
    if (to !== undefined && inFirst[firstAfter(functions, place)]) reached.add(to);
  }
  // A set also gives what is added to it meanwhile.
  for (const from of reached) refers.get(from)?.forEach((to) => reached.add(to));
  return cut(segments, items, reached);
}

/** Divides the bytes: those of items that are not reached are for the second part. */
function cut(segments: Placed[], items: Item[], reached: Set<Item>): { first: Segment[]; rest: Segment[] } {
  const later = segments.map(({ bytes }) => new Uint8Array(bytes.length));
  const fill = (item: Item, part: number): unknown => later[item.segment]?.fill(part, item.offset, item.offset + item.size);
  items.forEach((item) => fill(item, 1));
  reached.forEach((item) => fill(item, 0));
  const runs = (part: number): Segment[] =>
    segments.flatMap(({ address, bytes }, i) => {
      const found: { start: number; end: number }[] = [];
      later[i]?.forEach((of, at) => {
        const last = found.at(-1);
        if (of !== part) return;
        if (last !== undefined && at - last.end <= GAP) last.end = at + 1;
        else found.push({ start: at, end: at + 1 });
      });
      return found.map(({ start, end }) => ({ address: address + start, bytes: bytes.subarray(start, end) }));
    });
  return { first: runs(0), rest: runs(1) };
}

/** The module with other data. */
export function withData(module: Uint8Array, segments: readonly Segment[]): Uint8Array {
  const head = unsigned(segments.length);
  const parts = segments.flatMap(({ address, bytes }) => [
    Uint8Array.of(0, 0x41, ...signed(address), 0x0b, ...unsigned(bytes.length)),
    bytes,
  ]);
  const length = parts.reduce((sum, part) => sum + part.length, head.length);
  const kept = sections(module).filter(({ id }) => id !== DATA && id !== DATA_COUNT);
  return joined(module, kept, [Uint8Array.of(DATA, ...unsigned(length), ...head), ...parts]);
}

/** The module without the sections of the linker, with which Binaryen does not work. */
export function withoutLinking(module: Uint8Array): Uint8Array {
  return joined(module, sections(module).filter(({ name }) => name !== "linking" && !name.startsWith("reloc.")), []);
}

function joined(module: Uint8Array, kept: readonly Section[], more: readonly Uint8Array[]): Uint8Array {
  const parts = [module.subarray(0, 8), ...kept.map(({ head, end }) => module.subarray(head, end)), ...more];
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  parts.reduce((at, part) => (whole.set(part, at), at + part.length), 0);
  return whole;
}

function segmentsOf(module: Uint8Array, section: Section): Placed[] {
  const reader = new Reader(module, section.start);
  return reader.list(() => {
    if (reader.number() !== 0 || reader.byte() !== 0x41) throw new Error("a segment without a constant address");
    const address = reader.signed();
    reader.byte();
    const length = reader.number();
    reader.at += length;
    const place = reader.at - length - section.start;
    return { address, place, bytes: module.subarray(reader.at - length, reader.at) };
  });
}

function endsOfFunctions(module: Uint8Array, section: Section): number[] {
  const reader = new Reader(module, section.start);
  return reader.list(() => {
    const length = reader.number();
    return (reader.at += length) - section.start;
  });
}

/** Symbols of the linker, of which only those of data are read, and the names of the segments. */
function linking(module: Uint8Array, section: Section, segments: Placed[]): { symbols: (Item | undefined)[]; names: string[] } {
  const reader = new Reader(module, section.start);
  let [symbols, names]: [(Item | undefined)[], string[]] = [[], []];
  if (reader.number() !== 2) throw new Error("an unknown version of the section linking");
  while (reader.at < section.end) {
    const kind = reader.byte();
    const length = reader.number();
    const end = reader.at + length;
    if (kind === SYMBOL_TABLE) symbols = reader.list(() => symbolOf(reader, segments));
    if (kind === SEGMENT_NAMES) {
      names = reader.list(() => {
        const name = reader.name();
        reader.number(); // alignment
        reader.number(); // flags
        return name;
      });
    }
    reader.at = end;
  }
  return { symbols, names };
}

function symbolOf(reader: Reader, segments: Placed[]): Item | undefined {
  const [kind, flags] = [reader.byte(), reader.number()];
  const defined = (flags & UNDEFINED) === 0;
  if (kind === DATA_SYMBOL) {
    reader.name();
    if (!defined) return undefined;
    const [segment, offset, size] = [reader.number(), reader.number(), reader.number()];
    return { segment, offset, size, start: (segments[segment]?.place ?? 0) + offset };
  }
  reader.number(); // index
  if (kind !== SECTION_SYMBOL && (defined || (flags & EXPLICIT_NAME) !== 0)) reader.name();
  return undefined;
}

/** Addresses of data in a section: their places, and the symbols whose addresses they are. */
function relocations(module: Uint8Array, section: Section): { place: number; symbol: number }[] {
  const reader = new Reader(module, section.start);
  reader.number(); // index of the section
  const all = reader.list(() => {
    const [kind, place, symbol] = [reader.byte(), reader.number(), reader.number()];
    if (WITH_ADDEND.has(kind)) reader.signed();
    return { kind, place, symbol };
  });
  return all.filter(({ kind }) => OF_DATA.has(kind));
}

/** Index of the first of the ascending `ends` that is after `place`. */
function firstAfter(ends: readonly number[], place: number): number {
  let [low, high] = [0, ends.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle]! > place) high = middle;
    else low = middle + 1;
  }
  return low;
}
