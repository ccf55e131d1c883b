import type { Logger } from "pino";
import type { Policy, PolicySettings } from "../config/policy/policy-file.ts";
import { followFile } from "./followed-file.ts";

export interface PolicyFileOptions {
  /** Undefined: there is no file, and nothing to follow. */
  path: string | undefined;
  /** As the file said at the start. */
  policy: Policy;
  read(): PolicySettings;
  log: Logger;
}

export interface PolicyFile {
  current(): Policy;
  close(): void;
}

/** Holds the policy in force, and follows changes of its file. */
export function openPolicyFile({ path, policy, ...options }: PolicyFileOptions): PolicyFile {
  let inForce = policy;
  const onChange = (changed: PolicySettings) => {
    inForce = changed.policy;
  };
  const unfollow = path === undefined ? () => {} : followFile({ path, variable: "POLICY_FILE", onChange, ...options });
  return { current: () => inForce, close: unfollow };
}
