// Installs what a command needs and checks which Node will run it. `.ci/with` calls it. It runs on any Node before
// anything is installed, so it is plain JavaScript that imports only Node's modules. `node .ci/setup.mjs start` installs
// only what the service needs. `develop` installs everything. `test` also checks for the programs that some tests need,
// and `ci` installs these programs.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const MODULES = join(ROOT, "node_modules");
/** The lockfile with a URL for each package. npm prefers it to package-lock.json. Exists only while npm runs. */
const ADDRESSED_LOCKFILE = join(ROOT, "npm-shrinkwrap.json");
/** Exists if `slim` removed files that development needs. */
const SLIM_MARK = join(MODULES, ".slim");
/** Measured on two cores, with and without other work. */
const COST = {
  start: "about 85 MB to download, 20 to 40 seconds with a fast connection",
  develop: "about 190 MB to download, 30 to 60 seconds with a fast connection",
};
const LOCK_WAIT_MS = 10 * 60_000;
const LOCK_POLL_MS = 200;
const EMPTY_LOCK_MS = 5000;
/** How often to show the progress, in a terminal and in a log. */
const PROGRESS_MS = { terminal: 500, log: 10_000 };
const PROGRAMS = [
  { names: ["redis-server"], packages: ["redis-server"], skipped: "the tests of Redis" },
  {
    names: ["chromium", "chromium-headless-shell"],
    // This build of Chromium draws no windows, and needs only two thirds of the processor time.
    packages: ["chromium-headless-shell", "fonts-noto-cjk"],
    skipped: "the tests in a browser",
  },
  { names: ["promtool"], packages: ["prometheus"], skipped: "the check of the alerts" },
];

const purpose = process.argv[2] ?? "develop";
try {
  if (Number.parseInt(process.versions.node, 10) < 20) {
    throw new Error(`Palaver needs Node 20 or later to set itself up; this is Node ${process.versions.node}.`);
  }
  await installPackages();
  checkNode();
  if (purpose === "test" || purpose === "ci") installPrograms();
} catch (error) {
  say(error.message);
  process.exitCode = 1;
}

async function installPackages() {
  if (describeMissing() === undefined) return;
  const unlock = await lock();
  try {
    // Another process may have installed everything while this one waited for the lock.
    const reason = describeMissing();
    if (reason === undefined) return;
    const withDev = purpose !== "start" || hasDevelopmentPackages();
    const paths = Object.entries(readWanted())
      .filter(([path, entry]) => path.startsWith("node_modules/") && (withDev || !entry.dev) && isForThisMachine(entry))
      .map(([path]) => path);
    say(`${reason}: installing ${paths.length} packages (${withDev ? COST.develop : COST.start})`);
    const startedAt = performance.now();
    const stopProgress = showProgress(paths, startedAt);
    try {
      await runNpmCi([withDev ? "--include=dev" : "--omit=dev", "--include=optional"]);
    } finally {
      stopProgress();
    }
    const still = describeMissing();
    if (still !== undefined) throw new Error(`npm ci succeeded, but ${still}. Is package-lock.json in order?`);
    if (!withDev) slim();
    say(`installed in ${toSeconds(startedAt)} s`);
  } finally {
    unlock();
  }
}

/** Undefined if npm's record of the installed packages has everything that the lockfile lists. */
function describeMissing() {
  const wanted = readWanted();
  const installed = readInstalled();
  if (installed === undefined) return "nothing is installed";
  if (purpose !== "start" && existsSync(SLIM_MARK)) return "the packages for development are missing";

  for (const [path, { version, integrity, optional, dev, devOptional }] of Object.entries(wanted)) {
    const found = installed[path];
    const needless = optional || devOptional || (dev && purpose === "start");
    if (found === undefined && (path === "" || needless)) continue;
    if (found?.version !== version || found?.integrity !== integrity) return "package-lock.json has changed";
  }
  return Object.values(installed).every(isForThisMachine)
    ? undefined
    : "node_modules was installed on another kind of machine";
}

function hasDevelopmentPackages() {
  return Object.values(readInstalled() ?? {}).some(({ dev }) => dev);
}

function readWanted() {
  const wanted = readPackages(join(ROOT, "package-lock.json"));
  if (wanted === undefined) throw new Error("package-lock.json is missing or unreadable: check it out again.");
  return wanted;
}

function readInstalled() {
  return readPackages(join(MODULES, ".package-lock.json"));
}

function readPackages(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8")).packages;
  } catch {
    return undefined;
  }
}

