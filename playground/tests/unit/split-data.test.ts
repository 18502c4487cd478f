/** Which part of the module gets which constants, for a small module with symbols of the linker. */
import { describe, expect, test } from "vitest";
import { splitData, withData, withoutLinking } from "../../split-data";
import { Reader, sections, signed, unsigned } from "../../wasm-format";

const text = (value: string): number[] => [...unsigned(value.length), ...new TextEncoder().encode(value)];
const section = (id: number, contents: number[]): number[] => [id, ...unsigned(contents.length), ...contents];
const custom = (name: string, contents: number[]): number[] => section(0, [...text(name), ...contents]);
const segment = (address: number, bytes: number[]): number[] => [0, 0x41, ...signed(address), 0x0b, ...unsigned(bytes.length), ...bytes];
const symbol = (name: string, part: number, offset: number, size: number): number[] => [1, 0, ...text(name), part, ...unsigned(offset), size];

/** `i32.const` of an address of data, as wide as the linker writes it, and `drop`. */
const refers = [0x41, 0x80, 0x80, 0x80, 0x80, 0x00, 0x1a];
const body = (references: number): number[] => {
  const contents = [0, ...Array.from({ length: references }, () => refers).flat(), 0x0b];
  return [...unsigned(contents.length), ...contents];
};

const CONSTANTS = 1000;
/** `a` (20 bytes) has the address of `c` at 4; `b` and `c` follow, then a byte of no symbol. */
const constants = Array.from({ length: 61 }, (_, i) => i + 1);
const VARIABLES = 2000;

/** Two functions: the first refers to `a`, the second to `b` and to the variable `v`. */
function module(): Uint8Array {
  const code = [2, ...body(1), ...body(2)];
  const data = [2, ...segment(CONSTANTS, constants), ...segment(VARIABLES, [7, 8, 9, 10])];
  const start = 1 + segment(CONSTANTS, constants).length - constants.length;
  const symbols = [symbol("a", 0, 0, 20), symbol("b", 0, 20, 20), symbol("c", 0, 40, 20), symbol("v", 1, 0, 4), [0, 0, 0, ...text("f")]];
  const names = [text(".rodata").concat(0, 0), text(".data").concat(0, 0)];
  const subsection = (kind: number, list: number[][]): number[] => section(kind, [list.length, ...list.flat()]);
  const inCode = (place: number, of: number): number[] => [4, place, of, 0];
  const [one, two] = [1 + 2 + 1, 1 + body(1).length + 2 + 1];
  return Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 0, 0]),
    ...section(3, [2, 0, 0]),
    ...section(5, [1, 0, 1]),
    ...section(12, [2]),
    ...section(10, code),
    ...section(11, data),
    ...custom("linking", [2, ...subsection(8, symbols), ...subsection(5, names)]),
    ...custom("reloc.CODE", [4, 3, ...inCode(one, 0), ...inCode(two, 1), ...inCode(two + refers.length, 3)]),
    ...custom("reloc.DATA", [5, 1, 5, start + 4, 2, 0]),
    ...custom("target_features", [0]),
  ]);
}

const bytes = (parts: readonly { address: number; bytes: Uint8Array }[]): [number, number[]][] => parts.map((part) => [part.address, [...part.bytes]]);

describe("constants of the parts", () => {
  test("a constant is in the first part if a function of it reaches it", () => {
    const { first, rest } = splitData(module(), [true, false]);
    const variables: [number, number[]] = [VARIABLES, [7, 8, 9, 10]];
    expect(bytes(first)).toEqual([[CONSTANTS, constants.slice(0, 20)], [CONSTANTS + 40, constants.slice(40)], variables]);
    expect(bytes(rest)).toEqual([[CONSTANTS + 20, constants.slice(20, 40)]]);
  });

  test("constants that functions of no part or of the second part reach are in the second", () => {
    const { first, rest } = splitData(module(), [false, true]);
    expect(bytes(first).map(([address, of]) => [address, of.length])).toEqual([[CONSTANTS + 20, 20], [CONSTANTS + 60, 1], [VARIABLES, 4]]);
    expect(bytes(rest).map(([address, of]) => [address, of.length])).toEqual([[CONSTANTS, 20], [CONSTANTS + 40, 20]]);
  });

  test("the parts together have all data, and are modules", () => {
    const { first, rest } = splitData(module(), [true, false]);
    const memory = new Uint8Array(3000);
    for (const part of [first, rest]) {
      const written = withData(withoutLinking(module()), part);
      expect(sections(written).map(({ name, id }) => name || id)).toEqual([1, 3, 5, 10, "target_features", 11]);
      expect(WebAssembly.validate(written as Uint8Array<ArrayBuffer>)).toBe(true);
      part.forEach((of) => memory.set(of.bytes, of.address));
    }
    expect([...memory.subarray(CONSTANTS, CONSTANTS + constants.length)]).toEqual(constants);
  });

  test("a module of other functions, or without symbols of the linker, is refused", () => {
    expect(() => splitData(module(), [true])).toThrow("the profile is of another module");
    expect(() => splitData(withoutLinking(module()), [true, false])).toThrow("no section linking: link it with --emit-relocs");
  });

  test.each([0, 1, 63, 64, 127, 128, 8191, 8192, 1_192_204, 2 ** 31 - 1])("numbers in LEB128 are read as they are written: %i", (number) => {
    expect(new Reader(Uint8Array.from(unsigned(number)), 0).number()).toBe(number);
    expect(new Reader(Uint8Array.from(signed(number)), 0).signed()).toBe(number);
    expect(new Reader(Uint8Array.from(signed(-number)), 0).signed()).toBe(-number + 0);
  });
});
