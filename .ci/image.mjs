// `npm run image`: builds the contents of the image in a temporary folder, as the Dockerfile does, and adds up their
// size. Needs no container engine. Fails if the size exceeds the budget, or if the image's Node does not start.
import { spawnSync } from "node:child_process";
import { lstatSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const BUDGET_MB = 250;
const PARTS = ["usr/local/bin", "app/node_modules", "app/src", "app/adapters"];

if (process.platform !== "linux") throw new Error("The image is made on Linux only.");
const folder = mkdtempSync(join(tmpdir(), "palaver-image-"));
try {
  const script = fileURLToPath(new URL("image.sh", import.meta.url));
  const { status } = spawnSync("sh", [script, folder], { stdio: ["ignore", 2, 2] });
  if (status !== 0) throw new Error("The image could not be made: what stopped it is above.");
  const total = sizeOf(folder);
  const parts = PARTS.map((part) => [`/${part}`, sizeOf(join(folder, part))]);
  const rest = total - parts.reduce((sum, [, bytes]) => sum + bytes, 0);
  for (const [part, bytes] of [...parts, ["all else", rest], ["the image", total]]) {
    process.stdout.write(`${(bytes / 1e6).toFixed(1).padStart(7)} MB  ${part}\n`);
  }
  process.stdout.write(`Computed from its parts, uncompressed; the budget is ${BUDGET_MB} MB.\n`);
  if (total > BUDGET_MB * 1e6) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function sizeOf(path) {
  const entry = lstatSync(path);
  if (!entry.isDirectory()) return entry.size;
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
}
