/** Texts that are dropped on the page: scenarios and commands of tc. */

import { parse } from "smol-toml";
import type { Table } from "../model/scenario";

export type Dropped = { readonly kind: "scenario"; readonly scenario: Table } | { readonly kind: "tc"; readonly lines: string };

/** Reads a dropped text. Throws an error with a message for the user. */
export function readDropped(name: string, text: string): Dropped {
  if (/^\s*(tc\s+qdisc\s|qdisc\s+\w+\s+[0-9a-f]+:)/m.test(text)) return { kind: "tc", lines: text };
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
