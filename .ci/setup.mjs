// Runs on whatever Node the machine has, before anything is installed: plain JavaScript, nothing imported but Node.
// `node .ci/setup.mjs [start|test]`: `start` is content without the development packages, `test` also looks for
// the programs that some tests talk to.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const LOCK_WAIT_MS = 10 * 60_000;
const LOCK_POLL_MS = 200;
const EMPTY_LOCK_MS = 5000;
const PROGRAMS = [
  { names: ["redis-server"], packages: ["redis-server"], skipped: "the tests of Redis" },
  {
    names: ["chromium", "chromium-headless-shell"],
    // What draws no window needs two thirds of the processor time.
    packages: ["chromium-headless-shell", "fonts-noto-cjk"],
    skipped: "the tests in a browser",
  },
  { names: ["promtool"], packages: ["prometheus"], skipped: "the check of the alerts" },
];

const purpose = process.argv[2] ?? "everything";
try {
  if (Number.parseInt(process.versions.node, 10) < 20) {
    throw new Error(`Palaver needs Node 20 or later to set itself up; this is Node ${process.versions.node}.`);
  }
  await installPackages();
  if (purpose === "test") installPrograms();
} catch (error) {
  say(error.message);
  process.exitCode = 1;
}

async function installPackages() {
  if (describeMissing() === undefined) return;
  const unlock = await lock();
  try {
    // Whoever held the lock before may have done the work.
    const reason = describeMissing();
    if (reason === undefined) return;
    say(`${reason}, installing the packages of package-lock.json into node_modules`);
    runNpm([
      "ci",
      "--ignore-scripts",
      "--include=dev",
      "--include=optional",
      "--no-audit",
      "--no-fund",
      "--loglevel=error",
    ]);
    const still = describeMissing();
    if (still !== undefined) throw new Error(`npm ci ended well, and yet ${still}. Is package-lock.json in order?`);
  } finally {
    unlock();
  }
}

/** Compares what npm says it installed with what is asked for; undefined when nothing is to do. */
function describeMissing() {
  const wanted = readPackages(join(ROOT, "package-lock.json"));
  if (wanted === undefined) throw new Error("package-lock.json is missing or unreadable: check it out again.");
  const installed = readPackages(join(ROOT, "node_modules", ".package-lock.json"));
  if (installed === undefined) return "nothing is installed";

  for (const [path, { version, integrity, optional, dev, devOptional }] of Object.entries(wanted)) {
    const found = installed[path];
    const needless = optional || devOptional || (dev && purpose === "start");
    if (found === undefined && (path === "" || needless)) continue;
    if (found?.version !== version || found?.integrity !== integrity) return "package-lock.json has changed";
  }
  const foreign = Object.values(installed).some(
    ({ os, cpu }) => !admits(os, process.platform) || !admits(cpu, process.arch),
  );
  return foreign ? "node_modules is of another kind of machine" : undefined;
}

function readPackages(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8")).packages;
  } catch {
    return undefined;
  }
}

/** `list` as in package.json: names, or names to be left out. */
function admits(list, name) {
  if (list === undefined) return true;
  const names = [list].flat();
  return names.includes(name) || names.every((entry) => entry.startsWith("!") && entry !== `!${name}`);
}

function runNpm(args) {
  const { npm_execpath: npm, npm_node_execpath: node } = process.env;
  // The Node that runs npm, not the one in node_modules: that one is about to be replaced.
  const direct = npm?.endsWith(".js") && node !== undefined && !node.startsWith(join(ROOT, "node_modules"));
  const [command, before] = direct ? [node, [npm]] : ["npm", []];
  const result = spawnSync(command, [...before, ...args], {
    cwd: ROOT,
    stdio: ["ignore", 2, 2],
    shell: !direct && process.platform === "win32",
  });
  if (result.error) throw new Error(`npm could not be started: ${result.error.message}`);
  if (result.status !== 0) throw new Error("npm ci failed, its words are above. Is the package registry reachable?");
}

/** One setup at a time per folder; resolves to what gives the lock back. The lock of a process that died is taken over. */
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
    if (!told) say("waiting for another setup of this folder to end");
    told = true;
    await sleep(LOCK_POLL_MS);
  }
  throw new Error(`another setup of this folder has not ended for ten minutes. If there is none, remove ${path}.`);
}

/** Whether the process that wrote the lock is gone, or has left it empty. */
function isAbandoned(path) {
  try {
    const holder = Number.parseInt(readFileSync(path, "utf8"), 10);
    return Number.isNaN(holder) ? Date.now() - statSync(path).mtimeMs > EMPTY_LOCK_MS : !isAlive(holder);
  } catch {
    // It was given back between the two looks.
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

function installPrograms() {
  const missing = PROGRAMS.filter(({ names }) => !names.some(isOnPath));
  if (missing.length === 0) return;
  const wanted = missing.flatMap(({ packages }) => packages);
  const canInstall = existsSync("/etc/debian_version") && process.getuid?.() === 0 && isOnPath("apt-get");
  if (canInstall && aptInstall(wanted)) return;
  const lacking = missing.map(({ names: [name] }) => name).join(" and ");
  const told = `${lacking} ${missing.length > 1 ? "are" : "is"} not installed`;
  if (process.env.CI === "true") throw new Error(`${told}, and with CI=true no test may be skipped.`);
  say(`${told}; ${missing.map(({ skipped }) => skipped).join(" and ")} will be skipped`);
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
