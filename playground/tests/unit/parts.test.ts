/** The two parts of the module: what needs the second, and that it is loaded once. Needs `make wasm`. */
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { Sojourn } from "../../src/engine/module";
import { scenarioOf } from "../../src/model/scenario";
import { HOME, pane } from "../../src/model/state";
import { scenarios } from "../../training";

const folder = new URL("../../public/", import.meta.url);
const there = existsSync(new URL("rest.wasm", folder)) || process.env["CI"] !== undefined;
const compiled = (part: string): WebAssembly.Module => new WebAssembly.Module(readFileSync(new URL(part, folder)));

/** An instance of the module, and the number of times that it asked for the second part. */
async function started(): Promise<{ sojourn: Sojourn; requests: () => number }> {
  let requests = 0;
  const sojourn = await Sojourn.start(compiled("sojourn.wasm"), () => {
    requests += 1;
    return compiled("rest.wasm");
  });
  return { sojourn, requests: () => requests };
}

describe.skipIf(!there)("parts of the module", () => {
  test("the panes of disciplines, kinds of traffic and stories run on the first part alone", async () => {
    const [alone, complete] = [await started(), await started()];
    complete.sojourn.tcExport("codel", "10mbit");
    expect(complete.requests()).toBe(1);
    for (const scenario of scenarios()) {
      const [first, second] = [alone, complete].map(({ sojourn }) => {
        const simulation = sojourn.create(JSON.stringify(scenario));
        const frames = simulation.advance(12_000, 20);
        const packets = simulation.packets("bottleneck");
        const { summary } = simulation.result();
        simulation.remove();
        return { frames, packets, summary };
      });
      expect(first, JSON.stringify(scenario)).toEqual(second);
      expect(alone.requests(), JSON.stringify(scenario)).toBe(0);
    }
  }, 240_000);

  test("commands of tc and errors load the second part once", async () => {
    const { sojourn, requests } = await started();
    expect(sojourn.tcExport({ name: "codel", target: "7ms" }, "10mbit").line).toMatch(/^codel .*target 7ms/);
    expect(requests()).toBe(1);
    const links = sojourn.tcImport("tc qdisc add dev eth0 root pie target 20ms") as { qdisc: { name: string } }[];
    expect(links[0]?.qdisc.name).toBe("pie");
    expect(() => sojourn.parameters("codle", "10mbit")).toThrow('did you mean "codel"?');
    expect(requests()).toBe(1);
  });

  test("a call that needs the second part keeps the simulation that is running", async () => {
    const { sojourn, requests } = await started();
    const scenario = JSON.stringify(scenarioOf(HOME, pane("codel")));
    const [running, alone] = [sojourn.create(scenario), sojourn.create(scenario)];
    running.advance(2000, 20);
    alone.advance(5000, 20);
    const before = alone.result().summary;
    expect(sojourn.tcExport("fq_codel", "10mbit").line).toMatch(/^fq_codel/);
    expect(requests()).toBe(1);
    running.advance(5000, 20);
    expect(running.result().summary).toBe(before);
    const copy = running.fork();
    running.advance(7000, 20);
    copy.advance(7000, 20);
    expect(copy.result().summary).toBe(running.result().summary);
  });
});
