// Digests of the scenarios of a JSON list: node digest-node.mjs FOLDER SCENARIOS.json
import { readFileSync } from "node:fs";
import { digests } from "./digest.mjs";

const [folder, scenarios] = process.argv.slice(2);
const list = JSON.parse(readFileSync(scenarios, "utf8"));
console.log(JSON.stringify(await digests(readFileSync(`${folder}/sojourn.wasm`), readFileSync(`${folder}/rest.wasm`), list)));
