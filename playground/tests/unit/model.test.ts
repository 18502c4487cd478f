import { parse as parseToml } from "smol-toml";
import { describe, expect, test } from "vitest";
import { read, write } from "../../src/model/address";
import { changeOf, exported, fromFile, scenarioOf, toPython, toToml, type Table } from "../../src/model/scenario";
import { DISCIPLINES, LINE } from "../../src/model/specs";
import { currentLine, currentParams, folded, HOME, pane, type State } from "../../src/model/state";
import { STORIES } from "../../src/model/stories";
import { kindOf, turned } from "../../src/model/traffic";
import { digits, format, parse, shownDelay, shownRate, unitOfRate } from "../../src/model/units";
import { readDropped } from "../../src/view/dropped";
import { Series } from "../../src/view/series";
import { handlesOf } from "../../src/view/thresholds";

const CHANGED: State = {
  ...HOME,
  panes: [
    { ...pane("droptail"), changes: [{ atMs: 5000, line: { rate: "5mbit", loss: "0.02" } }] },
    {
      ...pane("codel", { interval: "50ms", limit: "100p" }),
      changes: [
        { atMs: 5000, line: { rate: "5mbit", loss: "0.02" } },
        { atMs: 7016.5, params: { target: "20ms" } },
      ],
    },
  ],
  seed: 7,
  speed: Number.POSITIVE_INFINITY,
  story: "codel",
  step: 2,
};

describe("units", () => {
  test.each([
    ["10mbit", "rate", 1e7],
    ["10 Mbit/s", "rate", 1e7],
    ["300us", "duration", 3e-4],
    ["300kB", "size", 3e5],
    ["0.02", "number", 0.02],
  ] as const)("%s is read", (text, kind, value) => {
    expect(parse(text, kind)?.value).toBeCloseTo(value, 12);
  });

  test("packets are kept apart from bytes, and a bare number is no quantity", () => {
    expect(parse("100p", "size")).toEqual({ value: 100, packets: true });
    for (const kind of ["rate", "duration", "size", "bytes"] as const) expect(parse("10", kind)).toBeUndefined();
    expect(parse("10mbps", "rate")).toBeUndefined();
  });

  test("a written quantity is read again as the same, to three digits", () => {
    for (const kind of ["rate", "duration", "bytes"] as const) {
      for (let e = kind === "duration" ? -9 : 0; e < 9; e++) {
        for (const m of [1, 1.234, 5.5, 9.999]) {
          const value = m * 10 ** e;
          const again = parse(format(value, kind), kind)?.value ?? Number.NaN;
          const whole = kind !== "duration" && value < 1000;
          expect(Math.abs(again - value), `${format(value, kind)} of ${value}`).toBeLessThanOrEqual(whole ? 0.5 : value * 0.0051);
        }
      }
    }
  });

  test("numbers for people have three digits and a unit", () => {
    expect([0.24, 0.0005, 1.234].map(shownDelay)).toEqual(["240 ms", "500 µs", "1.23 s"]);
    expect([64_000, 9_876_543, 1e9].map(shownRate)).toEqual(["64 kbit/s", "9.88 Mbit/s", "1 Gbit/s"]);
    expect([999_999, 1e6, 2.5e9].map((bps) => unitOfRate(bps)[0])).toEqual(["kbit/s", "Mbit/s", "Gbit/s"]);
    expect([0, 0.001234, 1234, Number.NaN].map((value) => digits(value))).toEqual(["0", "0.00123", "1230", "–"]);
  });
});

