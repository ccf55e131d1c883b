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
  /** Undefined if no file is configured. */
  path: string | undefined;
  policy: Policy;
  read(path: string, signal: AbortSignal): Promise<PolicySettings>;
  log: Logger;
}

/** Holds the current policy and updates it when its file changes. */
export function openPolicyFile({ path, policy, read, log }: PolicyFileOptions) {
  let inForce = policy;
  /** Sections that changes of the file have removed from the policy since the start. */
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
          read: (signal) => read(path, signal),
          onChange: ({ policy: changed }) => take(changed),
          onProblems: (found) => {
            problems = found;
          },
          log,
        });
  const current = () => inForce;
  /** Sentences for the operator. */
  const warnings = () => [
    ...lost.map((part) => `The policy file has lost its ${part} since this process started.`),
    ...problems.map((problem) => `The previous policy is in effect: POLICY_FILE ${problem}.`),
  ];
  return { current, warnings, shown: { policy: current, policyWarnings: warnings }, close: unfollow };
}

/** Sections of the policy that restrict people. Without such a section, people can do more. */
const LOSABLE: ReadonlyArray<{ name: string; has(policy: Policy): boolean }> = [
  { name: "rules", has: ({ access }) => (access?.rules ?? []).length > 0 },
  { name: "admins", has: ({ access }) => (access?.admins ?? []).length > 0 },
  { name: "quotas", has: ({ quotas = {} }) => SCOPES.some((scope) => Object.keys(quotas[scope] ?? {}).length > 0) },
  { name: "offered models", has: ({ models }) => (models?.offered ?? []).length > 0 },
];

interface McpFileOptions {
  path: string;
  servers: readonly McpServerConfig[];
  refused: readonly string[];
  read(): McpSettings;
  /** Stores the OAuth tokens. Absent: they are kept in memory. */
  tokens?: TokenStore | undefined;
  /** Patterns of the platforms' tokens, as in `ConnectionOptions`. */
  tokenForms: readonly RegExp[];
  log: Logger;
}

/** Connects the tool servers in a file, and reconnects them when the file changes. */
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

/** Treats a skipped server as a problem of the file, so that such a file stops no running server. */
function toWhole({ servers, problems, refused }: McpSettings) {
  return { servers, problems: [...problems, ...refused] };
}

const LOOK_MS = 2_000;

interface FollowedFileOptions<T> {
  path: string;
  /** Name of the environment variable with the path, for the log. */
  variable: string;
  initial: T;
  read(signal: AbortSignal): Promise<T>;
  onChange(content: T): void;
  /** Called after each change of the file, with the problems found. Without problems, the new version is used. */
  onProblems?(problems: readonly string[]): void;
  log: Logger;
}

/** Watches a configuration file until the returned function is called. Ignores a version with problems. */
function followFile<T extends { problems: readonly string[] }>(options: FollowedFileOptions<T>): () => void {
  const { path, variable, initial, read, onChange, onProblems, log } = options;
  const closing = new AbortController();
  // The file may have changed since it was read at the start, so read it again.
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
    // A half-written file can be valid, so wait until the file has stopped changing.
    const isWritten = now === last;
    last = now;
    if (now === seen || !isWritten || isReading) return;
    isReading = true;
    try {
      const found = await read(closing.signal);
      // The file changed while it was read, so the next check reads it again.
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
  // Polls, because `fs.watch` misses renames and changes in mounted volumes.
  const timer = setInterval(() => void look(), LOOK_MS).unref();
  return () => {
    clearInterval(timer);
    closing.abort();
  };
}

/**
 * Returns a value that differs for each version of the file, even if a file with the same modification time replaces
 * it.
 */
function toMark(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
  } catch (error) {
    return describeError(error);
  }
}
