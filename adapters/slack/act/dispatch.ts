import type { z } from "zod";
import type { ReadAbout } from "../../../src/port/catalogue.ts";
import type { ActionEvent } from "../../../src/port/events.ts";
import { codeOf } from "../api/error.ts";
import { type Body, readText, toBody } from "../api/wire.ts";
import type { Workspace, Workspaces } from "../api/workspaces.ts";
import { type HandlerResult, type Interactions, NOTHING } from "../listen/dispatcher.ts";
import { readLookedAt, toViewer } from "../people/looking.ts";
import { readButtonValue } from "../write/blocks.ts";
import { createAssistant } from "./assistant.ts";
import { createCommands } from "./commands.ts";
import { createHome } from "./home.ts";
import { createImagineForms, type ImagineForms } from "./imagine.ts";
import { IMAGINE_FORM } from "./imagine-form.ts";
import {
  type ButtonPayload,
  buttonPayload,
  commandPayload,
  messageShortcutPayload,
  shortcutPayload,
  submissionPayload,
} from "./payloads.ts";
import { createPersonaForm, PERSONA_FORM } from "./persona-form.ts";
import { createReasonForm, REASON_FORM, type ReasonForm } from "./reason-form.ts";
import { createShortcuts } from "./shortcuts.ts";
import { type HandlerDeps, toEventBase, toName, type UserAction } from "./user-action.ts";

/** Events about the channel that somebody looks at beside their conversation with the bot. */
const LOOKED = new Set(["app_context_changed", "assistant_thread_context_changed", "assistant_thread_started"]);
const EXPIRED_BUTTON = "This button does not do anything any more.";
const FIND_MS = 2_000;

export interface InteractionsDeps extends HandlerDeps {
  /** Absent: the home says nothing about who looks at it. */
  readAbout?: ReadAbout | undefined;
  /** Finds the workspace of a home tab that is drawn again; absent: its id alone is used. */
  findWorkspace?: Workspaces["find"];
  /** The bot left this workspace, at `atMs` by Slack's word. Rejects when that could not be stored. */
  onUninstalled?: ((teamId: string, atMs: number, how: "uninstalled" | "revoked") => Promise<void>) | undefined;
}

/** Everything people do with the bot on Slack besides writing to it. */
export function createInteractions(deps: InteractionsDeps): Interactions {
  const forms = deps.imagine && createImagineForms(deps.imagine, deps);
  const assistant = createAssistant(deps);
  const home = createHome({ ...deps, forms, readAbout: deps.readAbout });
  const reasons = createReasonForm(deps);
  const personas = createPersonaForm(deps);
  const onMessageButton = createButtons({ ...deps, forms, reasons });
  const shortcuts = createShortcuts({ ...deps, forms });
  const onCommand = createCommands({
    ...deps,
    openPersona: personas.open,
    openImagine: async ({ workspace, person, channelId, responseUrl }, trigger) =>
      forms?.open({ workspace, person, channelId }, trigger, { responseUrl, references: [] }),
  });

  /** Undefined for a payload that is not understood: a second delivery would be no better. */
  function read<T extends z.ZodType>(schema: T, body: Body): z.infer<T> | undefined {
    const { success, data, error } = schema.safeParse(withoutNulls(body));
    if (!success) deps.log.warn({ problems: error.issues.length }, "Slack sent an interaction that is not understood.");
    return success ? data : undefined;
  }

  async function onButton(body: Body, workspace: Workspace): Promise<HandlerResult> {
    const payload = read(buttonPayload, body);
    if (payload === undefined) return NOTHING;
    return (await home.onButton(payload, workspace)) ?? onMessageButton(payload, workspace);
  }

  async function onSubmit(body: Body, workspace: Workspace): Promise<HandlerResult> {
    const payload = read(submissionPayload, body);
    if (payload?.view.callback_id === REASON_FORM) return reasons.onSubmit(payload, workspace);
    if (payload?.view.callback_id === PERSONA_FORM) return personas.onSubmit(payload, workspace);
    if (payload?.view.callback_id !== IMAGINE_FORM) return NOTHING;
    return forms?.onSubmit(payload, workspace) ?? NOTHING;
  }

  async function onInteraction(body: Body, workspace: Workspace): Promise<HandlerResult> {
    if ("command" in body) {
      const payload = read(commandPayload, body);
      return payload === undefined ? NOTHING : onCommand(payload, workspace);
    }
    switch (body["type"]) {
      case "block_actions":
        return onButton(body, workspace);
      case "view_submission":
        return onSubmit(body, workspace);
      case "message_action": {
        const payload = read(messageShortcutPayload, body);
        return payload === undefined ? NOTHING : shortcuts.onMessage(payload, workspace);
      }
      case "shortcut": {
        const payload = read(shortcutPayload, body);
        return payload === undefined ? NOTHING : shortcuts.onGlobal(payload, workspace);
      }
      default:
        return NOTHING;
    }
  }

  function onOpened({ user, channel, tab, context }: Body, workspace: Workspace): HandlerResult {
    if (typeof user !== "string" || typeof channel !== "string") return NOTHING;
    if (tab === "messages") {
      return {
        events: [],
        afterwards: () => assistant.suggest(workspace, { channelId: channel, lookingAt: readLookedAt(context) }),
      };
    }
    return { events: [], afterwards: () => home.show(workspace, user, channel) };
  }

  function onThreadStarted(event: Body, workspace: Workspace): HandlerResult {
    const { channel_id, thread_ts, context } = (event["assistant_thread"] ?? {}) as Record<string, unknown>;
    if (typeof channel_id !== "string" || typeof thread_ts !== "string") return NOTHING;
    const place = { channelId: channel_id, threadTs: thread_ts, lookingAt: readLookedAt(context) };
    return { events: [], afterwards: () => assistant.suggest(workspace, place) };
  }

  async function onGone(body: Body, how: "uninstalled" | "revoked"): Promise<HandlerResult> {
    const { team_id, event_time } = body;
    const seconds = Number(event_time);
    // Whole ones: an installation of the same second counts as the one that has ended.
    const atMs = seconds > 0 ? seconds * 1_000 + 999 : deps.now();
    if (typeof team_id === "string") await deps.onUninstalled?.(team_id, atMs, how);
    return NOTHING;
  }

  return {
    onInteraction,
    async redrawHome({ teamId, userId, channelId }) {
      try {
        const workspace = await deps.findWorkspace?.(teamId, AbortSignal.timeout(FIND_MS));
        await home.show(workspace ?? { teamId }, userId, channelId);
      } catch (error) {
        deps.log.info({ code: codeOf(error), team: teamId }, "A home could not be drawn again.");
      }
    },
    async onEvent(event, body, workspace) {
      const { type } = event;
      if (type === "app_uninstalled") return onGone(body, "uninstalled");
      if (type === "tokens_revoked") return revokesBot(event) ? onGone(body, "revoked") : NOTHING;
      if (workspace === undefined) return NOTHING;
      if (type === "app_home_opened") return onOpened(event, workspace);
      if (typeof type === "string" && LOOKED.has(type)) await noteLooked(deps.looking, event, workspace);
      if (type === "assistant_thread_started") return onThreadStarted(event, workspace);
      if (type === "agent_session_stopped") return assistant.onStopped(event, workspace);
      return NOTHING;
    },
  };
}

