import type { ModuleList } from "./port/module.ts";

/** To add a platform, add its folder and a line here. */
export const PLATFORMS: ModuleList = {
  slack: () => import("../adapters/slack/index.ts"),
  discord: () => import("../adapters/discord/index.ts"),
  local: () => import("../adapters/local/index.ts"),
  console: () => import("../adapters/console/index.ts"),
};
