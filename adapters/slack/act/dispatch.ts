import type { z } from "zod";
import type { ReadAbout } from "../../../src/port/catalogue.ts";
import { codeOf } from "../api/error.ts";
import { type Body, readText, toBody } from "../api/wire.ts";
import type { Workspace, Workspaces } from "../api/workspaces.ts";
import { readLookedAt, toViewer } from "../hear/inbound.ts";
import type { Parting, SlackAdapterOptions } from "../options.ts";
import { type HandlerResult, type Interactions, NOTHING } from "./acknowledgement.ts";
import { createAssistant } from "./assistant.ts";
import { createButtons } from "./buttons.ts";
import { createCommands } from "./commands.ts";
import { createHome } from "./home.ts";
import { createImagineForms, IMAGINE_FORM } from "./imagine-form.ts";
import {
  buttonPayload,
  commandPayload,
  messageShortcutPayload,
  type SubmissionPayload,
  shortcutPayload,
  submissionPayload,
} from "./payloads.ts";
import { createPersonaForm, PERSONA_FORM } from "./persona-form.ts";
import { createReasonForm, REASON_FORM } from "./reason-form.ts";
import { createScheduleForms, SCHEDULE_FORM } from "./schedule-form.ts";
import { createShortcuts } from "./shortcuts.ts";
import type { HandlerDeps } from "./user-action.ts";

/** Events that name the channel that a person has open next to the pane. */
const LOOKED = new Set(["app_context_changed", "assistant_thread_context_changed", "assistant_thread_started"]);
const FIND_MS = 2_000;

export interface InteractionsDeps extends HandlerDeps {
  /** If absent, the home tab shows no personal content. */
  readAbout?: ReadAbout | undefined;
  /** Finds the workspace of a home tab that must be redrawn. If absent, only the workspace's id is used. */
  findWorkspace?: Workspaces["find"];
  /** Called when the bot left a workspace or an organisation. Rejects if that could not be stored. */
  onUninstalled?: SlackAdapterOptions["onUninstalled"];
}

/** Handles everything that people do with the bot on Slack, except writing messages. */
export function createInteractions(deps: InteractionsDeps): Interactions {
  const forms = deps.imagine && createImagineForms(deps.imagine, deps);
  const assistant = createAssistant(deps);
  const home = createHome({ ...deps, forms, readAbout: deps.readAbout });
  const reasons = createReasonForm(deps);
  const personas = createPersonaForm(deps);
  const schedules = createScheduleForms(deps);
  const submissions = byCallbackId(reasons, personas, schedules, forms);
  const onMessageButton = createButtons({ ...deps, forms, reasons, schedules });
  const shortcuts = createShortcuts({ ...deps, forms });
  const onCommand = createCommands({
    ...deps,
    openPersona: personas.open,
    openImagine: async ({ workspace, person, channelId, responseUrl }, trigger) =>
      forms?.open({ workspace, person, channelId }, trigger, { responseUrl, references: [] }),
  });

  /** Undefined for an unknown payload. Does not throw, because Slack would only send the payload again. */
  function read<T extends z.ZodType>(schema: T, body: Body): z.infer<T> | undefined {
    const { success, data, error } = schema.safeParse(withoutNulls(body));
    if (!success) deps.log.warn({ problems: error.issues.length }, "Slack sent an unknown interaction.");
    return success ? data : undefined;
  }

  async function onButton(body: Body, workspace: Workspace): Promise<HandlerResult> {
    const payload = read(buttonPayload, body);
    if (payload === undefined) return NOTHING;
    return (await home.onButton(payload, workspace)) ?? onMessageButton(payload, workspace);
  }

  async function onSubmit(body: Body, workspace: Workspace): Promise<HandlerResult> {
    const payload = read(submissionPayload, body);
    return (payload && submissions.get(payload.view.callback_id)?.onSubmit(payload, workspace)) ?? NOTHING;
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

  async function onGone(body: Body, how: Parting, ids: readonly unknown[]): Promise<HandlerResult> {
    const seconds = Number(body["event_time"]);
    // Slack's time has whole seconds. An installation in the same second counts as the one that ended.
    const atMs = seconds > 0 ? seconds * 1_000 + 999 : deps.now();
    for (const id of ids) if (typeof id === "string") await deps.onUninstalled?.(id, atMs, how);
    return NOTHING;
  }

  return {
    onInteraction,
    async redrawHome({ teamId, userId, channelId }) {
      try {
        const workspace = await deps.findWorkspace?.(teamId, AbortSignal.timeout(FIND_MS));
        await home.show(workspace ?? { teamId }, userId, channelId);
      } catch (error) {
        deps.log.info({ code: codeOf(error), team: teamId }, "Could not redraw a home tab.");
      }
    },
    async onEvent(event, body, workspace) {
      const { type } = event;
      // When a whole organisation removes the bot, Slack sends no `team_id`.
      const id = body["team_id"] ?? body["enterprise_id"];
      if (type === "app_uninstalled") return onGone(body, "uninstalled", [id]);
      if (type === "tokens_revoked") return revokesBot(event) ? onGone(body, "revoked", [id]) : NOTHING;
      if (type === "team_access_revoked") return onGone(body, "withdrawn", toList(event["team_ids"]));
      if (workspace === undefined) return NOTHING;
      if (type === "app_home_opened") return onOpened(event, workspace);
      if (typeof type === "string" && LOOKED.has(type)) await noteLooked(deps.looking, event, workspace);
      if (type === "assistant_thread_started") return onThreadStarted(event, workspace);
      if (type === "agent_session_stopped") return assistant.onStopped(event, workspace);
      return NOTHING;
    },
  };
}

/** The forms of messages and commands, by `callback_id`. */
function byCallbackId(
  reasons: SubmittedForm,
  personas: SubmittedForm,
  schedules: SubmittedForm,
  forms: SubmittedForm | undefined,
): ReadonlyMap<string, SubmittedForm | undefined> {
  return new Map([
    [REASON_FORM, reasons],
    [PERSONA_FORM, personas],
    [SCHEDULE_FORM, schedules],
    [IMAGINE_FORM, forms],
  ]);
}

interface SubmittedForm {
  onSubmit(payload: SubmissionPayload, workspace: Workspace): Promise<HandlerResult>;
}

/** The older assistant names the thread. The agent view names at most the person. */
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

/** Removes nulls: some of Slack's payloads contain null for an absent value, others omit the value. */
function withoutNulls(body: Body): unknown {
  return JSON.parse(JSON.stringify(body, (_, value: unknown) => value ?? undefined));
}

function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** True if the bot's token was revoked. Slack can also revoke only people's tokens. */
function revokesBot(event: Body): boolean {
  const { bot } = (event["tokens"] ?? {}) as { bot?: unknown };
  return Array.isArray(bot) && bot.length > 0;
}