/** The older assistant names the thread; the agent view names the person, if anything. */
async function noteLooked(
  looking: HandlerDeps["looking"],
  { type, assistant_thread, user, context }: Body,
  workspace: Workspace,
): Promise<void> {
  const thread = type === "app_context_changed" ? { user_id: user, context } : toBody(assistant_thread);
  const userId = readText(thread["user_id"]);
  if (userId === undefined) return;
  const by = toViewer(workspace, userId, readText(thread["thread_ts"]));
  await looking?.note(by, readLookedAt(thread["context"]));
}

/** Slack writes an absent value as null in some payloads and leaves it out in others. */
function withoutNulls(body: Body): unknown {
  return JSON.parse(JSON.stringify(body, (_, value: unknown) => value ?? undefined));
}

/** Tokens of people may be revoked without the bot's own. */
function revokesBot(event: Body): boolean {
  const { bot } = (event["tokens"] ?? {}) as { bot?: unknown };
  return Array.isArray(bot) && bot.length > 0;
}

interface ButtonsDeps extends HandlerDeps {
  forms: ImagineForms | undefined;
  reasons: ReasonForm;
}

/** A button under a message of ours was pressed. */
function createButtons(deps: ButtonsDeps): (payload: ButtonPayload, workspace: Workspace) => Promise<HandlerResult> {
  const { forms, reasons } = deps;

  return async (payload, workspace) => {
    const { channel, container, user, response_url: responseUrl, trigger_id: trigger } = payload;
    const channelId = channel?.id ?? container.channel_id;
    const [element] = payload.actions;
    if (channelId === undefined || element === undefined) return NOTHING;
    const press = readButtonValue(element.value ?? element.selected_option?.value);
    const inThread = payload.message?.thread_ts ?? container.thread_ts ?? undefined;
    const told = { workspace, person: user, channelId, threadTs: inThread, responseUrl };
    const tellExpired = { events: [], afterwards: () => deps.tellPerson(told, EXPIRED_BUTTON) };
    if (press === undefined) return tellExpired;
    const threadTs = threadOf(payload);
    const { action, turnId } = press;
    if (action === "edit") {
      if (forms === undefined) return tellExpired;
      const opened = { responseUrl, basis: turnId, isPrivate: container.is_ephemeral, references: [] };
      const by = { workspace, person: user, channelId, threadTs };
      return { events: [], afterwards: () => forms.open(by, trigger, opened) };
    }
    const userAction: UserAction = {
      workspace,
      person: user,
      channelId,
      threadTs,
      activeThread: inThread,
      responseUrl,
      name: toName("press", payload),
    };
    // The result of a button is shown to those who saw the button.
    const isPrivate = container.is_ephemeral;
    const base = await toEventBase(userAction, { isPrivate }, deps);
    const event: ActionEvent = { kind: "action", ...base, action, turnId };
    if (action !== "bad") return { events: [event] };
    const about = { turnId, personId: user.id, channelId, threadTs, isPrivate };
    return { events: [event], afterwards: () => reasons.open(workspace, trigger, about) };
  };
}

/** The result of a button stands in the thread of its message. A message that only one person sees begins none. */
function threadOf({ message, container }: ButtonPayload): string | undefined {
  const root = container.is_ephemeral ? undefined : (message?.ts ?? container.message_ts);
  return message?.thread_ts ?? container.thread_ts ?? root;
}
