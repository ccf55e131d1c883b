import { statSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import type { McpServerConfig, McpSettings } from "../config/mcp-servers.ts";
import type { Policy, PolicySettings } from "../config/policy/policy-file.ts";
import { SCOPES } from "../config/policy/quotas.ts";
import { createMcpServers, type McpServers } from "../mcp/servers.ts";
import type { TokenStore } from "../mcp/tokens.ts";
import { describeError } from "../port/errors.ts";

interface PolicyFileOptions {
  /** Undefined: there is no file to follow. */
  path: string | undefined;
  /** The policy that was read at the start. */
  policy: Policy;
  read(signal: AbortSignal): Promise<PolicySettings>;
  log: Logger;
}

/** Holds the current policy, and follows changes of its file. */
export function openPolicyFile({ path, policy, read, log }: PolicyFileOptions) {
  let inForce = policy;
  /** Parts that a change of the file has emptied since the start. */
  let lost: readonly string[] = [];
  let problems: readonly string[] = [];

  function take(changed: Policy): void {
    lost = LOSABLE.filter(({ has, name }) => !has(changed) && (has(inForce) || lost.includes(name))).map(
      ({ name }) => name,
    );
    inForce = changed;
    if (lost.length > 0)
      log.warn({ path, lost }, "POLICY_FILE has lost whole sections; it now allows what they forbade");
  }

  const unfollow =
    path === undefined
      ? () => {}
      : followFile({
          path,
          variable: "POLICY_FILE",
          initial: { policy, problems: [] },
          read,
          onChange: ({ policy: changed }) => take(changed),
          onProblems: (found) => {
            problems = found;
          },
          log,
        });
  const current = () => inForce;
  /** Sentences for administrators. */
  const warnings = () => [
    ...lost.map((part) => `The policy file has lost its ${part} since this process started.`),
    ...problems.map((problem) => `The previous policy is in effect: POLICY_FILE ${problem}.`),
  ];
  return { current, warnings, shown: { policy: current, policyWarnings: warnings }, close: unfollow };
}

/** Parts of the policy whose loss allows more than before. */
const LOSABLE: ReadonlyArray<{ name: string; has(policy: Policy): boolean }> = [
  { name: "rules", has: ({ access }) => (access?.rules ?? []).length > 0 },
  { name: "admins", has: ({ access }) => (access?.admins ?? []).length > 0 },
  { name: "quotas", has: ({ quotas = {} }) => SCOPES.some((scope) => Object.keys(quotas[scope] ?? {}).length > 0) },
  { name: "offered models", has: ({ models }) => (models?.offered ?? []).length > 0 },
];

interface McpFileOptions {
  path: string;
  /** The servers that the file named at the start. */
  servers: readonly McpServerConfig[];
  /** Problems of the servers that were left out at the start. */
  refused: readonly string[];
  read(): McpSettings;
  /** Stores what authorization servers issue; absent: in memory only. */
  tokens?: TokenStore | undefined;
  /** As in `ConnectionOptions`. */
  tokenForms: readonly RegExp[];
  log: Logger;
}

/** Connects the tool servers that a file names, and follows changes of the file. */
export function openMcpServers({ servers, refused, tokens, tokenForms, log, ...file }: McpFileOptions): McpServers {
  if (refused.length > 0) log.error({ path: file.path, problems: refused }, "servers of MCP_CONFIG are left out");
  const mcp = createMcpServers(servers, log, { tokens, tokenForms });
  const unfollow = followFile({
    path: file.path,
    variable: "MCP_CONFIG",
    initial: { servers, problems: refused },
    read: async () => toWhole(file.read()),
    onChange: ({ servers }) => mcp.update(servers),
    log,
  });
  return {
    ...mcp,
    close() {
      unfollow();
      return mcp.close();
    },
  };
}

/** Keeps the running servers if a changed file has a mistake. */
function toWhole({ servers, problems, refused }: McpSettings) {
  return { servers, problems: [...problems, ...refused] };
}

/** Milliseconds between two checks of the file. */
const LOOK_MS = 2_000;

interface FollowedFileOptions<T> {
  path: string;
  /** The variable that names the file, for the log. */
  variable: string;
  /** The content that was read at the start. */
  initial: T;
  read(signal: AbortSignal): Promise<T>;
  /** Called with each new content without problems. */
  onChange(content: T): void;
  /** Called with the problems of each new content; empty if it takes effect. */
  onProblems?(problems: readonly string[]): void;
  log: Logger;
}

/** Follows a configuration file until the returned function is called. Content with problems changes nothing. */
function followFile<T extends { problems: readonly string[] }>(options: FollowedFileOptions<T>): () => void {
  const { path, variable, initial, read, onChange, onProblems, log } = options;
  const closing = new AbortController();
  // The file can have changed since it was read at the start, so read it again.
  let content = initial;
  let seen: string | undefined;
  let last: string | undefined;
  let failed: string | undefined;
  let isReading = false;

  function take(read: T): void {
    if (isDeepStrictEqual(read, content)) return;
    content = read;
    onProblems?.(read.problems);
    if (read.problems.length > 0) {
      const words = `${variable} has changed and has problems; the previous content stays in effect`;
      log.error({ path, problems: read.problems }, words);
      return;
    }
    log.info({ path }, `${variable} has changed and is in effect`);
    onChange(read);
  }

  async function look(): Promise<void> {
    const now = toMark(path);
    // Half of a file can be valid, so read it only when it has not been written for a while.
    const isWritten = now === last;
    last = now;
    if (now === seen || !isWritten || isReading) return;
    isReading = true;
    try {
      const found = await read(closing.signal);
      // The file was replaced in the meantime, so the next check reads it.
      if (closing.signal.aborted || toMark(path) !== now) return;
      seen = now;
      take(found);
    } catch (err) {
      if (!closing.signal.aborted && failed !== now)
        log.error({ err, path }, `${variable} cannot be read at the moment`);
      failed = now;
    } finally {
      isReading = false;
    }
  }
  // Polls, because `fs.watch` misses files that are renamed into place and mounted volumes.
  const timer = setInterval(() => void look(), LOOK_MS).unref();
  return () => {
    clearInterval(timer);
    closing.abort();
  };
}

/** Changes with every change of the file, even if a file with the same time is moved or linked into its place. */
function toMark(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
  } catch (error) {
    return describeError(error);
  }
}
