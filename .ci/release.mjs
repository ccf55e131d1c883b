// `npm run release -- minor` (or major, patch, 1.2.3): turns the notes under "Unreleased" in CHANGELOG.md into the
// section of the new version, sets the version, then commits and tags. Without notes it changes nothing.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const UNRELEASED = /^## \[Unreleased\]\n(?<notes>[^]*?)(?=^## \[)/m;

const changelog = readFileSync("CHANGELOG.md", "utf8");
const notes = UNRELEASED.exec(changelog)?.groups?.notes.trim() ?? "";
const problem = findProblem();
if (problem === undefined) release(process.argv[2]);
else {
  process.stderr.write(`${problem}\n`);
  process.exitCode = 1;
}

function findProblem() {
  if (process.argv[2] === undefined) return "Say which version comes next: npm run release -- minor";
  if (notes === "") return "CHANGELOG.md has nothing under ## [Unreleased]: there is nothing to release.";
  if (git("status", "--porcelain", "--untracked-files=no") !== "") return "Commit or stash your changes first.";
  return undefined;
}

function release(next) {
  // npm's own commit and tag are not used, because npm would create them before the changelog changes.
  const tag = run("npm", "version", next, "--no-git-tag-version", "--ignore-scripts");
  const version = tag.replace(/^v/, "");
  const day = new Date().toISOString().slice(0, 10);
  const section = `## [Unreleased]\n\n## [${version}] - ${day}\n\n${notes}\n\n`;
  writeFileSync(
    "CHANGELOG.md",
    changelog.replace(UNRELEASED, () => section),
  );
  git("commit", "--quiet", "--all", "--message", `chore: release ${version}`);
  git("tag", "--annotate", tag, "--message", `chore: release ${version}`);
}

function git(...args) {
  return run("git", ...args);
}

function run(command, ...args) {
  return execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", 2] }).trim();
}
