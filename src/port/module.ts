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
  /** The platform's id. Its event ids and its folder use the same name. */
  readonly platform: string;
  /** Its name, as people use it. */
  readonly name: string;
  /**
   * A surface of this process itself. A `page` is a chat at the process's own address. With a `terminal` no other
   * platform is connected, and the process has its own data and port.
   */
  readonly surface?: "page" | "terminal";
  /**
   * Each of these variables switches the platform on with any value; `NAME=value`: with that value only. The first is
   * the usual one.
   */
  readonly switches: readonly [string, ...string[]];
  readonly variables: PlatformVariables;
  /** `isAlone`: the variables switch on no platform. */
  readConfig(given: GivenVariables, isAlone: boolean): ConfigReading<Config>;
  /** Describes how it runs, for the log at the start: "Socket Mode, one workspace". Contains no secret. */
  describe?(config: Config): string;
  create(config: Config, host: Host): Promise<OpenPlatform>;
  /** Checks everything that it needs from the platform, for `npm run doctor`, without writing anything. */
  check?(config: Config, facts: CheckFacts, signal: AbortSignal): Promise<Finding[]>;
  /** The address to which the platform sends its events; undefined if the bot connects to the platform instead. */
  eventsAddress?(config: Config): EventsAddress | undefined;
  /** Origins of its files that are open to anyone with the link, if a stand-in replaces the platform. */
  fileOrigins?(config: Config): readonly string[];
  readonly setup?: PlatformSetup;
  /**
   * The forms of its tokens, which the log redacts. A first group stays readable. A lookbehind is valid only at the
   * start: it says what cannot precede a token in plain text.
   */
  readonly tokens?: readonly RegExp[];
  /** Shows how an answer looks there. */
  preview?(markdown: string): Promise<Preview>;
}

export interface PlatformVariables {
  readonly schemas: z.ZodRawShape;
  /** Every variable of `schemas`, in the order of the documentation. */
  readonly entries: readonly VariableEntry[];
  /** The variables whose values no log may show. */
  readonly secrets: readonly string[];
}

/** A platform that the configuration switches on. */
export interface ConfiguredPlatform {
  module: AdapterModule;
  config: unknown;
}

/** The parts of the core that an adapter can use. */
export interface Host extends AdapterOptions {
  botName: string;
  /** True if the gateway creates images. */
  canDraw: boolean;
  /** The sandbox answers instead of a real model. */
  isSandbox: boolean;
  readAbout: ReadAbout;
  findTurn: FindTurn;
  looking: Looking;
  /** Erases the conversations of a workspace, whose ids start with `prefix`. */
  eraseConversations(of: { platform: string; workspaceId: string; prefix: string }): Promise<unknown>;
  /** Opens a namespace of the store; its values do not expire. */
  open(namespace: string): Keyv;
  /** Runs one task of this name at a time among all processes. */
  inTurn<T>(name: string, task: (open: Host["open"]) => Promise<T>): Promise<T>;
  /** Divides numbered parts among all processes; absent: this process is the only one. */
  shareParts?: ((name: string) => SharedParts) | undefined;
  /** The number of processes at work, including this one. */
  processes(): number;
  /** The process's one database. The adapter never closes it. */
  database: DatabaseSync;
  dataDir: string;
  /** Signs the proof that a browser gave the password before. */
  browserKey: string;
  /** Marks the bot's messages, so that it finds them again. */
  markKey: string;
  /** Host names that browsers can use besides loopback ones, in lower case and without a port. */
  allowedHosts: readonly string[];
  adminPassword: string | undefined;
  /** The first run; absent if a platform is connected already. */
  setup: Setup | undefined;
  /** Shows how an answer looks on each platform that has a preview. */
  preview(markdown: string): Promise<Preview[]>;
  /** The person at the terminal ended the conversation. */
  onEnd(): void;
}

export interface OpenPlatform {
  adapter: Adapter;
  /** Routes for the one HTTP server. */
  mounts?: readonly Hono[];
  /** Shows a gateway problem to the operator; undefined: it is over. */
  showGateway?(problem: GatewayNotice | undefined): void;
}

/** The parts of the operator's policy that a check can use. */
export interface CheckFacts {
  /** Ids of groups and roles that its rules name. */
  namedGroups: readonly string[];
  /** The rules restrict who can use the bot. */
  hasRules: boolean;
}

/** An address below `PUBLIC_URL`, and a request like the platform's own. */
export interface EventsAddress {
  path: string;
  toRequest(): RequestInit;
  /** Part of the service's answer to that request. */
  expected: string;
}

/** The platform's step of the first run. */
export interface PlatformSetup {
  /** Variables that the step takes from the environment as they are. */
  given: readonly string[];
  toStep(how: { botName: string; publicUrl: string | undefined }): SetupStep;
}

export type ModuleList = Readonly<Record<string, () => Promise<{ module: AdapterModule }>>>;

export async function loadModules(modules: ModuleList): Promise<AdapterModule[]> {
  return Promise.all(Object.values(modules).map(async (load) => (await load()).module));
}

/** True if the variables ask for the platform, even if a variable is missing or wrong. */
export function isSwitchedOn({ switches }: Pick<AdapterModule, "switches">, given: GivenVariables): boolean {
  return switches.some((text) => {
    const [name = "", value] = text.split("=");
    return value === undefined ? given[name] !== undefined : given[name] === value;
  });
}
