// The line, and what is dropped on the page, in Chromium: node --test tests/browser/
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { drop, launch, output, PYTHON, run, serve, settled, SOJOURN, summary, toml, type, visit } from "./browser.mjs";

let browser;
let server;
let folder;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "sojourn-playground-"));
  server = await serve();
  browser = await launch();
});

after(async () => {
  await browser?.close();
  server?.end();
  rmSync(folder, { recursive: true });
});

const LINE = "#rate=10mbit&rtt=50ms&buffer=300kB&flows=1*upload,1*call&q=codel&seed=1&t=6000ms&paused=1";
const at = (fragment, work) => visit(browser, `${server.address}${fragment}`, work);

/** Asserts that the command gives the numbers of the page. */
async function asCommand(page, name) {
  await page.evaluate(() => globalThis.playground.pause(true));
  await settled(page);
  const expected = await summary(page);
  const file = join(folder, name);
  writeFileSync(file, await toml(page));
  const result = JSON.parse(output(SOJOURN, ["run", file, "--json"]));
  assert.deepEqual(result.links, expected.links);
  assert.deepEqual(result.flows, expected.flows);
  return result;
}

test("loss and jitter change at once in the running simulation, and the command gives the same numbers", () =>
  at(LINE, async (page) => {
    const goodput = async () => (await summary(page)).flows.find(({ name }) => name === "upload").goodput_bps;
    const before = await goodput();
    await page.locator(".direction summary").click();
    await type(page, "loss", "0.05");
    await type(page, "jitter", "4ms");
    assert.equal(await goodput(), before, "what happened before stays");
    assert.match(await page.evaluate(() => location.hash), /q=codel@6000ms:loss=0.05@6000ms:jitter=4ms&/);
    await run(page, 6);
    assert.ok((await goodput()) < 0.8 * before, `${before}, then ${await goodput()} bit/s`);
    await asCommand(page, "changed.toml");
  }));

test("jitter, loss and a return link change the outcome, and the command gives the same numbers", () =>
  at(LINE, async (page) => {
    const [before] = [await summary(page)];
    await page.locator(".direction summary").click();
    await type(page, "loss", "0.02");
    await type(page, "jitter", "4ms");
    await page.locator("button", { hasText: "↺" }).click();
    await settled(page);
    await run(page, 6);
    const lossy = await summary(page);
    const goodput = (of) => of.flows.find(({ name }) => name === "upload").goodput_bps;
    assert.ok(goodput(lossy) < 0.8 * goodput(before), `${goodput(before)}, then ${goodput(lossy)} bit/s`);
    await type(page, "jitter", "4");
    assert.match(await page.locator(".line > .refused").textContent(), /jitter: .*has no unit/);
    await page.locator("select[aria-label='return link']").selectOption("droptail");
    await settled(page);
    await type(page, "return-rate", "1mbit");
    await page.locator(".chip[data-kind=upload] button[aria-label='Direction of upload']").click();
    await settled(page);
    assert.match(await page.evaluate(() => location.hash), /jitter=4ms&loss=0.02&back=1mbit,300kB,droptail&flows=1\*upload.back,1\*call/);
    const result = await asCommand(page, "line.toml");
    assert.deepEqual(Object.keys(result.links).sort(), ["bottleneck", "return"]);
    assert.match(await page.locator(".numbers").textContent(), /return queue/);
  }));

test("acknowledgements that wait in the return link slow an upload down", () =>
  at(LINE.replace("1*upload,1*call", "1*upload").replace("rtt=50ms", "rtt=50ms&back=10kbit,5p,droptail"), async (page) => {
    const slow = (await summary(page)).flows[0].goodput_bps;
    await type(page, "return-rate", "10mbit");
    assert.ok((await summary(page)).flows[0].goodput_bps > 1.15 * slow);
  }));

test("a dropped trace of mahimahi is the rate of the link", () =>
  at(LINE, async (page) => {
    // 3 Mbit/s: an opportunity of 1500 bytes every 4 ms.
    await drop(page, "slow.up", Array.from({ length: 250 }, (_, i) => 4 * (i + 1)).join("\n"));
    await settled(page);
    await run(page, 4);
    assert.equal(await page.locator(".line [data-name=rate] input[type=text]").inputValue(), "3000000bit");
    const result = await asCommand(page, "trace.toml");
    assert.ok(result.flows[0].goodput_bps > 2e6 && result.flows[0].goodput_bps < 3e6);
    await drop(page, "rates.csv", "t_s,rate_bps\n0,8000000\n1,2000000\n");
    await settled(page);
    await asCommand(page, "rates.toml");
    assert.equal(await page.locator(".chip[data-kind=trace]").textContent(), "rates.csv×");
    await page.locator("button[aria-label='Remove rates.csv']").click();
    await settled(page);
    assert.doesNotMatch(await toml(page), /rate_bps/);
    await drop(page, "wrong.csv", "t_s,rate_bps\n0,fast\n");
    await settled(page);
    assert.match(await page.locator(".line > .refused").textContent(), /^wrong\.csv: line 2: rate_bps: "fast" is not a number/);
  }));

const CALLS = `duration = "3s"
[links.up]
rate = "1mbit"
delay = "5ms"
[[flows]]
name = "call"
count = 2
path = ["up"]
source = { name = "cbr", rate = "200kbit", packet = "500B", start = "uniform(0s, 100ms)" }
`;

test("a dropped capture is sent packet by packet", () =>
  at(LINE, async (page) => {
    const scenario = join(folder, "calls.toml");
    writeFileSync(scenario, CALLS);
    const capture = join(folder, "calls.pcapng");
    const sent = JSON.parse(output(SOJOURN, ["run", scenario, "--json", "--pcap", capture]));
    await drop(page, "calls.pcapng", readFileSync(capture).toString("base64"), true);
    await settled(page);
    assert.equal(await page.locator(".chip[data-kind=recorded]").textContent(), "calls.pcapng×");
    await type(page, "rate", "300kbit");
    await run(page, 6);
    const result = await asCommand(page, "capture.toml");
    assert.deepEqual(result.flows.map(({ name }) => name), ["recorded.0", "recorded.1"]);
    const packets = (of) => of.links.up ?? of.links.bottleneck;
    const code = `import json, sojourn as sj; s = sj.load_trace(${JSON.stringify(capture)}); print(json.dumps([list(s.time_s), list(s.size_bytes)]))`;
    const [times, sizes] = JSON.parse(output(PYTHON, ["-c", code]));
    const recorded = await page.evaluate(() => globalThis.playground.state.recorded.there);
    assert.deepEqual([recorded.time_s, recorded.size_bytes], [times, sizes]);
    assert.ok(times.length > 250 && packets(sent).arrived_packets <= times.length);
    assert.ok(result.links.bottleneck.sojourn_mean_s > 0.02, "400 kbit/s wait in a link of 300 kbit/s");
    await page.locator("button[aria-label='Remove calls.pcapng']").click();
    await settled(page);
    assert.match(await page.evaluate(() => location.hash), /flows=3\*upload,1\*call/);
    await drop(page, "wrong.pcap", Buffer.from([0xa1, 0xb2, 0xc3, 0xd4, 0]).toString("base64"), true);
    await settled(page);
    assert.match(await page.locator(".line > .refused").textContent(), /^wrong\.pcap: is truncated/);
  }));
