import type { Core } from "./core.ts";
import type { Dispatcher } from "./delivery.ts";
import { messageToWire } from "./message-wire.ts";
import { viewToWire } from "./methods/views.ts";
import type { ResponsePlace, ResponseUrls } from "./response-urls.ts";
import { listOf, textOf } from "./shown-text.ts";
import type { View, Views } from "./views.ts";
import { TOP_LEVEL, type Watchdog } from "./watchdog.ts";
import { type Channel, type Ephemeral, type Json, type Message, threadOf, type User } from "./world.ts";

export interface Interaction {
  /** If false, Slack tells the person that the app did not respond (`operation_timeout`). */
  isAcknowledged: boolean;
  response: unknown;
}

export interface ButtonPress {
  user: User;
  message: Message | Ephemeral;
  actionId: string;
  /** The pressed button of a feedback element. */
  button?: "positive_button" | "negative_button";
}

export interface InteractionsDeps {
  dispatcher: Dispatcher;
  views: Views;
  urls: ResponseUrls;
  watchdog: Watchdog;
}

/** Sends commands, button presses, shortcuts and forms to the app immediately. Slack never retries them. */
export function createInteractions(core: Core, { dispatcher, views, urls, watchdog }: InteractionsDeps) {
  async function deliver(type: "slash_commands" | "interactive", name: string, payload: Json, place?: ResponsePlace) {
    const { isAcknowledged, response } = await dispatcher.deliver(type, name, payload).outcome;
    if (isSpoken(response) && place !== undefined) urls.show(place, response);
    return { isAcknowledged, response };
  }

  function envelope(type: string, user: User): Json {
    const { workspace } = user;
    const { organisation } = workspace;
    return {
      type,
      token: "verification-token",
      action_ts: core.newTs(),
      // If an organisation installed the app, the payload has no team.
      team: organisation === undefined ? { id: workspace.id, domain: workspace.name.toLowerCase() } : null,
      user: { id: user.id, username: user.name.toLowerCase(), name: user.name.toLowerCase(), team_id: workspace.id },
      api_app_id: core.app.id,
      is_enterprise_install: organisation !== undefined,
      enterprise: organisation === undefined ? null : { id: organisation.id, name: organisation.name },
      trigger_id: views.newTrigger(user.id),
    };
  }

  return {
    command(user: User, channel: Channel, command: string, text: string): Promise<Interaction> {
      const { workspace } = user;
      const place = { channel, user, threadTs: undefined, message: undefined };
      watchdog.triggered(channel, TOP_LEVEL);
      const payload = {
        token: "verification-token",
        team_id: workspace.id,
        team_domain: workspace.name.toLowerCase(),
        channel_id: channel.id,
        channel_name: channel.kind === "im" ? "directmessage" : channel.name,
        user_id: user.id,
        user_name: user.name.toLowerCase(),
        command,
        text: escapeWords(text),
        api_app_id: core.app.id,
        ...(workspace.organisation && {
          enterprise_id: workspace.organisation.id,
          enterprise_name: workspace.organisation.name,
        }),
        is_enterprise_install: String(workspace.organisation !== undefined),
        response_url: urls.create(place),
        trigger_id: views.newTrigger(user.id),
      };
      return deliver("slash_commands", command, payload, place);
    },

    press({ user, message, actionId, button }: ButtonPress): Promise<Interaction> {
      const isMessage = "states" in message;
      const { channel, ts, threadTs } = message;
      const found = buttonOf(message, actionId);
      watchdog.triggered(channel, threadTs ?? (isMessage ? ts : TOP_LEVEL));
      const shown = isMessage ? { message } : { message: undefined, ephemeral: message };
      const place = { channel, user, threadTs, ...shown };
      const container = {
        type: "message",
        message_ts: ts,
        channel_id: channel.id,
        is_ephemeral: !isMessage,
        thread_ts: threadTs,
      };
      const payload = {
        ...envelope("block_actions", user),
        container,
        channel: { id: channel.id, name: channel.name },
        // For an ephemeral message, the app gets the location but not the content.
        ...(isMessage ? { message: messageToWire(message, core.origin()) } : {}),
        state: { values: {} },
        response_url: urls.create(place),
        actions: [{ ...toPressed(found.element, button), block_id: found.blockId, action_ts: core.newTs() }],
      };
      return deliver("interactive", "block_actions", payload, place);
    },

    messageShortcut(user: User, message: Message, callbackId: string): Promise<Interaction> {
      const { channel, ts, threadTs } = message;
      const place = { channel, user, threadTs, message: undefined };
      watchdog.triggered(channel, threadOf(message));
      const payload = {
        ...envelope("message_action", user),
        callback_id: callbackId,
        message_ts: ts,
        channel: { id: channel.id, name: channel.name },
        message: messageToWire(message, core.origin()),
        response_url: urls.create(place),
      };
      return deliver("interactive", callbackId, payload);
    },

    globalShortcut(user: User, callbackId: string): Promise<Interaction> {
      return deliver("interactive", callbackId, { ...envelope("shortcut", user), callback_id: callbackId });
    },

    async submit(user: User, view: View, values: Json): Promise<Interaction> {
      const body = { ...view.body, state: { values } };
      const shown = viewToWire({ ...view, body }, installedId(user));
      const payload = { ...envelope("view_submission", user), view: shown, response_urls: [] };
      const interaction = await deliver("interactive", "view_submission", payload);
      if (interaction.isAcknowledged) follow(view, user, interaction.response);
      return interaction;
    },

    async cancel(user: User, view: View): Promise<Interaction | undefined> {
      views.close(view, { isAll: true });
      if (view.body["notify_on_close"] !== true) return undefined;
      const payload = {
        ...envelope("view_closed", user),
        view: viewToWire(view, installedId(user)),
        is_cleared: true,
      };
      return deliver("interactive", "view_closed", payload);
    },

    pressInView(user: User, view: View, action: Json): Promise<Interaction> {
      const container = { type: "view", view_id: view.id };
      const actions = [{ ...action, action_ts: core.newTs() }];
      const payload = {
        ...envelope("block_actions", user),
        container,
        view: viewToWire(view, installedId(user)),
        actions,
      };
      return deliver("interactive", "block_actions", payload);
    },
  };

  /** Changes a form as the app's acknowledgement says. */
  function follow(view: View, user: User, response: unknown): void {
    const { response_action: action, view: body } = (response ?? {}) as { response_action?: string; view?: Json };
    if (action === "errors") return;
    if (action === "update" && body !== undefined) views.change(view, body, undefined);
    else if (action === "push" && body !== undefined) views.open(user.workspace, user.id, body, view);
    else views.close(view, { isAll: action === "clear" });
  }
}

