import type { DatabaseSync } from "node:sqlite";
import type { Hono } from "hono";
import type { Keyv } from "keyv";
import type { z } from "zod";
import type { Adapter, AdapterOptions } from "./adapter.ts";
import type { FindTurn, GatewayNotice, Looking, Preview, ReadAbout } from "./catalogue.ts";
import type { Finding } from "./finding.ts";
import type { Setup, SetupStep } from "./setup.ts";
import type { SharedParts } from "./shares.ts";
import type { ConfigReading, GivenVariables, VariableEntry } from "./variables.ts";

/**
 * Everything that the core knows about a platform: the export `module` of `adapters/<platform>/index.ts`. Every process
 * loads all modules, so a module imports its adapter and its SDK only inside the functions that need them.
 */
export interface AdapterModule<Config = unknown> {
  /** The platform's id. Its event ids start with it, and its folder has the same name. */
  readonly platform: string;
  /** The platform's name, as people use it. */
  readonly name: string;
  /**
   * Set if the chat runs in this process itself. A `page` is at the process's own address. A `terminal` excludes all
   * other platforms, and its process has its own data and port.
   */
  readonly surface?: "page" | "terminal";
  /** Each of these variables switches the platform on; `NAME=value` requires that value. Most people set the first. */
  readonly switches: readonly [string, ...string[]];
  readonly variables: PlatformVariables;
  /**
   * Reads the variables into a configuration, or returns all problems at once; neither if the platform is off.
   * `isAlone` is true if the variables switch on no other platform.
   */
  readConfig(given: GivenVariables, isAlone: boolean): ConfigReading<Config>;
  /** Describes the connection at the start of the log, such as "Socket Mode, one workspace". Contains no secret. */
  describe?(config: Config): string;
  /** Creates the adapter, also in a process that only answers. Receives no events yet: `Adapter.listen` starts that. */
  create(config: Config, host: Host): Promise<OpenPlatform>;
  /** Checks everything that the bot needs from the platform, for `npm run doctor`. Writes nothing. */
  check?(config: Config, facts: CheckFacts, signal: AbortSignal): Promise<Finding[]>;
  /** The address to which the platform sends its events. Undefined if the bot connects to the platform instead. */
  eventsAddress?(config: Config): EventsAddress | undefined;
  /** Origins from which anyone with a link can load the platform's files. Only for a simulator of the platform. */
  fileOrigins?(config: Config): readonly string[];
  /** The platform's step in the setup guide. */
  readonly setup?: PlatformSetup;
  /**
   * Patterns of the platform's tokens. The log redacts a match, except for its first group. A pattern can start with a
   * lookbehind that excludes characters before a token in plain text.
   */
  readonly tokens?: readonly RegExp[];
  /** Shows how an answer looks on the platform, without connecting to it. */
  preview?(markdown: string): Promise<Preview>;
}

export interface PlatformVariables {
  readonly schemas: z.ZodRawShape;
  /** Every variable of `schemas`, in the order of the documentation. */
  readonly entries: readonly VariableEntry[];
  /** The variables whose values the log must not show. */
  readonly secrets: readonly string[];
}

export interface ConfiguredPlatform {
  module: AdapterModule;
  config: unknown;
}

/** The parts of the core that an adapter can use. */
export interface Host extends AdapterOptions {
  botName: string;
  canDraw: boolean;
  /** True if the sandbox answers instead of a real model. */
  isSandbox: boolean;
  readAbout: ReadAbout;
  findTurn: FindTurn;
  looking: Looking;
  /** Erases the conversations of a workspace: all whose ids start with `prefix`. */
  eraseConversations(of: { platform: string; workspaceId: string; prefix: string }): Promise<unknown>;
  /** Opens a namespace of the store; its values do not expire. */
  open(namespace: string): Keyv;
  /** Runs the task while no other process runs a task of the same name. */
  inTurn<T>(name: string, task: (open: Host["open"]) => Promise<T>): Promise<T>;
  /** Divides numbered parts among all processes. Absent if there is only one process. */
  shareParts?: ((name: string) => SharedParts) | undefined;
  processes(): number;
  /** The process's only database. The adapter never closes it. */
  database: DatabaseSync;
  dataDir: string;
  /** The key that signs the cookie of a browser that gave the right password. */
  browserKey: string;
  /** The key that marks the bot's messages, so that the bot can recognize its own messages later. */
  markKey: string;
  /** Host names, besides loopback names, that browsers can use. Lower case, without a port. */
  allowedHosts: readonly string[];
  adminPassword: string | undefined;
  /** The setup guide; absent once a platform is connected. */
  setup: Setup | undefined;
  /** Shows how an answer looks on each platform that has a preview. */
  preview(markdown: string): Promise<Preview[]>;
  /** Called when the person at the terminal ends the conversation. */
  onEnd(): void;
}

export interface OpenPlatform {
  adapter: Adapter;
  /** The platform's HTTP routes, for processes that receive events. */
  mounts?: readonly Hono[];
  /** Shows a gateway problem to the operator. Undefined: the problem is solved. */
  showGateway?(problem: GatewayNotice | undefined): void;
}

/** The parts of the operator's policy that a check can use. */
export interface CheckFacts {
  /** The ids of the groups and roles that the policy's rules name. */
  namedGroups: readonly string[];
  /** True if rules restrict who can use the bot. */
  hasRules: boolean;
}

/** An address below `PUBLIC_URL`, and a test request like those that the platform sends. */
export interface EventsAddress {
  path: string;
  toRequest(): RequestInit;
  /** Text that the service's answer to the test request must contain. */
  expected: string;
}

export interface PlatformSetup {
  /** Variables that the step takes unchanged from the environment. */
  given: readonly string[];
  toStep(how: { botName: string; publicUrl: string | undefined }): SetupStep;
}

export type ModuleList = Readonly<Record<string, () => Promise<{ module: AdapterModule }>>>;

export async function loadModules(modules: ModuleList): Promise<AdapterModule[]> {
  return Promise.all(Object.values(modules).map(async (load) => (await load()).module));
}

/** True if the variables switch the platform on, even if one of its variables is missing or wrong. */
export function isSwitchedOn({ switches }: Pick<AdapterModule, "switches">, given: GivenVariables): boolean {
  return switches.some((text) => {
    const [name = "", value] = text.split("=");
    return value === undefined ? given[name] !== undefined : given[name] === value;
  });
}
