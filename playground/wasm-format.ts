/** Sections and numbers of the binary format of WebAssembly, for `split-data.ts`. */

/** Reads numbers and names of a module from a position on. */
export class Reader {
  constructor(
    private readonly module: Uint8Array,
    public at: number,
  ) {}

  byte(): number {
    const byte = this.module[this.at++];
    if (byte === undefined) throw new Error("the module ends too early");
    return byte;
  }

  /** Unsigned number in LEB128, up to 32 bits. */
  number(): number {
    return this.leb()[0] >>> 0;
  }

  /** Signed number in LEB128, 32 bits. */
  signed(): number {
    const [value, bits] = this.leb();
    return bits < 32 ? (value << (32 - bits)) >> (32 - bits) : value;
  }

  name(): string {
    const length = this.number();
    this.at += length;
    return new TextDecoder().decode(this.module.subarray(this.at - length, this.at));
  }

  /** As many values as the next number says. */
  list<T>(read: () => T): T[] {
    return Array.from({ length: this.number() }, read);
  }

  /** Value, and number of bits that it has in the module. */
  private leb(): [number, number] {
    let [value, bits] = [0, 0];
    for (;;) {
      const byte = this.byte();
      if (bits < 32) value |= (byte & 0x7f) << bits;
      bits += 7;
      if (byte < 0x80) return [value, bits];
    }
  }
}

/** Unsigned number in LEB128. */
export function unsigned(number: number): number[] {
  const bytes = [];
  for (; number > 0x7f; number >>>= 7) bytes.push((number & 0x7f) | 0x80);
  return [...bytes, number];
}

/** Signed number in LEB128. */
export function signed(number: number): number[] {
  const bytes = [];
  for (; number < -0x40 || number > 0x3f; number >>= 7) bytes.push((number & 0x7f) | 0x80);
  return [...bytes, number & 0x7f];
}

/** Section of a module: `head` is its place, the contents are from `start` to `end`. */
export interface Section {
  readonly id: number;
  /** Name of a custom section; its contents start after it. */
  readonly name: string;
  readonly head: number;
  readonly start: number;
  readonly end: number;
}

/** Sections of a module. */
export function sections(module: Uint8Array): Section[] {
  const found = [];
  const reader = new Reader(module, 8);
  while (reader.at < module.length) {
    const [head, id] = [reader.at, reader.byte()];
    const length = reader.number();
    const end = reader.at + length;
    const name = id === 0 ? reader.name() : "";
    found.push({ id, name, head, start: reader.at, end });
    reader.at = end;
  }
  return found;
}
