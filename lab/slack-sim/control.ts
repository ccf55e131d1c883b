import type { ApiRequest, Novelty, Streaming } from "./api.ts";
import type { StatusChange } from "./assistant.ts";
import type { AttemptResult, Delivery } from "./delivery.ts";
import type { Delay, Fault } from "./faults.ts";
import { createHttpDelivery } from "./http-delivery.ts";
import { addChannel } from "./methods/conversations.ts";
import type { OAuth } from "./oauth.ts";
import { createPerson, type Person } from "./people.ts";
import { shownText } from "./shown-text.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "./simulator.ts";
import type { DisconnectOptions, DisconnectReason } from "./socket-mode.ts";
import type { View } from "./views.ts";
import type { Violation, ViolationKind } from "./violations.ts";
import type { Ping } from "./watchdog.ts";
import { addUser, addWorkspace, revokeToken, type UserOptions } from "./workspaces.ts";
import {
  type Channel,
  type ChannelKind,
  type Ephemeral,
  isOfApp,
  type Message,
  type RevokedReason,
  threadOf,
  type Workspace,
} from "./world.ts";

export interface ChannelOptions {
  name: string;
  kind?: Exclude<ChannelKind, "im">;
  members?: readonly Person[];
  /** The app is a member; true by default. */
  hasApp?: boolean;
  isShared?: boolean;
  isArchived?: boolean;
  workspace?: Workspace;
}

/**
 * Slack as a test sees it: what people do (`Person`), what the app did (`messages`, `requests`, `deliveries`), what
 * goes wrong (`failNext` and its neighbours), and what the app must not do (`violations`).
 */
export interface Slack {
  /** For `SLACK_API_URL`. */
  readonly apiUrl: string;
  readonly authorizeUrl: string;
  readonly botToken: string;
  readonly appToken: string;
  readonly signingSecret: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** The workspace that is there from the start. */
  readonly workspace: Workspace;
  readonly oauth: OAuth;

  addWorkspace(name: string, scopes?: readonly string[]): Workspace;
  user(options: UserOptions & { workspace?: Workspace }): Person;
  channel(options: ChannelOptions): Channel;

  /**
   * Delivers by signed POSTs to this URL from here on; undefined goes back to Socket Mode. An event that fails comes
   * again at once, after a minute and after five more of Slack's time: see `advance`.
   */
  deliverTo(url: string | undefined): void;
  deliveryUrl(): string | undefined;
  /** Moves Slack's time: rate limits, streams, triggers, response URLs, retries. Waits for the app stay real. */
  advance(ms: number): void;
  now(): number;

  /** Messages of a channel, or of the thread that has this root; oldest first. */
  messages(channel: Channel, thread?: Message | string): Message[];
  /** What the app says there. */
  answers(channel: Channel, thread?: Message | string): Message[];
  /** What people read there of the app. */
  texts(channel: Channel, thread?: Message | string): string[];
  ephemerals(channel: Channel, userId?: string): readonly Ephemeral[];
  /** The status shown under a thread; "" for none. */
  status(channel: Channel, thread: Message | string): string;
  statuses(channel: Channel, thread: Message | string): readonly StatusChange[];
  readonly assistant: Simulator["assistant"];
  readonly pings: readonly Ping[];
  readonly requests: readonly ApiRequest[];
  readonly deliveries: readonly Delivery[];
  readonly violations: readonly Violation[];
  /** The modal a person has in front. */
  view(person: Person): View | undefined;
  home(person: Person): View | undefined;
  connections(): number;
  /** Resolves when nothing that the app was told waits for its acknowledgement. Bounded as `until` is. */
  acknowledged(): Promise<void>;
  /** See `Changes.until`. */
  until<T>(predicate: () => T | undefined | false, what?: string, silenceMs?: number): Promise<T>;

  failNext(method: string, fault: Fault, times?: number): void;
  slow(method: string, delayMs: Delay): void;
  setStreaming(streaming: Streaming): void;
  /** From here on calls that bring one of these are refused. */
  setUnknown(...novelties: Novelty[]): void;
  /** From here on no message is changed: `chat.update` is refused so. Undefined ends that. */
  setSealed(error: string | undefined): void;
  /** Delivers once more what the app was told of a message, or one delivery. */
  redeliver(what: Message | Delivery): Promise<AttemptResult[]>;
  /** Keeps back what is told to the app until the returned function is called: then all of it goes, in this order. */
  hold(): (order?: "as-told" | "reversed") => void;
  disconnect(reason: DisconnectReason, options?: DisconnectOptions): void;
  dropConnections(): void;
  revoke(reason?: RevokedReason, options?: { isTold?: boolean; workspace?: Workspace }): void;
  /** Tells the app that Slack dropped deliveries: an envelope without an event inside. */
  reachEventLimit(): Delivery;
  /** Private files show the login page behind a redirect. */
  redirectToLogin(isOn: boolean): void;

