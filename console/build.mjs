// Builds the console: `node build.mjs` writes into src/steersman/web/static, which git ignores.
// `reduce.js`, which only the tests use, goes to console/build.

import { build } from "esbuild";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const pages = join(here, "..", "src", "steersman", "web", "static");

const shared = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  target: ["es2022", "chrome123", "firefox128", "safari17.5"],
  charset: "utf8",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  logLevel: "warning",
};

await rm(pages, { recursive: true, force: true });
await mkdir(pages, { recursive: true });
await Promise.all([
  build({ ...shared, entryPoints: { console: "src/main.tsx" }, outdir: pages, format: "esm" }),
  build({ ...shared, entryPoints: { console: "src/style/main.css" }, outdir: pages }),
  build({
    ...shared,
    entryPoints: { reduce: "src/report.ts" },
    outdir: join(here, "build"),
    format: "iife",
    globalName: "steersman",
  }),
]);
await writeFile(join(pages, "index.html"), await readFile(join(here, "index.html")));
await writeFile(join(pages, "icon.svg"), await readFile(join(here, "icon.svg")));
await writeFile(join(pages, "LICENSES.txt"), await licenses());

/** The licences of what is bundled, which ask to be shipped with it. */
async function licenses() {
  const names = ["preact", "@preact/signals", "@preact/signals-core", "marked", "dompurify"];
  const texts = await Promise.all(
    names.map(async (name) => {
      const folder = join(here, "node_modules", name);
      const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
      const found = await Promise.any(
        ["LICENSE", "LICENSE.md", "license"].map((file) => readFile(join(folder, file), "utf8")),
      );
      // DOMPurify may be used under either of two licences; the shorter notice is that of Apache 2.0.
      const text = found.length > 8000 ? `${license}; https://www.apache.org/licenses/LICENSE-2.0` : found;
      return `${name} ${version}\n\n${text.trim()}\n`;
    }),
  );
  return texts.join(`\n${"-".repeat(72)}\n\n`);
}