describe("the address", () => {
  test("holds everything", () => {
    const place = { state: CHANGED, nowMs: 9000, playing: false };
    expect(read(`#${write(place)}`)).toEqual(place);
    expect(read(`#${write({ state: HOME, nowMs: 4000, playing: true })}`)).toEqual({ state: HOME, nowMs: 4000, playing: true });
  });

  test("holds jitter, loss and the return link", () => {
    const traffic = [{ kind: "upload", count: 2 }, { kind: "upload", count: 1, back: true }];
    const state: State = { ...HOME, jitter: "3ms", loss: "0.02", back: { rate: "1mbit", buffer: "20p", qdisc: "fq_codel" }, traffic };
    expect(read(`#${write({ state, nowMs: 1, playing: true })}`)?.state).toEqual(state);
    expect(read("#q=codel&back=1mbit,20p,nothing")?.state.back).toBeUndefined();
  });

  test("holds the scenario of a file", () => {
    const state = fromFile(HOME, "ü.toml", { duration: "9s", links: { up: { rate: "3mbit", qdisc: "codel(target=7ms)" } }, flows: [{ name: "a", path: ["up"] }] });
    expect(state.panes[0]).toEqual(pane("codel", { target: "7ms" }));
    const again = read(`#${write({ state, nowMs: 0, playing: true })}`)?.state;
    expect(again?.file).toEqual(state.file);
    expect(again?.rate).toBe("3mbit");
  });

  test("keeps a parameter called rate apart from the rate of the line", () => {
    const state: State = { ...HOME, panes: [{ ...pane("tbf"), changes: [{ atMs: 1, params: { rate: "1mbit" } }] }] };
    expect(read(`#${write({ state, nowMs: 2, playing: true })}`)?.state.panes).toEqual(state.panes);
  });

  test.each(["", "#", "#rate=5mbit", "#q=<script>", "#q=codel&flows=9*nothing&speed=7&seed=-1&t=1e99ms&file=%00"])("%s does no harm", (fragment) => {
    const place = read(fragment);
    if (place !== undefined) {
      expect(place.state.traffic).toEqual(HOME.traffic);
      expect([place.state.speed, place.state.seed, place.nowMs]).toEqual([1, 1, 0]);
    }
  });
});

describe("scenarios", () => {
  test("TOML has what the module gets, and the changes", () => {
    const of = CHANGED.panes[1]!;
    const scenario = exported(CHANGED, of, 9000);
    expect(parseToml(toToml(scenario))).toEqual(scenario);
    expect(scenario["duration"]).toBe("9000ms");
    expect(scenario["changes"]).toEqual([
      { at: "5000ms", links: { bottleneck: { rate: "5mbit", loss: 0.02 } } },
      { at: "7016500us", links: { bottleneck: { qdisc: { target: "20ms" } } } },
    ]);
    expect(exported(CHANGED, of, 5000)["changes"]).toBeUndefined();
  });

  test("Python has no TOML words", () => {
    const code = toPython(exported(CHANGED, CHANGED.panes[1]!, 9000));
    expect(code).toContain("sj.Change(");
    expect(code).not.toMatch(/\btrue\b|\bfalse\b|\bnull\b/);
  });

  test("the buffer of the line holds unless a pane sets a limit", () => {
    const qdisc = (of: State["panes"][number]): Table => (scenarioOf(HOME, of)["links"] as Record<string, Table>)["bottleneck"]!["qdisc"] as Table;
    expect(qdisc(pane("codel"))["limit"]).toBe("300kB");
    expect(qdisc(pane("codel", { limit: "10p" }))["limit"]).toBe("10p");
    expect(qdisc(pane("xcp"))).toHaveProperty("name", "xcp");
  });

  test("the return link carries acknowledgements, and data of traffic that was turned", () => {
    const traffic = [{ kind: "upload", count: 2 }, { kind: "upload", count: 1, back: true }];
    const state: State = { ...HOME, rtt: "25000001ns", jitter: "2ms", loss: "0.01", back: { rate: "20mbit", buffer: "50p", qdisc: "codel" }, traffic };
    const scenario = scenarioOf(state, pane("fq_codel"));
    const { bottleneck, return: back } = scenario["links"] as Record<string, Table>;
    expect(back).toEqual({ rate: "20mbit", delay: "12500us", qdisc: { name: "codel", limit: "50p" }, jitter: "2ms", loss: 0.01 });
    expect([bottleneck!["delay"], bottleneck!["jitter"], bottleneck!["loss"]]).toEqual(["12500001ns", "2ms", 0.01]);
    const paths = (scenario["flows"] as Table[]).map(({ name, path, return_path }) => [name, path, return_path]);
    expect(paths).toEqual([["upload", ["bottleneck"], ["return"]], ["upload-back", ["return"], ["bottleneck"]]]);
    expect(scenarioOf({ ...state, back: undefined }, pane("codel"))["links"]).not.toHaveProperty("return");
  });

  test("a line without jitter, loss and return link has none of their keys", () => {
    expect(Object.keys((scenarioOf(HOME, pane("codel"))["links"] as Record<string, Table>)["bottleneck"]!)).toEqual(["rate", "delay", "qdisc"]);
    expect(JSON.stringify(scenarioOf(HOME, pane("codel")))).not.toContain("return_path");
  });

  test("a change of jitter and loss holds for both directions, one of the rate for the one shown", () => {
    const state: State = { ...HOME, back: { rate: "20mbit", buffer: "50p", qdisc: "codel" } };
    const line = { rate: "5mbit", jitter: "3ms", loss: "1%" };
    expect(changeOf(state, { line })).toEqual({
      links: { bottleneck: { rate: "5mbit", jitter: "3ms", loss: "1%" }, return: { jitter: "3ms", loss: "1%" } },
    });
    expect(changeOf(state, { line: { rate: "5mbit" } })).toEqual({ links: { bottleneck: { rate: "5mbit" } } });
    expect(changeOf(HOME, { line: { loss: "0.01" } })).toEqual({ links: { bottleneck: { loss: 0.01 } } });
  });

  test("a turned group joins the one of the other direction", () => {
    const [up, down] = [{ kind: "upload", count: 2 }, { kind: "upload", count: 1, back: true }];
    expect(turned([up], 0)).toEqual([{ ...up, back: true }]);
    expect(turned([down], 0)).toEqual([{ kind: "upload", count: 1 }]);
    expect(turned([up, down], 0)).toEqual([{ kind: "upload", count: 3, back: true }]);
  });

  test("a restart keeps what was changed", () => {
    const of = CHANGED.panes[1]!;
    expect(currentLine(CHANGED, of)).toEqual({ rate: "5mbit", jitter: "0ms", loss: "0.02" });
    expect(currentParams(of)).toEqual({ interval: "50ms", limit: "100p", target: "20ms" });
    const again = folded(CHANGED);
    expect([again.rate, again.loss]).toEqual(["5mbit", "0.02"]);
    expect(again.panes[1]).toEqual(pane("codel", { interval: "50ms", limit: "100p", target: "20ms" }));
  });
});

