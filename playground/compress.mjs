// Writes a Brotli copy of each file of the built page: FILE.br, which `sojourn playground` sends.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { brotliCompressSync, constants } from "node:zlib";

/** Largest sizes of the compressed parts of the module, bytes. Lower them when it gets smaller. */
const MODULE_MAX = { "sojourn.wasm": 450_000, "rest.wasm": 286_000 };

const FOLDER = new URL("dist/", import.meta.url);
for (const entry of readdirSync(FOLDER, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || entry.name.endsWith(".br")) continue;
  const path = `${entry.parentPath}/${entry.name}`;
  const bytes = readFileSync(path);
  // The largest ordinary window: the module is longer than the default.
  const params = { [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  const compressed = brotliCompressSync(bytes, { params });
  writeFileSync(`${path}.br`, compressed);
  const allowed = MODULE_MAX[entry.name];
  if (allowed !== undefined) {
    console.log(`${entry.name}: ${compressed.length} bytes with Brotli, allowed: ${allowed}`);
    if (compressed.length > allowed) process.exitCode = 1;
  }
}
