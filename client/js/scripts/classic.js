// Writes ldprecover.classic.js, the client for a plain <script>: node scripts/classic.js
//
// It is the modules as they are, each in a function of its own, with what they import and export as
// plain variables. A test holds the file to this.
import { readFileSync, writeFileSync } from "node:fs";

const HERE = new URL("../", import.meta.url);
const ENTRY = "ldprecover.js";
const FILE = new URL("ldprecover.classic.js", HERE);

const IMPORT = /^(?:import|export) \{([^}]*)\} from "\.\/([^"]+)";\n/gm;
const DECLARED = /^export (?:async function|function|class|const) (\w+)/gm;

function names(list) {
  return list
    .split(",")
    .map((name) => name.trim())
    .filter(Boolean)
    .join(", ");
}

function variable(path) {
  return path.replace(/^src\//, "").replace(/\.js$/, "");
}

/** Return a module's text, and the paths that it imports from; `folder` is its own. */
function read(path) {
  const text = readFileSync(new URL(path, HERE), "utf8");
  const folder = path.includes("/") ? path.slice(0, path.lastIndexOf("/") + 1) : "";
  return { text, imports: [...text.matchAll(IMPORT)].map(([, , from]) => folder + from), folder };
}

function wrapped(path) {
  const { text, folder } = read(path);
  const exported = [...text.matchAll(DECLARED)].map(([, name]) => name);
  const body = text
    .replace(
      IMPORT,
      (_, list, from) => `const { ${names(list)} } = ${variable(folder + from)}Module;\n`,
    )
    .replace(/^export /gm, "");
  return `const ${variable(path)}Module = (() => {\n${body}\nreturn { ${exported.join(", ")} };\n})();\n`;
}

/** Return the text of the classic script. */
export function classic() {
  const paths = [];
  const visit = (path) => {
    read(path).imports.forEach(visit);
    if (!paths.includes(path)) paths.push(path);
  };
  visit(ENTRY);
  const modules = paths.filter((path) => path !== ENTRY).map(wrapped);
  const faces = [...read(ENTRY).text.matchAll(IMPORT)];
  const taken = faces.map(
    ([, list, from]) => `const { ${names(list)} } = ${variable(from)}Module;\n`,
  );
  const all = faces.map(([, list]) => names(list)).join(", ");
  const head = "// Made by scripts/classic.js of the modules in src/: change those.\n";
  const inside = `"use strict";\n\n${modules.join("\n")}\n${taken.join("")}`;
  return `${head}globalThis.LDPRecover = (() => {\n${inside}return Object.freeze({ ${all} });\n})();\n`;
}

if (process.argv[1] && import.meta.url === new URL(`file://${process.argv[1]}`).href)
  writeFileSync(FILE, classic());
