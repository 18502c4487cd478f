// Splits the module of crates/wasm in two: node split.mjs MODULE FOLDER
//
// FOLDER/sojourn.wasm has the functions that `training.ts` uses, FOLDER/rest.wasm has all others:
// commands of tc, messages of errors, what only scenarios of files have. The page starts with the
// first part and then loads the second. Both share memory and table; the first part imports a
// placeholder for each function of the second that it calls. Constants that only functions of the
// second part need are in it (`split-data.ts`). Needs Binaryen, with wasm-split, and a MODULE that
// was linked with --emit-relocs.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "vite";

const [module, folder] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), "sojourn-split-"));
const at = (name) => join(scratch, name);
const run = (program, ...words) => execFileSync(program, words, { stdio: ["ignore", "inherit", "inherit"] });

const vite = await createServer({ root: import.meta.dirname, optimizeDeps: { noDiscovery: true }, server: { middlewareMode: true, ws: false }, appType: "custom", logLevel: "error" });
const { train } = await vite.ssrLoadModule("/training.ts");
const { splitData, withData, withoutLinking } = await vite.ssrLoadModule("/split-data.ts");
await vite.close();

const linked = readFileSync(module);
writeFileSync(at("module"), withoutLinking(linked));
run("wasm-split", "--instrument", at("module"), "-o", at("instrumented"));
const { instance } = await WebAssembly.instantiate(readFileSync(at("instrumented")), {});
train(instance.exports);
const { input, memory, __write_profile: write } = instance.exports;
const length = write(0, 0);
const place = input(length);
write(place, length);
const profile = Buffer.from(memory.buffer, place, length);
writeFileSync(at("profile"), profile);

run("wasm-split", at("module"), `--profile=${at("profile")}`, "-o1", at("sojourn.wasm"), "-o2", at("rest.wasm"));
// A profile has a hash of the module and then for each function when it was called first, or 0.
const called = Array.from({ length: length / 4 - 2 }, (_, i) => profile.readUInt32LE(8 + 4 * i) > 0);
const data = splitData(linked, called);
mkdirSync(folder, { recursive: true });
for (const [part, segments] of [["sojourn.wasm", data.first], ["rest.wasm", data.rest]]) {
  writeFileSync(at(part), withData(readFileSync(at(part)), segments));
  run("wasm-opt", "-O2", "--strip-debug", "--strip-producers", at(part), "-o", join(folder, part));
}
rmSync(scratch, { recursive: true });
