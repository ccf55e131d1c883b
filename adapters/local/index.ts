import type { AdapterModule } from "../../src/port/module.ts";
import { type LocalConfig, readConfig, VARIABLES } from "./config.ts";
import { PLATFORM } from "./ids.ts";

/** Offered while the sandbox gateway answers, because only the sandbox can fail on request. */
const FAILURE_EXAMPLE = { label: "See a failure", prompt: "sandbox fault: cut" };

export const module: AdapterModule<LocalConfig> = {
  platform: PLATFORM,
  name: "Local page",
  surface: "page",
  switches: ["LOCAL_CHAT=on"],
  variables: VARIABLES,
  readConfig,
  describe: ({ password }) => (password === undefined ? "" : "with a password"),
  async create({ password }, host) {
    const [{ createLocalAdapter }, { EXAMPLES }] = await Promise.all([import("./adapter.ts"), import("./options.ts")]);
    const adapter = createLocalAdapter({
      ...host,
      password,
      examples: host.isSandbox ? [...EXAMPLES, FAILURE_EXAMPLE] : EXAMPLES,
      imagine: host.canDraw ? host.imagine : undefined,
    });
    return { adapter, mounts: [adapter.app], showGateway: adapter.showGateway };
  },
};
