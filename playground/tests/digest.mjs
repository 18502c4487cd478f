/**
 * SHA-256 of the results of scenarios: of the summary, and of name, type and bytes of each column.
 * Runs in Node and in a browser, so it uses nothing from outside the function.
 */
export async function digests(wasm, rest, scenarios) {
  const module = await WebAssembly.compile(wasm);
  // The second part replaces the placeholders of the first.
  const placeholder = Object.fromEntries(WebAssembly.Module.imports(module).map(({ name }) => [name, () => undefined]));
  const instance = await WebAssembly.instantiate(module, { placeholder });
  await WebAssembly.instantiate(rest, { primary: instance.exports });
  const e = instance.exports;
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  const hash = async (parts) => {
    const whole = new Uint8Array(parts.reduce((n, part) => n + part.length, 0));
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", whole));
    return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  };
  const results = [];
  for (const scenario of scenarios) {
    const input = encoder.encode(scenario);
    const place = e.input(input.length);
    new Uint8Array(e.memory.buffer, place, input.length).set(input);
    const done = e.run();
    const bytes = new Uint8Array(e.memory.buffer, e.output(), e.output_len()).slice();
    if (done !== 1) throw new Error(decoder.decode(bytes));
    const length = new DataView(bytes.buffer).getUint32(0, true);
    const header = JSON.parse(decoder.decode(bytes.subarray(4, 4 + length)));
    let at = 4 + length;
    const parts = [bytes.subarray(at, at + header.summary)];
    at += header.summary;
    for (const [name, type, size] of header.columns) {
      parts.push(encoder.encode(`${name} ${type}`), bytes.subarray(at, at + size));
      at += size;
    }
    results.push(await hash(parts));
  }
  return results;
}