  /** Violations of these kinds are expected in this test. */
  allow(...kinds: ViolationKind[]): void;
  assertClean(options?: { allow?: readonly ViolationKind[] }): void;
  close(): Promise<void>;
}

/** Starts a Slack that belongs to the caller. */
export async function openSlack(options: SimulatorOptions = {}): Promise<Slack> {
  const simulator = await startSimulator(options);
  const { core, state, socketMode, dispatcher, assistant, watchdog, views, faults, api, files, oauth } = simulator;
  const workspace = addWorkspace(core, "Acme");
  const rootOf = (thread: Message | string) => (typeof thread === "string" ? thread : threadOf(thread));
  const home = (userId: string) => views.home(userId);
  let deliveryUrl: string | undefined;

  function messages({ messages }: Channel, thread?: Message | string): Message[] {
    const all = [...messages.values()];
    return thread === undefined ? all : all.filter((message) => threadOf(message) === rootOf(thread));
  }

  function answers(channel: Channel, thread?: Message | string): Message[] {
    return messages(channel, thread).filter(isOfApp);
  }

  return {
    apiUrl: `${core.origin()}/api/`,
    authorizeUrl: `${core.origin()}/oauth/v2/authorize`,
    botToken: workspace.botToken,
    appToken: core.app.appToken,
    signingSecret: core.app.signingSecret,
    clientId: core.app.clientId,
    clientSecret: core.app.clientSecret,
    workspace,
    oauth,
    addWorkspace: (name, scopes) => addWorkspace(core, name, scopes),
    user: ({ workspace: home_ = workspace, ...user }) =>
      createPerson(addUser(core, home_, user), { ...simulator, home }),
    channel({ name, kind = "public", members = [], hasApp = true, isShared = false, isArchived = false, ...rest }) {
      const place = rest.workspace ?? workspace;
      const ids = [...members.map(({ id }) => id), ...(hasApp ? [place.bot.id] : [])];
      return Object.assign(addChannel(core, place, { kind, name, members: ids }), { isShared, isArchived });
    },
    deliverTo(url) {
      const { signingSecret } = core.app;
      deliveryUrl = url;
      state.transport =
        url === undefined ? undefined : createHttpDelivery({ url, signingSecret, ackMs: core.limits.ackMs });
    },
    deliveryUrl: () => deliveryUrl,
    advance: core.clock.advance,
    now: core.clock.now,
    messages,
    answers,
    texts: (channel, thread) => answers(channel, thread).map(({ content }) => shownText(content)),
    ephemerals: ({ ephemerals }, userId) => ephemerals.filter((one) => userId === undefined || one.userId === userId),
    status: (channel, thread) => assistant.status(channel, rootOf(thread)),
    statuses: ({ id }, thread) =>
      assistant.statuses.filter(({ channelId, threadTs }) => channelId === id && threadTs === rootOf(thread)),
    assistant,
    pings: watchdog.pings,
    requests: api.requests,
    deliveries: dispatcher.deliveries,
    violations: core.violations.all,
    view: ({ id }) => views.top(id),
    home: ({ id }) => views.home(id),
    connections: socketMode.connections,
    async acknowledged() {
      const areSettled = () => dispatcher.deliveries.every(({ isSettled }) => isSettled);
      await core.changes.until(areSettled, "every delivery to be acknowledged or given up");
    },
    until: core.changes.until,
    failNext: faults.failNext,
    slow: faults.slow,
    setStreaming(streaming) {
      state.streaming = streaming;
    },
    setUnknown(...novelties) {
      state.unknown = new Set(novelties);
    },
    setSealed(error) {
      state.sealed = error;
    },
    redeliver: (what) => Promise.all(("deliveries" in what ? what.deliveries : [what]).map(dispatcher.repeat)),
    hold: dispatcher.hold,
    disconnect: socketMode.disconnect,
    dropConnections: socketMode.drop,
    revoke: (reason = "token_revoked", { isTold = false, workspace: place = workspace } = {}) =>
      revokeToken(core, place, reason, { isTold }),
    reachEventLimit: () => simulator.appEvents.limitReached(workspace),
    redirectToLogin: files.redirectToLogin,
    allow: core.violations.allow,
    assertClean(options) {
      watchdog.ended(core.workspaces.values());
      core.violations.assertClean(options);
    },
    close: simulator.close,
  };
}
