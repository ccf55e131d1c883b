import { z } from "zod";
import type { PlatformVariables } from "../../src/port/module.ts";
import {
  type ConfigReading,
  choice,
  type GivenVariables,
  isLoopback,
  needsChars,
  readVariables,
} from "../../src/port/variables.ts";

const SCHEMAS = {
  LOCAL_CHAT: choice("auto", "on", "off").default("auto"),
  LOCAL_PASSWORD: z.string().min(8, needsChars(8)).optional(),
};

export const VARIABLES: PlatformVariables = {
  schemas: SCHEMAS,
  entries: [
    {
      names: ["LOCAL_CHAT"],
      meaning: "The page at `/`: `on`, `off`, or on while no other platform is configured (`auto`).",
    },
    {
      names: ["LOCAL_PASSWORD"],
      meaning:
        "The page's password, at least 8 characters; any user name works. Required unless only this machine can reach the page. Everyone who knows it sees the same chats.",
    },
  ],
  secrets: ["LOCAL_PASSWORD"],
};

export interface LocalConfig {
  password: string | undefined;
  /** True if no other platform is configured. The page then offers the setup. */
  isAlone: boolean;
}

export function readConfig(given: GivenVariables, isAlone: boolean): ConfigReading<LocalConfig> {
  const choice = given["LOCAL_CHAT"] ?? "auto";
  const isOn = choice === "on" || (choice === "auto" && isAlone);
  return readVariables(
    SCHEMAS,
    given,
    ({ LOCAL_PASSWORD: password }) => (isOn ? { password, isAlone } : undefined),
    isOn ? findConflicts(given).map((what) => ({ what })) : [],
  );
}

function findConflicts({ HOST = "127.0.0.1", LOCAL_PASSWORD: password, ROLE = "all" }: GivenVariables): string[] {
  const problems: string[] = [];
  if (!isLoopback(HOST) && !password) {
    problems.push(
      "HOST lets others reach the local page, which has no password: set LOCAL_PASSWORD, restrict the page to this machine with HOST=127.0.0.1, or switch it off with LOCAL_CHAT=off.",
    );
  }
  if (ROLE !== "all") {
    problems.push(`ROLE=${ROLE} has no local page: connect a platform and set LOCAL_CHAT=off, or set ROLE=all.`);
  }
  return problems;
}
