import type { ModuleList } from "./port/module.ts";

/** Every platform. A new one needs a line here and a folder with its module. */
export const PLATFORMS: ModuleList = {
  slack: () => import("../adapters/slack/index.ts"),
  discord: () => import("../adapters/discord/index.ts"),
  local: () => import("../adapters/local/index.ts"),
  console: () => import("../adapters/console/index.ts"),
};
