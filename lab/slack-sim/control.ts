import type { ApiRequest, Novelty, Streaming } from "./api.ts";
import type { StatusChange } from "./assistant.ts";
import type { AttemptResult, Delivery } from "./delivery.ts";
import type { Delay, Fault } from "./faults.ts";
import { createHttpDelivery } from "./http-delivery.ts";
import { addChannel } from "./methods/conversations.ts";
import type { SearchIndex } from "./methods/search.ts";
import type { OAuth } from "./oauth.ts";
import { createPerson, type Person } from "./people.ts";
import { shownText } from "./shown-text.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "./simulator.ts";
import type { DisconnectOptions, DisconnectReason } from "./socket-mode.ts";
import type { View } from "./views.ts";
import type { Violation, ViolationKind } from "./violations.ts";
import type { Ping } from "./watchdog.ts";
import {
  addOrganisation,
  addUser,
  addWorkspace,
  revokeToken,
  type UserOptions,
  uninstallFrom,
  withdrawFrom,
} from "./workspaces.ts";
import {
  type Channel,
  type ChannelKind,
  type Ephemeral,
  isOfApp,
  type Message,
  type Organisation,
  type RevokedReason,
  threadOf,
  type Workspace,
} from "./world.ts";

export interface ChannelOptions {
  name: string;
  kind?: Exclude<ChannelKind, "im">;
  members?: readonly Person[];
  /** True if the app is a member; default: true. */
  hasApp?: boolean;
  isShared?: boolean;
  isOrgShared?: boolean;
  isArchived?: boolean;
  workspace?: Workspace;
}

/**
 * Slack for tests. `Person` does what people do. `messages`, `requests` and `deliveries` show what the app did.
 * `failNext` and similar methods cause faults. `violations` lists the rules that the app broke.
 */
export interface Slack {
  /** The value for `SLACK_API_URL`. */
  readonly apiUrl: string;
  readonly authorizeUrl: string;
  readonly botToken: string;
  readonly appToken: string;
  readonly signingSecret: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** The default workspace. */
  readonly workspace: Workspace;
  readonly oauth: OAuth;

  /** With `organisation`, that organisation has installed the app; otherwise the workspace itself has. */
  addWorkspace(name: string, scopes?: readonly string[], organisation?: Organisation): Workspace;
  addOrganisation(name: string): Organisation;
  user(options: UserOptions & { workspace?: Workspace }): Person;
  channel(options: ChannelOptions): Channel;

  /**
   * Delivers all further events as signed POSTs to this URL; undefined returns to Socket Mode. Slack retries a failed
   * event immediately, after one minute, and after five more minutes of Slack's time, see `advance`.
   */
  deliverTo(url: string | undefined): void;
  deliveryUrl(): string | undefined;
  /**
   * Moves Slack's time for rate limits, streams, triggers, response URLs and retries. Slack still waits for the app in
   * real time.
   */
  advance(ms: number): void;
  now(): number;

  /** Messages in a channel, or in the thread with this root, oldest first. */
  messages(channel: Channel, thread?: Message | string): Message[];
  /** Like `messages`, but only the app's. */
  answers(channel: Channel, thread?: Message | string): Message[];
  /** The texts of the app's messages, as people read them. */
  texts(channel: Channel, thread?: Message | string): string[];
  ephemerals(channel: Channel, userId?: string): readonly Ephemeral[];
  /** The status below a thread; "" without one. */
  status(channel: Channel, thread: Message | string): string;
  statuses(channel: Channel, thread: Message | string): readonly StatusChange[];
  readonly assistant: Simulator["assistant"];
  readonly pings: readonly Ping[];
  readonly requests: readonly ApiRequest[];
  readonly deliveries: readonly Delivery[];
  readonly violations: readonly Violation[];
  view(person: Person): View | undefined;
  home(person: Person): View | undefined;
  connections(): number;
  /** Resolves when the app has acknowledged all deliveries. Rejects if nothing changes for too long, like `until`. */
  acknowledged(): Promise<void>;
  /** See `Changes.until`. */
  until<T>(predicate: () => T | undefined | false, what?: string, silenceMs?: number): Promise<T>;

  failNext(method: string, fault: Fault, times?: number): void;
  slow(method: string, delayMs: Delay): void;
  setStreaming(streaming: Streaming): void;
  /** Refuses all further calls that use one of these features. */
  setUnknown(...novelties: Novelty[]): void;
  /** Makes every further `chat.update` fail with this error. Undefined lets them succeed again. */
  setSealed(error: string | undefined): void;
  /** Repeats one delivery, or all events of a message. */
  redeliver(what: Message | Delivery): Promise<AttemptResult[]>;
  /** Holds deliveries back. The returned function sends them in the given order. */
  hold(): (order?: "as-told" | "reversed") => void;
  disconnect(reason: DisconnectReason, options?: DisconnectOptions): void;
  dropConnections(): void;
  revoke(reason?: RevokedReason, options?: { isTold?: boolean; workspace?: Workspace }): void;
  /** Uninstalls the app from a whole organisation. */
  uninstallFrom(organisation: Organisation): void;
  /** Removes the app from one workspace of its organisation. */
  withdrawFrom(workspace: Workspace): void;
  /** Sends an envelope that contains no event and says that Slack dropped deliveries. */
  reachEventLimit(): Delivery;
  /**
   * Sets the state of the search index. A `behind` index hasn't caught up with permission changes, so searches return
   * messages from every channel; a `current` one returns only what it should.
   */
  setSearchIndex(index: SearchIndex): void;
  /** While on, a private file redirects to the login page. */
  redirectToLogin(isOn: boolean): void;

  /** Declares that this test expects violations of these kinds. */
  allow(...kinds: ViolationKind[]): void;
  assertClean(options?: { allow?: readonly ViolationKind[] }): void;
  close(): Promise<void>;
}

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
    addWorkspace: (name, scopes, organisation) => addWorkspace(core, name, scopes, organisation),
    addOrganisation: (name) => addOrganisation(core, name),
    user: ({ workspace: home_ = workspace, ...user }) =>
      createPerson(addUser(core, home_, user), { ...simulator, home }),
    channel({
      name,
      kind = "public",
      members = [],
      hasApp = true,
      isShared = false,
      isOrgShared = false,
      isArchived = false,
      ...rest
    }) {
      const place = rest.workspace ?? workspace;
      const ids = [...members.map(({ id }) => id), ...(hasApp ? [place.bot.id] : [])];
      return Object.assign(addChannel(core, place, { kind, name, members: ids }), {
        isShared,
        isOrgShared,
        isArchived,
      });
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
    uninstallFrom: (organisation) => uninstallFrom(core, organisation),
    withdrawFrom: (workspace) => withdrawFrom(core, workspace),
    reachEventLimit: () => simulator.appEvents.limitReached(workspace),
    setSearchIndex: simulator.search.setIndex,
    redirectToLogin: files.redirectToLogin,
    allow: core.violations.allow,
    assertClean(options) {
      watchdog.ended(core.workspaces.values());
      core.violations.assertClean(options);
    },
    close: simulator.close,
  };
}
