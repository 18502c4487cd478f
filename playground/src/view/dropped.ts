/** What is dropped on the page: scenarios, commands of tc, recorded links and recorded packets. */

import { parse } from "smol-toml";
import { isCapture, isRecorded, readRecorded, readRecordedCapture, type RecordedLink, type RecordedTraffic } from "../model/recorded";
import type { Table } from "../model/scenario";

export type Dropped =
  | RecordedDrop
  | { readonly kind: "scenario"; readonly scenario: Table } | { readonly kind: "tc"; readonly lines: string };

type RecordedDrop = { readonly kind: "link"; readonly link: RecordedLink } | { readonly kind: "packets"; readonly packets: RecordedTraffic };

/** Largest file that the page reads, bytes. */
const FILE_MAX = 100e6;

/** Reads a dropped file, gzipped or not. Throws an error with a message for the user. */
export async function readFile(file: File): Promise<Dropped> {
  if (file.size > FILE_MAX) throw new Error(`${file.name}: larger than 100 MB`);
  const bytes = await unpacked(file);
  if (isCapture(bytes)) return { kind: "packets", packets: readRecordedCapture(file.name, bytes) };
  return readDropped(file.name, new TextDecoder().decode(bytes));
}

async function unpacked(file: File): Promise<Uint8Array> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  try {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch {
    throw new Error(`${file.name}: this gzip file is damaged`);
  }
}

/** Reads a dropped text. Throws an error with a message for the user. */
export function readDropped(name: string, text: string): Dropped {
  if (/^\s*(tc\s+qdisc\s|qdisc\s+\w+\s+[0-9a-f]+:)/m.test(text)) return { kind: "tc", lines: text };
  if (isRecorded(text)) {
    const read = readRecorded(name, text);
    return "trace" in read ? { kind: "link", link: read } : { kind: "packets", packets: read };
  }
  let scenario: Table;
  try {
    scenario = (text.trimStart().startsWith("{") ? JSON.parse(text) : parse(text)) as Table;
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    throw new Error(`${name}: neither a scenario nor a line of tc: ${reason}`);
  }
  if (typeof scenario["links"] !== "object" || scenario["links"] === null) throw new Error(`${name}: links: required`);
  return { kind: "scenario", scenario };
}
