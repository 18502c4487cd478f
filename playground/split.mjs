// Splits the module of crates/wasm in two: node split.mjs MODULE FOLDER
//
// FOLDER/sojourn.wasm has the functions that `training.ts` uses, FOLDER/rest.wasm has all others:
// commands of tc, messages of errors, what only scenarios of files have. The page starts with the
// first part and then loads the second. Both share memory and table; the first part imports a
// placeholder for each function of the second that it calls. Needs Binaryen, with wasm-split.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "vite";

const [module, folder] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), "sojourn-split-"));
const at = (name) => join(scratch, name);
const run = (program, ...words) => execFileSync(program, words, { stdio: ["ignore", "inherit", "inherit"] });

run("wasm-split", "--instrument", module, "-o", at("instrumented"));
const { instance } = await WebAssembly.instantiate(readFileSync(at("instrumented")), {});
const vite = await createServer({ root: import.meta.dirname, optimizeDeps: { noDiscovery: true }, server: { middlewareMode: true, ws: false }, appType: "custom", logLevel: "error" });
const { train } = await vite.ssrLoadModule("/training.ts");
await vite.close();
train(instance.exports);
const { input, memory, __write_profile: write } = instance.exports;
const length = write(0, 0);
const place = input(length);
write(place, length);
writeFileSync(at("profile"), new Uint8Array(memory.buffer, place, length));

run("wasm-split", module, `--profile=${at("profile")}`, "-o1", at("sojourn.wasm"), "-o2", at("rest.wasm"));
mkdirSync(folder, { recursive: true });
for (const part of ["sojourn.wasm", "rest.wasm"]) {
  run("wasm-opt", "-O2", "--strip-debug", "--strip-producers", at(part), "-o", join(folder, part));
}
rmSync(scratch, { recursive: true });
