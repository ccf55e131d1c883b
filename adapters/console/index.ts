import { join } from "node:path";
import type { AdapterModule, PlatformVariables } from "../../src/port/module.ts";
import { choice, readVariables } from "../../src/port/variables.ts";

const VARIABLES: PlatformVariables = {
  schemas: { CONSOLE_CHAT: choice("off", "on").default("off") },
  entries: [
    {
      names: ["CONSOLE_CHAT"],
      meaning: "`on`: only a chat in the terminal, with data in `./data/console`; `npm run chat` sets it.",
    },
  ],
  secrets: [],
};

export const module: AdapterModule<{ isOn: true }> = {
  platform: "console",
  name: "Terminal",
  surface: "terminal",
  switches: ["CONSOLE_CHAT=on"],
  variables: VARIABLES,
  readConfig(given) {
    const { CONSOLE_CHAT: choice, ROLE = "all" } = given;
    const isOn = choice === "on";
    const what = `CONSOLE_CHAT needs ROLE=all, because the terminal's own process does the answering. ROLE is ${ROLE}.`;
    const conflicts = isOn && ROLE !== "all" ? [{ what }] : [];
    return readVariables(VARIABLES.schemas, given, () => (isOn ? { isOn } : undefined), conflicts);
  },
  async create(_, { dataDir, now, onEnd }) {
    const { createConsoleAdapter } = await import("./adapter.ts");
    const { stdin: input, stdout: output } = process;
    return { adapter: createConsoleAdapter({ input, output, filesDir: join(dataDir, "files"), now, onEnd }) };
  },
};