function isForThisMachine({ os, cpu }) {
  return admits(os, process.platform) && admits(cpu, process.arch);
}

/** `list` as in package.json: names to accept, or names to exclude. */
function admits(list, name) {
  if (list === undefined) return true;
  const names = [list].flat();
  return names.includes(name) || names.every((entry) => entry.startsWith("!") && entry !== `!${name}`);
}

/**
 * Adds a URL to each package of the lockfile, with the path that almost all registries use. Without URLs, npm would
 * first ask the registry about every package, which takes as long as downloading them. If a URL fails, npm runs again
 * without URLs.
 */
async function runNpmCi(options) {
  const args = ["ci", "--ignore-scripts", ...options];
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
  const removeAddresses = () => rmSync(ADDRESSED_LOCKFILE, { force: true });
  process.on("exit", removeAddresses);
  writeFileSync(ADDRESSED_LOCKFILE, addAddresses(await readRegistry()));
  const isDone = (await runNpm([...args, "--fetch-retries=0"], { stderr: "ignore" })).code === 0;
  removeAddresses();
  if (isDone || (await runNpm(args)).code === 0) return;
  throw new Error("npm ci failed for the reason above. Can this machine reach the package registry?");
}

async function readRegistry() {
  const { stdout } = await runNpm(["config", "get", "registry"], { stdout: "pipe" });
  return stdout.trim().replace(/\/*$/, "/");
}

function addAddresses(registry) {
  const lockfile = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
  for (const [path, entry] of Object.entries(lockfile.packages)) {
    if (entry.integrity === undefined) continue;
    const name = entry.name ?? path.replace(/^.*node_modules\//, "");
    entry.resolved ??= `${registry}${name}/-/${name.split("/").at(-1)}-${entry.version}.tgz`;
  }
  return JSON.stringify(lockfile);
}

async function runNpm(args, { stdout = "ignore", stderr = 2 } = {}) {
  const { npm_execpath: npm, npm_node_execpath: node } = process.env;
  // Uses the Node that runs npm, because npm is about to replace the one in node_modules.
  const direct = npm?.endsWith(".js") && node !== undefined && !node.startsWith(MODULES);
  const [command, before] = direct ? [node, [npm]] : ["npm", []];
  const quiet = ["--no-audit", "--no-fund", "--no-progress", "--loglevel=error"];
  const child = spawn(command, [...before, ...args, ...quiet], { cwd: ROOT, stdio: ["ignore", stdout, stderr] });
  // A child that outlives this process would continue to write into node_modules.
  process.once("exit", () => child.kill());
  let said = "";
  child.stdout?.on("data", (chunk) => {
    said += chunk;
  });
  return new Promise((resolve, reject) => {
    child.on("error", (error) => reject(new Error(`npm could not be started: ${error.message}`)));
    child.on("close", (code) => resolve({ code, stdout: said }));
  });
}

/** Shows how many packages are installed. Returns a function that ends the display. */
function showProgress(paths, startedAt) {
  const isTerminal = process.stderr.isTTY;
  const show = () => {
    const there = paths.filter((path) => existsSync(join(ROOT, path, "package.json"))).length;
    const line = `setup: ${there} of ${paths.length} packages, ${toSeconds(startedAt)} s`;
    process.stderr.write(isTerminal ? `\r${line}` : `${line}\n`);
  };
  const timer = setInterval(show, isTerminal ? PROGRESS_MS.terminal : PROGRESS_MS.log);
  return () => {
    clearInterval(timer);
    if (isTerminal) process.stderr.write("\r\x1b[K");
  };
}

function toSeconds(startedAt) {
  return Math.round((performance.now() - startedAt) / 1000);
}

/** Removes files in installed packages that are unused at run time: types, source maps, manuals, headers. */
function slim() {
  writeFileSync(SLIM_MARK, "Removed by .ci/setup.mjs: types, source maps, manuals, headers.\n");
  rmSync(join(MODULES, "@types"), { recursive: true, force: true });
  for (const name of readdirSync(MODULES)) {
    if (!/^node-(bin-)?(linux|darwin)-/.test(name)) continue;
    for (const part of ["include", "share", "CHANGELOG.md"]) {
      rmSync(join(MODULES, name, part), { recursive: true, force: true });
    }
  }
  for (const entry of readdirSync(MODULES, { recursive: true, withFileTypes: true })) {
    const isNeedless = /\.(map|[mc]?ts|md)$/.test(entry.name) && !/^(licen[cs]e|notice|copying)/i.test(entry.name);
    if (isNeedless && entry.isFile()) rmSync(join(entry.parentPath ?? entry.path, entry.name));
  }
}

/** Throws an error for the user unless the command's `node` runs on this machine and is new enough. */
function checkNode() {
  const { engines } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const needed = engines.node.replace(/^>=/, "");
  const own = join(MODULES, ".bin", "node");
  const isInstalled = existsSync(own);
  const packagedVersion = isInstalled ? readNodeVersion(own) : undefined;
  // Removes a packaged Node that does not run here, because it would hide the machine's Node.
  if (isInstalled && packagedVersion === undefined) rmSync(own);
  // Without npm, the packaged Node is not on the PATH yet.
  const found = packagedVersion ?? readNodeVersion("node");
  if (found !== undefined && isAtLeast(found, needed)) return;
  const there = found === undefined ? "there is none on the PATH" : `the one on the PATH is ${found}`;
  const packaged = isInstalled
    ? "the one from the packages does not run here (it needs glibc, which Alpine does not have)"
    : "the one from the packages is not installed (either npm left out optional packages, or there is none for this machine)";
  throw new Error(
    `Palaver needs Node ${needed} or later, but ${there}, and ${packaged}: install Node from https://nodejs.org or with your package manager, or run \`npm ci --include=optional\`.`,
  );
}

/** Undefined if the command cannot run. */
function readNodeVersion(command) {
  const { status, stdout } = spawnSync(command, ["--version"], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  return status === 0 ? stdout.trim().replace(/^v/, "") : undefined;
}

function isAtLeast(version, minimum) {
  return version.localeCompare(minimum, "en", { numeric: true }) >= 0;
}

/**
 * Allows one setup per folder at a time, and takes over the lock of a dead process. Resolves to a function that
 * releases the lock.
 */
async function lock() {
  const name = createHash("sha256").update(`${ROOT} ${userInfo().uid}`).digest("hex").slice(0, 16);
  const path = join(tmpdir(), `palaver-setup-${name}.lock`);
  const deadline = Date.now() + LOCK_WAIT_MS;
  let told = false;
  while (Date.now() < deadline) {
    try {
      writeFileSync(path, String(process.pid), { flag: "wx" });
      return () => rmSync(path, { force: true });
    } catch (error) {
      if (error.code !== "EEXIST") throw new Error(`${path} cannot be written: ${error.message}`, { cause: error });
    }
    if (isAbandoned(path)) rmSync(path, { force: true });
    if (!told) say("waiting for another setup of this folder to finish");
    told = true;
    await sleep(LOCK_POLL_MS);
  }
  throw new Error(`another setup of this folder has not ended for ten minutes. If there is none, remove ${path}.`);
}

/** True if the process that wrote the lock is dead, or if the lock stayed empty. */
function isAbandoned(path) {
  try {
    const holder = Number.parseInt(readFileSync(path, "utf8"), 10);
    return Number.isNaN(holder) ? Date.now() - statSync(path).mtimeMs > EMPTY_LOCK_MS : !isAlive(holder);
  } catch {
    // The lock was released between the two checks.
    return false;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** Installs the programs in CI. On a developer's machine, names the missing ones and says how to get them. */
function installPrograms() {
  const missing = PROGRAMS.filter(({ names }) => !names.some(isOnPath));
  if (missing.length === 0) return;
  const isCi = process.env.CI === "true";
  const wanted = missing.flatMap(({ packages }) => packages);
  const isDebian = existsSync("/etc/debian_version");
  if ((isCi || purpose === "ci") && isDebian && process.getuid?.() === 0 && isOnPath("apt-get") && aptInstall(wanted))
    return;
  const lacking = missing.map(({ names: [name] }) => name).join(" and ");
  const told = `${lacking} ${missing.length > 1 ? "are" : "is"} not installed`;
  if (isCi) throw new Error(`${told}, and with CI=true no test may be skipped.`);
  const skipped = missing.map(({ skipped }) => skipped).join(" and ");
  say(`${told}, so ${skipped} are skipped. On Debian: apt-get install --no-install-recommends ${wanted.join(" ")}`);
}

function aptInstall(packages) {
  say(`installing ${packages.join(", ")} with apt-get`);
  runApt("update", "-q");
  return runApt("install", "-y", "-q", "--no-install-recommends", ...packages);
}

function runApt(...args) {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  return spawnSync("apt-get", args, { stdio: ["ignore", "ignore", 2], env }).status === 0;
}

function isOnPath(name) {
  return (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, name)));
}

function say(sentence) {
  process.stderr.write(`setup: ${sentence}\n`);
}
