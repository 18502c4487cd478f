// Writes a Brotli copy of each file of the built page: FILE.br, which `sojourn playground` sends.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { brotliCompressSync, constants } from "node:zlib";

const FOLDER = new URL("dist/", import.meta.url);
for (const entry of readdirSync(FOLDER, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || entry.name.endsWith(".br")) continue;
  const path = `${entry.parentPath}/${entry.name}`;
  const bytes = readFileSync(path);
  // The largest ordinary window: the module is longer than the default.
  const params = { [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params }));
}