export type Interactions = ReturnType<typeof createInteractions>;

/** A view's `app_installed_team_id`: the organisation's id if it installed the app, or else the workspace's. */
function installedId({ workspace: { id, organisation } }: User): string {
  return organisation?.id ?? id;
}

function isSpoken(response: unknown): response is Json {
  return typeof response === "object" && response !== null && ("text" in response || "blocks" in response);
}

/** Returns the pressed button for the payload. A feedback element becomes one button with the chosen value. */
function toPressed(element: Json, button: ButtonPress["button"]): Json {
  if (element["type"] !== "feedback_buttons") return element;
  if (button === undefined) throw new Error("Press one of the two feedback buttons.");
  const { type, action_id } = element;
  return { type, action_id, value: (element[button] as Json)["value"] };
}

export function feedbackIdOf({ content, ts }: Message): string {
  const elements = content.blocks.flatMap((block) => listOf(block["elements"]));
  const found = elements.find(({ type }) => type === "feedback_buttons");
  if (found === undefined) throw new Error(`Message ${ts} has no buttons for feedback.`);
  return textOf(found["action_id"]);
}

/** Finds a button by its id. Throws if the message has none with this id. */
function buttonOf({ content, ts }: Message | Ephemeral, actionId: string): { element: Json; blockId: string } {
  for (const [index, block] of content.blocks.entries()) {
    const elements = [...listOf(block["elements"]), ...listOf([block["accessory"]])];
    const element = elements.find((one) => one["action_id"] === actionId);
    if (element !== undefined) return { element, blockId: textOf(block["block_id"]) || `block-${index}` };
  }
  throw new Error(`Message ${ts} has no button with the action_id "${actionId}".`);
}

/** Escapes text as Slack does. Mentions are Slack's own markup and stay as they are. */
function escapeWords(text: string): string {
  return text.replace(/<[@#][^<>]*>|[&<>]/g, (found) => ESCAPED[found] ?? found);
}

const ESCAPED: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
