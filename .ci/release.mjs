// What `npm version` runs (see CONTRIBUTING.md): `check` before it changes anything, `changelog` when it has set the
// version. What stands under "Unreleased" in CHANGELOG.md becomes the section of that version.
import { readFileSync, writeFileSync } from "node:fs";

const UNRELEASED = /^## \[Unreleased\]\n(?<notes>[^]*?)(?=^## \[)/m;

const changelog = readFileSync("CHANGELOG.md", "utf8");
const notes = UNRELEASED.exec(changelog)?.groups?.notes.trim() ?? "";
if (notes === "") {
  process.stderr.write("CHANGELOG.md has nothing under ## [Unreleased]: there is nothing to release.\n");
  process.exitCode = 1;
} else if (process.argv[2] === "changelog") {
  const { version } = JSON.parse(readFileSync("package.json", "utf8"));
  const day = new Date().toISOString().slice(0, 10);
  const section = `## [Unreleased]\n\n## [${version}] - ${day}\n\n${notes}\n\n`;
  writeFileSync(
    "CHANGELOG.md",
    changelog.replace(UNRELEASED, () => section),
  );
}