describe("the line", () => {
  test("has the keys of the scenario", () => {
    expect(LINE.map(({ name, kind, range }) => [name, kind, range])).toEqual([
      ["rate", "rate", "1bit to 100tbit"],
      ["jitter", "duration", "0s to 100000s"],
      ["loss", "number", "0 to 1"],
      ["rtt", "duration", ""],
    ]);
  });
});

describe("stories", () => {
  test("are twelve, of known disciplines and kinds of traffic", () => {
    expect(STORIES.length).toBe(12);
    const names = DISCIPLINES.map((spec) => spec.name);
    for (const story of STORIES) {
      let state = story.start;
      for (const step of [undefined, ...story.steps]) {
        state = step === undefined ? state : step.set(state);
        for (const of of state.panes) {
          const params = DISCIPLINES.find((spec) => spec.name === of.qdisc)?.params.map((param) => param.name);
          expect(names).toContain(of.qdisc);
          for (const name of Object.keys(of.params)) expect(params, `${story.name}: ${of.qdisc}`).toContain(name);
        }
        for (const { kind } of state.traffic) expect(kindOf(kind), kind).toBeDefined();
      }
    }
  });
});

describe("dropped texts", () => {
  test("are told apart", () => {
    expect(readDropped("a.toml", "[links.up]\nqdisc = 'codel'\n").kind).toBe("scenario");
    expect(readDropped("a.json", '{"links": {}}').kind).toBe("scenario");
    expect(readDropped("a.sh", "# mine\ntc qdisc add dev eth0 root cake\n").kind).toBe("tc");
    expect(readDropped("show", "qdisc fq_codel 8001: dev eth0 root").kind).toBe("tc");
    expect(() => readDropped("a.toml", "x = 1")).toThrow("a.toml: links: required");
    expect(() => readDropped("a.toml", "= 1")).toThrow(/^a\.toml: neither a scenario nor a line of tc: /);
  });
});

describe("views", () => {
  test("a series keeps the last rows", () => {
    const series = new Series(["time_s", "x"], 3);
    series.append(Float64Array.of(1, 10, 2, 20));
    series.append(Float64Array.of(3, Number.NaN, 4, 40));
    expect([0, 1, 2, 3].map((i) => series.at(i, series.column("time_s")))).toEqual([2, 3, 4, Number.NaN]);
    expect(series.mean("x", 3)).toBe(30);
    expect(series.mean("y", 3)).toBeNaN();
    series.append(new Float64Array(20).fill(7));
    expect([series.length, series.mean("x", 9)]).toEqual([3, 7]);
  });

  test("thresholds convert between delay and their own unit", () => {
    const [target] = handlesOf(pane("codel"), 1e7);
    expect([target?.name, target?.seconds, target?.textFor(0.0123)]).toEqual(["target", 0.005, "12.3ms"]);
    const handles = handlesOf(pane("red", { min_th: "30kB" }), 1e7);
    expect(handles.map((one) => one.name)).toEqual(["min_th", "max_th"]);
    expect(handles[0]?.seconds).toBeCloseTo(0.024);
    expect(handles[1]?.textFor(0.024)).toBe("20p");
  });
});
