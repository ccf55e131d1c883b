import { statSync } from "node:fs";
import type { Logger } from "pino";
import type { McpServerConfig, McpSettings } from "../config/mcp-servers.ts";
import type { Policy, PolicySettings } from "../config/policy/policy-file.ts";
import { createMcpServers, type McpServers } from "../mcp/servers.ts";
import type { TokenStore } from "../mcp/tokens.ts";

interface PolicyFileOptions {
  /** Undefined: there is no file, and nothing to follow. */
  path: string | undefined;
  /** As the file said at the start. */
  policy: Policy;
  read(): PolicySettings;
  log: Logger;
}

/** Holds the policy in force, and follows changes of its file. */
export function openPolicyFile({ path, policy, ...options }: PolicyFileOptions) {
  let inForce = policy;
  const onChange = (changed: PolicySettings) => {
    inForce = changed.policy;
  };
  const unfollow = path === undefined ? () => {} : followFile({ path, variable: "POLICY_FILE", onChange, ...options });
  return { current: () => inForce, close: unfollow };
}

interface McpFileOptions {
  path: string;
  /** As the file named them at the start. */
  servers: readonly McpServerConfig[];
  /** Problems of the servers that were left out at the start. */
  refused: readonly string[];
  read(): McpSettings;
  /** Keeps what authorization servers give out; absent: in memory only. */
  tokens?: TokenStore | undefined;
  log: Logger;
}

/** The tool servers that a file names, and follows what becomes of it. */
export function openMcpServers({ servers, refused, tokens, log, ...file }: McpFileOptions): McpServers {
  if (refused.length > 0) log.error({ path: file.path, problems: refused }, "servers of MCP_CONFIG are left out");
  const mcp = createMcpServers(servers, log, tokens);
  const unfollow = followFile({
    ...file,
    variable: "MCP_CONFIG",
    read: () => toWhole(file.read()),
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

/** A mistake in a changed file ends no running server. */
function toWhole({ servers, problems, refused }: McpSettings) {
  return { servers, problems: [...problems, ...refused] };
}

/** Milliseconds between two looks at the file. */
const LOOK_MS = 2_000;

interface FollowedFileOptions<T> {
  path: string;
  /** The variable that names the file, for the log. */
  variable: string;
  read(): T & { problems: readonly string[] };
  /** Told of each change that has no problem. */
  onChange(content: T): void;
  log: Logger;
}

/** Follows what becomes of a file of the configuration until the function it returns is called: a file with problems changes nothing. */
function followFile<T>({ path, variable, read, onChange, log }: FollowedFileOptions<T>): () => void {
  let seen = changedAt(path);
  let last = seen;
  function look(): void {
    const now = changedAt(path);
    // Half of a file may well be valid: it is read once nobody has written to it for a while.
    const isWritten = now === last;
    last = now;
    if (now === seen || !isWritten) return;
    seen = now;
    const content = read();
    if (content.problems.length > 0) {
      log.error(
        { path, problems: content.problems },
        `${variable} has changed and has problems; what was read before stays in force`,
      );
      return;
    }
    log.info({ path }, `${variable} has changed and is taken up`);
    onChange(content);
  }
  // By its clock and not by `fs.watch`, which loses files that are renamed into place and mounted volumes.
  const timer = setInterval(look, LOOK_MS).unref();
  return () => clearInterval(timer);
}

/** Unix milliseconds; undefined where there is no such file. */
function changedAt(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
}
